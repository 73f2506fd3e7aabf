"""Data breakpoints of x86 CPUs: DR0 to DR3 by DR7 -> #DB after the instruction (Intel SDM volume 3, 17.2 and 17.3.1.2).

Unicorn has kept QEMU's instruction breakpoints and single steps, but no watchpoints. Loads and stores to a page with
watched bytes stop the CPU instead, and the instruction is executed alone, with a window in front of those bytes that
tells of accesses. Which bytes are watched changes with DR7: SVM's intercepts (see `amd64_model_specific`) have a bit
for instructions that write it. Such an instruction is executed alone, too.
"""

from collections.abc import Callable, Iterator
from typing import Final

from kinst.runtime.machine.exception_model import Outcome
from kinst.runtime.machine.machine import Cpu, Space
from kinst.runtime.machine.watching.mirrored_pages import MemoryAccess
from kinst.runtime.paging.walker import Access
from kinst.targets.errors import MachineError
from kinst.targets.values import dataclass

DEBUG: Final = 1  # the vector
WRITES_DR7: Final = 0x137  # UC_HOOK_INTR's number: QEMU's EXCP_VMEXIT, and the code of AMD's manual, appendix C
LINE: Final = 3  # an input of each CPU: a trap is due
_WRITE_LINE: Final = 4  # and that it is about to write DR7
_INTERCEPTS: Final = "svm.debug"  # of reads in bits 15:0, and of writes above
_DR7_WRITES: Final = 1 << 16 + 7
_BREAKPOINTS: Final = 4
_LENGTHS: Final = (1, 2, 8, 4)  # LEN
_STORES, _LOADS_AND_STORES = 1, 3  # R/W; 0 is for instructions, and 2 for ports
_PAGE: Final = 1 << 12


@dataclass(frozen=True, slots=True)
class Watched:
    """A data breakpoint: its number, its bytes, and whether it is for loads too."""

    number: int
    first: int
    size: int
    is_for_loads: bool


def watched(control: int, addresses: tuple[int, int, int, int]) -> Iterator[Watched]:
    """The data breakpoints that are enabled by a value of DR7. An address counts as aligned to its length.

     31 30 29 28 27 26 25 24 23 22 21 20 19 18 17 16           7  6  5  4  3  2  1  0
    +-----+-----+-----+-----+-----+-----+-----+-----+-- ... --+--+--+--+--+--+--+--+--+
    |LEN3 |R/W3 |LEN2 |R/W2 |LEN1 |R/W1 |LEN0 |R/W0 |         |G3|L3|G2|L2|G1|L1|G0|L0|
    +-----+-----+-----+-----+-----+-----+-----+-----+---------+--+--+--+--+--+--+--+--+
    """
    for number, address in enumerate(addresses):
        kind, size = control >> 16 + 4 * number & 3, _LENGTHS[control >> 18 + 4 * number & 3]
        if control >> 2 * number & 3 and kind in (_STORES, _LOADS_AND_STORES):
            yield Watched(number, address & -size, size, kind == _LOADS_AND_STORES)


