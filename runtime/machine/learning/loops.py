"""A loop that reads a register: whether it comes back to the same read, whatever that gives, and how it ends if not."""

from collections.abc import Iterator
from typing import Final

from kinst.runtime.machine.learning.scratch import Allowance, Scratch, Visit
from kinst.runtime.machine.physical.unmodelled import Register
from kinst.targets.machines.registers import Rule
from kinst.targets.values import dataclass

RETURNS: Final = 16  # to the same read, after which a loop is not left: some want to see a bit several times
_FEWEST: Final = 3  # of a loop
_LONGEST: Final = 2_000_000  # instructions of an iteration
_BEYOND: Final = 20_000  # instructions without a read, after which a loop is left; or
_TIMES: Final = 8  # as many as so many iterations have
_STEPS: Final = 400  # instructions that are looked at one by one where a loop is left
_MOST_STEPS: Final = 10_000  # in which a stack pointer is looked at
_KEPT_STEPS: Final = 48
_AFTER: Final = 50_000  # instructions in which what follows may print something
_LAST_ERROR: Final = 4095  # of Linux, whose negative is a result of functions in U-Boot and others as well


@dataclass(frozen=True, slots=True)
class Exit:
    """How a loop was left."""

    way: tuple[int, ...]  # PCs of the first instructions after the last read
    is_fault: bool  # the CPU could not go on
    is_error: bool  # the function returned the negative number of an error
    shown: int  # bytes that were printed after it

    @property
    def cost(self) -> tuple[bool, bool, bool]:
        """What speaks against leaving so."""
        return self.is_fault, self.is_error, self.shown > 0


class Loop:
    """The loop that a copied CPU is in."""

    def __init__(self, scratch: Scratch, register: Register, allowance: Allowance) -> None:
        """`allowance` limits what is tried."""
        self._scratch, self._register, self._allowance = scratch, register, allowance
        began = scratch.executed
        visits = list(self._plain())
        self.anchor = visits[0] if visits else Visit(0, 0, 0)
        self.returns = min(RETURNS, sum(self._is_anchor(one) for one in visits[1:]) - 1)
        self.is_loop = self.returns >= _FEWEST
        self._limit = _BEYOND + _TIMES * (scratch.executed - began) // max(1, len(visits))
        self._top = self._highest() if self.is_loop else None
        self._lengths = self._without_return(register.rule)[1] if self.is_loop else []

    def _plain(self) -> Iterator[Visit]:
        """The reads of the loop as it is."""
        scratch = self._scratch
        scratch.begin(self._register, self._register.rule)
        end = scratch.executed + RETURNS * _LONGEST
        for _ in range(2 * RETURNS + 4):
            visit = None if self._allowance.is_over or scratch.executed > end else scratch.next_visit(_LONGEST)
            if visit is None:
                return
            yield visit

    def _is_anchor(self, visit: Visit) -> bool:
        return (visit.pc, visit.sp) == (self.anchor.pc, self.anchor.sp)

    @property
    def is_over(self) -> bool:
        """Whether enough was tried."""
        return self._allowance.is_over

    @property
    def given(self) -> int:
        """What the register gives in the loop."""
        return self.anchor.given

    def reads_to_leave(self, rule: Rule) -> int | None:
        """How many reads by a rule leave the loop; None: they do not."""
        reads, lengths = self._without_return(rule)
        if reads is not None or lengths == self._lengths:
            return reads
        return self._to_rise(rule)

    def _highest(self) -> int | None:
        """The highest stack pointer of two iterations; None: they are too long."""
        found = self.anchor.sp
        for reads, sp in self._stepped(self._register.rule):
            found = max(found, sp)
            if reads > 2:
                return found
        return None

    def _to_rise(self, rule: Rule) -> int | None:
        """The reads after which the function that loops has returned, though it is called again at once."""
        top = self._top
        for reads, sp in self._stepped(rule) if top is not None else ():
            if top is not None and sp > top:
                return reads
            if reads > self.returns:
                return None
        return None

    def _stepped(self, rule: Rule) -> Iterator[tuple[int, int]]:
        """The reads so far, and the stack pointer, after each instruction since the first read."""
        scratch = self._scratch
        scratch.begin(self._register, rule)
        before, visit = scratch.reads, scratch.next_visit(_LONGEST)
        for _ in range(_MOST_STEPS):
            if visit is None or not scratch.run(1) or self._allowance.is_over:
                return
            yield scratch.reads - before, scratch.stack

    def _without_return(self, rule: Rule) -> tuple[int | None, list[int]]:
        """The reads after which it does not come back to them; and how many instructions lead to each read."""
        lengths: list[int] = []
        self._scratch.begin(self._register, rule)
        here = elsewhere = 0
        while not self._allowance.is_over:
            before = self._scratch.executed
            visit = self._scratch.next_visit(self._limit if lengths else _LONGEST)
            if visit is None:
                return len(lengths) or None, lengths
            lengths.append(self._scratch.executed - before)
            here, elsewhere = (here + 1, 0) if self._is_anchor(visit) else (here, elsewhere + 1)
            if here > self.returns:
                return None, lengths
            if elsewhere > self.returns:  # the next loop wants something of the same register
                return len(lengths) - elsewhere, lengths
        return None, lengths

    def exit(self, rule: Rule, reads: int) -> Exit:
        """How a loop is left, by a rule with which it is after so many reads."""
        scratch = self._scratch
        scratch.begin(self._register, rule)
        for _ in range(reads):
            scratch.next_visit(_LONGEST)
        before, link, way, is_error, is_fault = scratch.shown, scratch.link, [], False, False
        for _ in range(_STEPS):
            way.append(scratch.engine.pc())
            is_fault = not scratch.run(1)
            if is_fault or scratch.engine.pc() == link or scratch.stack > (self._top or self.anchor.sp):
                is_error = not is_fault and _is_error(scratch.result)
                break
        scratch.next_visit(0 if is_fault else _AFTER)
        return Exit(tuple(way[:_KEPT_STEPS]), is_fault, is_error, scratch.shown - before)

    def trace(self, rule: Rule, most: int) -> list[tuple[int, tuple[int, ...]]]:
        """The PCs and general registers from a read on to the next."""
        scratch = self._scratch
        scratch.begin(self._register, rule)
        found: list[tuple[int, tuple[int, ...]]] = []
        if scratch.next_visit(_LONGEST) is None:
            return found
        while len(found) < most:
            found.append((scratch.engine.pc(), scratch.registers()))
            before = scratch.reads
            if not scratch.run(1) or scratch.reads != before:
                break
        return found


def _is_error(result: int) -> bool:
    """Whether a function's result is the negative number of an error, of 32 or of 64 bits."""
    return 0 < -result & 0xFFFF_FFFF <= _LAST_ERROR and result >> 32 in (0, 0xFFFF_FFFF)
