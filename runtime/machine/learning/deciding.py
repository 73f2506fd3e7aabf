"""A loop that waits for a register -> what that should give from now on.

Each bit is inverted, alone, and the loop is run again with it. If no bit leaves the loop: all bits that are set are
cleared, or all others set, and as many of them left out again as possible; then what its comparisons ask for; then
counts, and bits that change at each read.
"""

from collections.abc import Callable, Iterable
from typing import Final

from kinst.runtime.machine.learning.assumptions import counting, flipped, toggling
from kinst.runtime.machine.learning.loops import Exit, Loop
from kinst.runtime.machine.learning.solving import Constants, asked_for
from kinst.targets.machines.registers import Reads, Rule
from kinst.targets.values import dataclass

_STEPS: Final = tuple(1 << shift for shift in range(0, 33, 4))  # of counts
_HIGH_BITS: Final = 4  # that leave a loop, all down from the highest one: it compares sizes


@dataclass(frozen=True, slots=True)
class Decision:
    """What a register should give. `others`: what would do as well."""

    rule: Rule
    why: str
    flips: int = 0  # the bits that read otherwise
    others: str = ""


@dataclass(frozen=True, slots=True)
class Before:
    """What is known of the register."""

    flips: int = 0  # bits that were inverted for loops before
    is_same_place: bool = False  # whether the loop waits for it again, which has left by the rule that it has now
    has_other_readers: bool = False  # whether another place has read it


class Deciding:
    """The search, for one loop."""

    def __init__(self, loop: Loop, rule: Rule, width: int, before: Before, constants: Constants) -> None:
        """`width` in bits; `constants` gives the numbers in an instruction."""
        self._loop, self._rule, self._width, self._before = loop, rule, width, before
        self._constants = constants

    def decide(self) -> Decision | None:
        """What leaves the loop; None: nothing that was tried."""
        ways: tuple[Callable[[], Decision | None], ...] = (
            self._single_bits,
            self._all_bits,
            self._compared,
            self._count,
            self._toggle,
        )
        return next((found for way in ways if (found := way()) is not None), None)

    def _flipped(self, flips: int) -> Rule:
        return flipped(self._rule, self._loop.given, flips, self._before.flips)

    # -- bits -----------------------------------------------------------------------------------------------------

    def _single_bits(self) -> Decision | None:
        leaving = {
            bit: reads
            for bit in range(self._width)
            if (reads := self._loop.reads_to_leave(self._flipped(1 << bit))) is not None
        }
        if not leaving:
            return None
        if self._compares_sizes(leaving) and (found := self._count()) is not None:
            return found
        exits = {bit: self._loop.exit(self._flipped(1 << bit), reads) for bit, reads in leaving.items()}
        bit, reason = _preferred(exits)
        others = self._one_of(sum(1 << other for other in exits if other != bit))
        return Decision(self._flipped(1 << bit), f"{self._text(1 << bit)} leaves its loop{reason}", 1 << bit, others)

    def _compares_sizes(self, leaving: Iterable[int]) -> bool:
        """Whether it is rather a counter: all bits from some on leave the loop, and it has been read before, to be
        compared with; or other bits have been tried before."""
        found = sorted(leaving)
        is_high = len(found) >= _HIGH_BITS and found == list(range(found[0], self._width))
        return is_high and (self._before.is_same_place or (found[0] > 0 and self._before.has_other_readers))

    def _one_of(self, flips: int) -> str:
        """What does as well: one bit of those."""
        return self._text(flips) if not flips & flips - 1 else f"one of {self._text(flips)}"

    def _text(self, flips: int) -> str:
        up, down = flips & ~self._loop.given, flips & self._loop.given
        toggle = self._flipped(flips).toggle & flips
        up, down = up & ~toggle, down & ~toggle
        parts = ((up, "set"), (down, "clear"), (toggle, "toggling"))
        return " and ".join(f"{bits:#x} {what}" for bits, what in parts if bits)

    def _all_bits(self) -> Decision | None:
        mask = (1 << self._width) - 1
        for flips in (self._loop.given & mask, ~self._loop.given & mask):
            if flips and self._leaves(flips):
                return self._of_bits(self._fewest(flips))
        return None

    def _leaves(self, flips: int) -> bool:
        return self._loop.reads_to_leave(self._flipped(flips)) is not None

    def _fewest(self, flips: int) -> int:
        """As few of the bits as leave the loop together."""
        for bit in range(self._width):
            less = flips & ~(1 << bit)
            if less != flips and less and self._leaves(less):
                flips = less
        return flips

    def _of_bits(self, flips: int) -> Decision:
        return Decision(self._flipped(flips), f"{self._text(flips)} leaves its loop; no single bit does", flips)

    # -- what changes -------------------------------------------------------------------------------------------------

    def _count(self) -> Decision | None:
        for step in _STEPS:
            rule = counting(self._rule, self._loop.given, step)
            is_more = self._rule.kind is not Reads.COUNT or step > self._rule.step
            if is_more and step >> self._width == 0 and self._loop.reads_to_leave(rule) is not None:
                return Decision(rule, f"its loop waits until it has changed: a count by {step:#x} leaves it")
        return None

    def _toggle(self) -> Decision | None:
        bits = (1 << self._width) - 1
        if self._loop.reads_to_leave(toggling(self._rule, self._loop.given, bits)) is None:
            return None
        for bit in range(self._width):
            less = bits & ~(1 << bit)
            if less and self._loop.reads_to_leave(toggling(self._rule, self._loop.given, less)) is not None:
                bits = less
        rule = toggling(self._rule, self._loop.given, bits)
        return Decision(rule, f"{bits:#x} has to be seen both set and clear")

    def _compared(self) -> Decision | None:
        for flips in asked_for(self._loop, self._rule, self._width, self._constants):
            if self._loop.is_over:
                return None
            if self._leaves(flips):
                value = self._loop.given ^ flips
                why = f"its loop waits for a value: {value:#x} leaves it ({self._text(flips)})"
                return Decision(self._flipped(flips), why, flips)
        return None


def _preferred(exits: dict[int, Exit]) -> tuple[int, str]:
    """The bit to choose of those that leave the loop, and why.

    First those after which nothing fails: no fault, no error as the function's result, nothing printed. Then those that
    lead where fewest others do: errors are tested together, by a mask. Then the lowest.
    """
    alike = [one.way for one in exits.values()]
    ordered = sorted(exits, key=lambda bit: (exits[bit].cost, alike.count(exits[bit].way), bit))
    best = exits[ordered[0]]
    rest = [exits[bit] for bit in ordered[1:]]
    if not rest:
        return ordered[0], ""
    reasons = (
        text
        for is_so, text in (
            (any(one.is_fault > best.is_fault for one in rest), "others lead to a fault"),
            (any(one.is_error > best.is_error for one in rest), "others lead to an error"),
            (any((one.shown > 0) > (best.shown > 0) for one in rest), "others print something"),
            (any(alike.count(one.way) > alike.count(best.way) for one in rest), "others are tested together"),
        )
        if is_so
    )
    return ordered[0], f"; {', '.join(reasons) or 'others do the same'}"
