"""Static probes of FreeBSD's kind at a site: many of them call one function, with the id of the probe that fires.

While such a probe is enabled, its id is in memory, the kernel's switch is on, and its nops act as branches to the code
that makes the arguments. A probe at the function that all of them call fires the right one, and the function returns at
once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kinst.runtime.patched.call_blocks import Block, block_at
from kinst.runtime.trap.arch.emulator import Emulation
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.static_probes import PlaceKind, StaticPlace, StaticProbe

if TYPE_CHECKING:
    from kinst.runtime.machine.loading.loaded import Loaded
    from kinst.runtime.patched.guest_ram import GuestRam
    from kinst.runtime.trap.trap_frame import TrapFrame
    from kinst.targets.arch.facts import ArchFacts

_ID_MASK = 0xFFFF_FFFF
_WORD = (1 << 64) - 1


def place_at(probe: StaticProbe, address: int) -> StaticPlace:
    """The place of a probe at a site. Every address that is not one of the nops belongs to the called function, which
    may be probed after its landing pad."""
    found = (place for place in probe.places if place.address == address and place.kind is not PlaceKind.CALL)
    return next(found, StaticPlace(address, (), PlaceKind.CALL))


def gated(
    arch: "ArchFacts",
    address: int,
    size: int,
    probes: Sequence[tuple[StaticProbe, Enabling]],
    at_block: Callable[[Block, Enabling], Enabling],
) -> tuple[tuple[Enabling, ...], Emulation | None]:
    """What fires at a site for these enabled probes, and what is emulated in place of the site's own instruction.

    Args:
        arch: the machine.
        address: the site's link address.
        size: of its instruction.
        probes: each probe with its enabling.
        at_block: what a probe does at a place with a block (`CallBlocks.enabling`).
    """
    plain: list[Enabling] = []
    called: dict[int, Enabling] = {}
    instead: Emulation | None = None
    for probe, enabling in probes:
        place = place_at(probe, address)
        match place.kind:
            case PlaceKind.NOP:
                plain.append(enabling)
            case PlaceKind.BLOCK:
                plain.append(at_block(block_at(probe, place, size), enabling))
            case PlaceKind.BRANCH:
                instead = _branch(arch, place.target - address)
            case PlaceKind.CALL:
                called[enabling.probe & _ID_MASK] = enabling
    if called:
        plain.append(_dispatcher(arch, called))
        instead = _return_at_once(arch)
    return tuple(plain), instead


def _dispatcher(arch: "ArchFacts", called: dict[int, Enabling]) -> Enabling:
    first = arch.arguments[0]

    def dispatch(firing: Firing) -> None:
        enabling = called.get(firing.regs[first] & _ID_MASK)
        if enabling is not None:
            firing.fire(enabling)

    return Enabling(0, dispatch, lambda _firing, _index: 0, 0)


def _branch(arch: "ArchFacts", distance: int) -> Emulation:
    pc = arch.pc

    def run(frame: "TrapFrame") -> None:
        frame.regs[pc] = (frame.regs[pc] + distance) & _WORD

    return Emulation(run, ())


def _return_at_once(arch: "ArchFacts") -> Emulation:
    """A return before the function has done anything, so that the return address is where the call left it."""
    pc, stack, link = arch.pc, arch.stack_pointer, arch.link_register

    def from_stack(frame: "TrapFrame") -> None:
        target = frame.load(frame.regs[stack], 8)
        frame.regs[stack] = (frame.regs[stack] + arch.pushed_return) & _WORD
        frame.regs[pc] = target

    def from_link(frame: "TrapFrame") -> None:
        assert link is not None
        frame.regs[pc] = frame.regs[link]

    return Emulation(from_stack, (stack,)) if link is None else Emulation(from_link, ())


class StaticMarks:
    """What the guest's code tests for enabled static probes: semaphores that count users, id words, and the switch."""

    def __init__(self, loaded: "Loaded") -> None:
        """No probe is enabled yet."""
        self._loaded = loaded
        self._memory: GuestRam | None = None  # in which the marks are
        self._counted: set[int] = set()
        self._words: dict[tuple[int, int], int] = {}  # (address, size) -> the value there in place of 0

    def set(self, memory: "GuestRam", enabled: Iterable[tuple[int, StaticProbe]]) -> None:
        """Write the marks for exactly these enabled probes: (identifier, probe)."""
        self._memory = memory
        counted: set[int] = set()
        words: dict[tuple[int, int], int] = {}
        for identifier, probe in enabled:
            counted.update(probe.semaphores)
            if probe.id_word:
                words[probe.id_word, 4] = identifier & _ID_MASK
                if probe.switch:
                    words[probe.switch, 1] = 1
        for address in counted ^ self._counted:
            self._add(memory, address, 1 if address in counted else -1)
        for address, size in self._words.keys() | words.keys():
            self._write(memory, address, words.get((address, size), 0).to_bytes(size, "little"))
        self._counted, self._words = counted, words

    def own_bytes(self) -> Iterator[tuple[int, bytes]]:
        """What would be in memory if no probe were enabled: physical addresses and bytes."""
        for address in self._counted:
            physical = self._loaded.physical(address)
            if physical is not None and self._memory is not None and self._memory.has(physical, 2):
                yield physical, (self._memory.load(physical, 2) - 1 & 0xFFFF).to_bytes(2, "little")
        for address, size in self._words:
            physical = self._loaded.physical(address)
            if physical is not None:
                yield physical, bytes(size)

    def _add(self, memory: "GuestRam", address: int, difference: int) -> None:
        physical = self._loaded.physical(address)
        if physical is not None and memory.has(physical, 2):
            count = memory.load(physical, 2) + difference & 0xFFFF
            memory.write(physical, count.to_bytes(2, "little"))

    def _write(self, memory: "GuestRam", address: int, content: bytes) -> None:
        physical = self._loaded.physical(address)
        if physical is not None and memory.has(physical, len(content)):
            memory.write(physical, content)