class DataBreakpoints:
    """Those of all CPUs of a machine. While none is enabled they cost a comparison when a CPU's lines change."""

    def __init__(self, space: Space) -> None:
        """None is enabled. `space` is the virtual memory of the CPU that runs."""
        self._space = space
        self._watched: tuple[Watched, ...] = ()  # by the CPU that runs
        self._delivered: int | None = None  # the vector that the instruction that is executed alone has raised

    def intercept(self, cpu: Cpu) -> None:
        """Have the CPU stop at instructions that write DR7."""
        cpu.registers.set(_INTERCEPTS, _DR7_WRITES)

    def written(self, cpu: Cpu) -> None:
        """The CPU is about to write DR7: stop, so that `loaded` lets it. Raises MachineError: it is somewhere else."""
        if not is_write(code := _code(cpu)):
            raise MachineError(f"at {cpu.registers.get('rip'):#x}: DR7 is written by {code.hex(' ')}, which does not")
        cpu.line(_WRITE_LINE)(True)  # noqa: FBT003 - a line's level

    def loaded(self, cpu: Cpu) -> None:
        """Hold the pages of this CPU's data breakpoints, in place of those of the one before; if it is about to write
        DR7, let it. An interrupt may come first, and then it is about to write again."""
        self._hold(cpu)
        if cpu.lines >> _WRITE_LINE & 1:
            cpu.line(_WRITE_LINE)(False)  # noqa: FBT003 - a line's level
            cpu.registers.set(_INTERCEPTS, 0)
            self._space.held.execute_unheld(lambda: self._wrote(cpu))

    def _wrote(self, cpu: Cpu) -> None:
        self.intercept(cpu)
        self._hold(cpu)

    def _hold(self, cpu: Cpu) -> None:
        get = cpu.registers.get
        control = get("dr7")
        now = tuple(watched(control, (get("dr0"), get("dr1"), get("dr2"), get("dr3")))) if control & 0xFF else ()
        if now == self._watched:
            return
        self._watched = now

        def refuses(address: int) -> bool:  # loads too where stores are watched: a TLB entry is for both
            page = address & -_PAGE
            return any(one.first < page + _PAGE and page < one.first + one.size for one in now)

        self._space.held.hold(refuses if now else None)

    def forget(self) -> None:
        """Note that the state of the machine is another now, in which none is enabled."""
        if self._watched:
            self._watched = ()
            self._space.held.hold(None)

    def delivered(self, vector: int) -> None:
        """Note that an exception other than a page fault is delivered."""
        self._delivered = vector

    def accessed(self, cpu: Cpu) -> Outcome:
        """The instruction at RIP is about to access a held page: let it, and have #DB follow if it did what is
        watched."""
        before, met, watchers = _progress(cpu), list[int](), list[Callable[[MemoryAccess], None]]()
        for one in self._watched:
            watchers += self._watch(one, met)
        self._delivered = None

        def after() -> None:
            for watcher in watchers:
                self._space.unwatch_memory(watcher)
            if met and _progress(cpu) != before and self._delivered in (None, DEBUG):
                self._meet(cpu, met)

        self._space.held.execute_unheld(after)
        return Outcome.ANSWERED

    def _watch(self, one: Watched, met: list[int]) -> Iterator[Callable[[MemoryAccess], None]]:
        """Add the breakpoint's number to `met` when its bytes are accessed. They are on one page."""
        physical = self._space.observe(one.first)
        if physical is None:
            return

        def watcher(_access: MemoryAccess) -> None:
            met.append(one.number)

        for access in (Access.READ, Access.WRITE) if one.is_for_loads else (Access.WRITE,):
            self._space.watch_memory(range(physical, physical + one.size), access, watcher)
        yield watcher

    def _meet(self, cpu: Cpu, met: list[int]) -> None:
        """Set B<n> of DR6, and let #DB come, unless the single step's has just been delivered, which is the same."""
        bits = sum(1 << number for number in {*met})
        cpu.registers.set("dr6", cpu.registers.get("dr6") | bits)
        if self._delivered is None:
            cpu.line(LINE)(True)  # noqa: FBT003 - a line's level


def _progress(cpu: Cpu) -> tuple[int, int]:
    """What changes when an instruction is done: RIP, or RCX if it is repeated."""
    return cpu.registers.get("rip"), cpu.registers.get("rcx")


def is_write(code: bytes) -> bool:
    """Whether an instruction is a MOV to DR7: 0f 23 /7, perhaps behind a REX prefix."""
    opcode = code[1:] if code[:1] and code[0] & 0xF0 == 0x40 else code
    return opcode[:2] == b"\x0f\x23" and len(opcode) > 2 and opcode[2] >> 3 & 7 == 7


def _code(cpu: Cpu) -> bytes:
    return cpu.fetch(cpu.registers.get("rip"), 4)
