"""Debug exceptions of arm64 CPUs: software steps, breakpoints and watchpoints -> ESR and FAR (DDI 0487 D2).

Unicorn has kept QEMU's software steps and breakpoints, and reports each with the number of another exception: a step as
an undefined instruction, a breakpoint as a prefetch abort. The syndrome that it has computed distinguishes them;
Unicorn's interface has no register for that, but the CPU's state does. QEMU makes its breakpoints when DBGBCR<n>_EL1 is
written. They belong to the engine and not to the state, so they are made again when another CPU is loaded.

It has not kept watchpoints. Loads and stores to a watched page stop the CPU instead, and those that are not watched are
executed alone.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kinst.runtime.machine.exception_model import SystemRegister
from kinst.runtime.machine.exceptions.arm64_accesses import accessed
from kinst.runtime.machine.exceptions.arm64_syndrome import Class, data_abort, syndrome
from kinst.runtime.paging.walker import Access, PageFault
from kinst.targets.errors import MachineError
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.machine.machine import Cpu, Space

# As ID_AA64DFR0_EL1 of the Cortex-A57 counts them; op2 of the registers' encodings.
_BREAKPOINTS, _WATCHPOINTS = 6, 4
_BREAKPOINT_CONTROL, _WATCHPOINT_VALUE, _WATCHPOINT_CONTROL = 5, 6, 7
REGISTERS: Final = frozenset(
    SystemRegister(2, 0, 0, number, op2)
    for op2, count in (
        *((_BREAKPOINT_CONTROL, _BREAKPOINTS), (_WATCHPOINT_CONTROL, _WATCHPOINTS)),
        (_WATCHPOINT_VALUE, _WATCHPOINTS),
    )
    for number in range(count)
)
_MDSCR: Final = "s2_0_c0_c2_2"
_MONITOR, _KERNEL = 1 << 15, 1 << 13  # MDSCR_EL1.MDE, KDE
_MASK_DEBUG: Final = 1 << 9  # PSTATE.D
_ENABLED: Final = 1  # DBGBCR.E and DBGWCR.E
_DEBUG_EXCEPTION: Final = 0x22  # DFSC
_LOADS, _STORES = 1, 2  # DBGWCR.LSC
_PAGE: Final = 1 << 12
_CLASSES: Final = frozenset({Class.BREAKPOINT_LOWER, Class.BREAKPOINT_SAME, Class.STEP_LOWER, Class.STEP_SAME})


@dataclass(frozen=True, slots=True)
class Watchpoint:
    """DBGWVR<n>_EL1 and DBGWCR<n>_EL1, decoded: the first and the last byte, and which accesses by which levels."""

    first: int
    last: int
    accesses: int
    levels: int  # PAC: EL1 in bit 0, EL0 in bit 1

    def is_for(self, level: int) -> bool:
        """Whether it watches accesses of an exception level."""
        return level < _EL2 and bool(self.levels & (1 if level else 2))

    def is_met(self, first: int, size: int, access: Access) -> bool:
        """Whether it watches an access."""
        wanted = _STORES if access is Access.WRITE else _LOADS
        return bool(self.accesses & wanted) and self.first < first + size and first <= self.last


_EL2: Final = 2


def watchpoint(value: int, control: int) -> Watchpoint | None:
    """The watchpoint of a pair of registers; None if it is not enabled or watches nothing.

     31   29 28  24 23 21 20 19  16 15 14 13  12        5 4   3 2   1  0
    +-------+------+-----+--+------+-----+---+-----------+-----+-----+--+
    |       | MASK |     |WT| LBN  | SSC |HMC|    BAS    | LSC | PAC | E|
    +-------+------+-----+--+------+-----+---+-----------+-----+-----+--+
    """
    selected, mask = control >> 5 & (0xF if value & 4 else 0xFF), control >> 24 & 31
    if not control & _ENABLED or not (selected or mask):
        return None
    if mask:
        first, size = value & -(1 << mask), 1 << mask
    else:
        skipped = (selected & -selected).bit_length() - 1
        rest = selected >> skipped
        first, size = (value & ~3) + skipped, (~rest & rest + 1).bit_length() - 1  # the bits that follow are contiguous
    return Watchpoint(first, first + size - 1, control >> 3 & 3, control >> 1 & 3)


class DebugRegisters:
    """The debug registers of all CPUs of a machine. While nothing is enabled they cost a comparison at each switch
    between CPUs."""

    def __init__(self, space: "Space") -> None:
        """Nothing is enabled: QEMU's reset. `space` is the virtual memory of the CPU that runs."""
        self._space, self._is_started = space, False
        self._breakpoints: dict[int, set[SystemRegister]] = {}  # those that are enabled, by CPU
        self._values: dict[tuple[int, int, int], int] = {}  # of watchpoints: by CPU, number and op2
        self._watched: tuple[Watchpoint, ...] = ()  # by the CPU that runs
        self._loaded: int | None = None  # the number of the CPU

    def start(self) -> None:
        """Note that exceptions can be delivered from now on."""
        self._is_started = True

    def written(self, cpu: "Cpu", register: SystemRegister, value: int) -> None:
        """Note that the guest writes one of `REGISTERS`; Unicorn executes the write."""
        if register.op2 != _BREAKPOINT_CONTROL:
            self._values[cpu.number, register.crm, register.op2] = value
            self._watch(cpu)
            return
        enabled = self._breakpoints.setdefault(cpu.number, set())
        if value & _ENABLED:
            enabled.add(register)
        else:
            enabled.discard(register)

    def forget(self) -> None:
        """Disable everything; the caller resets the registers in Unicorn."""
        self._breakpoints.clear()
        self._values.clear()
        if self._watched:
            self._space.held.hold(None)
        self._watched = ()

    def loaded(self, cpu: "Cpu") -> None:
        """Give the engine the breakpoints and watchpoints of this CPU, in place of those of the one before."""
        before, self._loaded = self._loaded, cpu.number
        if cpu.number == before:
            return
        nothing: set[SystemRegister] = set()
        changed = self._breakpoints.get(cpu.number, nothing)
        if before is None and self._breakpoints:
            changed = {one for one in REGISTERS if one.op2 == _BREAKPOINT_CONTROL}
        elif before is not None:
            changed = changed | self._breakpoints.get(before, nothing)
        for register in changed:
            name = f"s2_0_c0_c{register.crm}_{register.op2}"
            cpu.registers.set(name, cpu.registers.get(name))  # a write of the same value makes QEMU's breakpoint
        self._watch(cpu)

    def restored(self) -> None:
        """Note that the state of the machine is another now: the engine has the breakpoints of nobody."""
        self._loaded = None
        if self._watched:
            self._space.held.hold(None)
        self._watched = ()

    def syndrome(self, cpu: "Cpu") -> int | None:
        """ESR of the exception that Unicorn just raised, if it is a step or a breakpoint other than brk."""
        found = cpu.registers.get("exception.syndrome")
        return found if found >> 26 in _CLASSES else None

    def hit(self, cpu: "Cpu", fault: PageFault, word: int) -> tuple[int, int] | None:
        """ESR and FAR of the watchpoint that is hit by an access to a watched page, of an instruction with the encoding
        `word`. None: none is hit, and the CPU will execute that instruction alone."""
        level = cpu.registers.get("pstate") >> 2 & 3
        first, size = accessed(word, fault.address)
        if self._is_watching(cpu, level):
            for one in self._watched:
                if one.is_for(level) and one.is_met(first, size, fault.access):
                    exception = Class.WATCHPOINT_SAME if level else Class.WATCHPOINT_LOWER
                    esr = syndrome(exception, data_abort(word, _DEBUG_EXCEPTION, fault.access))
                    return esr, max(first, one.first)
        self._space.held.execute_unheld()
        return None

    def _is_watching(self, cpu: "Cpu", level: int) -> bool:
        """Whether debug exceptions are enabled at the level (D2.3)."""
        control = cpu.registers.get(_MDSCR)
        if not control & _MONITOR:
            return False
        return level == 0 or bool(control & _KERNEL and not cpu.registers.get("pstate") & _MASK_DEBUG)

    def _watch(self, cpu: "Cpu") -> None:
        """Hold the pages of this CPU's watchpoints."""
        watched = tuple(self._watchpoints(cpu.number))
        if watched == self._watched:
            return
        if not self._is_started:
            raise MachineError(
                f"at {cpu.registers.get('pc'):#x}: a watchpoint: a function that is called without booting has none"
            )
        self._watched = watched

        def refuses(address: int) -> bool:  # loads too where stores are watched: a TLB entry is for both
            level, page = cpu.registers.get("pstate") >> 2 & 3, address & -_PAGE
            return any(one.is_for(level) and one.first < page + _PAGE and page <= one.last for one in watched)

        self._space.held.hold(refuses if watched else None)

    def _watchpoints(self, cpu: int) -> Iterator[Watchpoint]:
        for number in range(_WATCHPOINTS):
            control = self._values.get((cpu, number, _WATCHPOINT_CONTROL), 0)
            found = watchpoint(self._values.get((cpu, number, _WATCHPOINT_VALUE), 0), control)
            if found is not None:
                yield found
