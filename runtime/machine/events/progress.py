"""Consecutive faults -> whether the guest still makes progress."""

from collections.abc import Callable, Sequence
from typing import Final

from kinst.targets.values import dataclass

_MOST: Final = 100  # faults of a handler's first instruction
_LONGEST: Final = 15  # bytes of an instruction
_PLACES: Final = 4  # that a loop of faults has at most
_SUSPICIOUS: Final = 100  # consecutive faults at these places: from then on, registers are compared
_NESTED: Final = 300  # such faults, each deeper in the stack than the one before
_SAME: Final = 2000  # such faults, with the same registers each time: more than a kernel has between two ticks


@dataclass(frozen=True, slots=True)
class Fault:
    """An instruction that faulted. `address`: what it could not read, write or execute, if it was a page fault."""

    pc: int
    what: str
    address: int | None
    is_nested: bool = False  # in its own handler, which uses more of the stack each time


class Progress:
    """Distinguishes a guest that loops over faults from one whose faults are part of its work.

    A handler whose first instruction faults would fault forever. A guest loops as well if it faults thousands of times
    at the same few places and with the same registers, and nothing else happens in between: no interrupt, no system
    call, no output.
    """

    def __init__(self, get: Callable[[str], int], registers: Sequence[str], stack_pointer: int) -> None:
        """Nothing has faulted. `get` gives the running CPU's `registers`; `stack_pointer` is the index among them."""
        self._get, self._registers, self._stack_pointer = get, registers, stack_pointer
        self._at, self._first_count = 0, 0
        self._last: tuple[int, str, int | None] | None = None
        self._seen: dict[int, tuple[int | None, Sequence[int]] | None] = {}  # place -> address, registers
        self._count = self._nested = 0
        self.circle: Fault | None = None  # the first that was found
        self.events = 0  # faults and other events

    @property
    def last(self) -> Fault | None:
        """The last fault, if nothing has happened since then."""
        return None if self._last is None else Fault(*self._last)

    def is_stuck(self, pc: int, handler: int) -> bool:
        """Note that an instruction at `pc` faulted and that the CPU continues at `handler`; whether the handler's first
        instruction faults over and over."""
        if handler != pc:
            self._at = self._first_count = 0
            return False
        self._at, self._first_count = pc, self._first_count + 1 if self._at == pc else 1
        return self._first_count > _MOST

    def answered(self) -> None:
        """Note that the machine has handled the event itself, as firmware would."""
        self._first_count = 0

    def went_on(self) -> None:
        """Note that something other than a fault happened."""
        self.events += 1
        if self._last is not None:
            self._last = None
            self._seen.clear()

    def event(self, pc: int, handler: int, what: str, *, is_fault: bool) -> None:
        """Note an exception, which is a fault or something that the guest asked for, as a system call."""
        if is_fault:
            self.fault(pc, handler, what)
        else:
            self.went_on()

    def fault(self, pc: int, handler: int, what: str, address: int | None = None) -> None:
        """Note that an instruction faulted, and that the CPU is at `handler` now."""
        if 0 < handler - pc <= _LONGEST:  # it was emulated
            self.went_on()
            return
        self.events += 1
        self._last = pc, what, address
        if pc not in self._seen:
            if len(self._seen) == _PLACES:
                self._seen.clear()
            self._seen[pc] = None
            self._count = self._nested = 0
            return
        self._count += 1
        if self._count >= _SUSPICIOUS and self.circle is None:
            self._compare(pc, what, address)

    def _compare(self, pc: int, what: str, address: int | None) -> None:
        """Whether the CPU is as it was at the last fault there, or only deeper in its stack."""
        registers, sp = tuple(map(self._get, self._registers)), self._stack_pointer
        before, self._seen[pc] = self._seen[pc], (address, registers)
        if before is None:
            return
        is_nested = registers[sp] < before[1][sp]
        if address != before[0] or (not is_nested and registers != before[1]):
            self._seen.clear()
            return
        self._nested += is_nested
        if self._nested >= _NESTED or self._count >= _SAME:
            self.circle = Fault(pc, what, address, is_nested)
