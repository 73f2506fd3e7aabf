"""What a read gives at addresses that no device of a board has: rules for ranges and for registers in them."""

from enum import Enum

from kinst.targets.values import dataclass


class Reads(Enum):
    """The kinds of rules, by their names in board files."""

    CONSTANT = "constant"  # `value`
    # What was written last, `value` at first; after `after` reads with `bits` set, `clear` clear, and `toggle` inverted
    # at every second read.
    LAST = "last"
    TOGGLE = "toggle"  # `value`, with `bits` inverted at every second read
    COUNT = "count"  # `value`, and `step` more at each read
    LIST = "list"  # `values`, one after the other; the last of them from then on
    FAULT = "fault"  # an external abort; for ranges


@dataclass(frozen=True, slots=True)
class Rule:
    """What reads give. Writes are kept, and change nothing but what `LAST` reads."""

    kind: Reads = Reads.LAST
    value: int = 0
    bits: int = 0
    clear: int = 0
    toggle: int = 0
    after: int = 0
    step: int = 1
    values: tuple[int, ...] = ()

    def __str__(self) -> str:
        match self.kind:
            case Reads.CONSTANT:
                return f"{self.value:#x}"
            case Reads.LAST:
                changes = (self.bits, "set"), (self.clear, "clear"), (self.toggle, "toggling")
                parts = [f"{bits:#x} {what}" for bits, what in changes if bits]
                when = f" after {self.after} reads" if self.after else ""
                changed = f" with {', '.join(parts)}{when}" if parts else ""
                return f"what was written{changed}"
            case Reads.TOGGLE:
                return f"{self.value:#x} with {self.bits:#x} toggling"
            case Reads.COUNT:
                return f"a count from {self.value:#x} by {self.step:#x}"
            case Reads.LIST:
                return ", ".join(map(hex, self.values))
            case Reads.FAULT:
                return "a fault"


@dataclass(frozen=True, slots=True)
class RegisterFacts:
    """A register of a range, at an offset in it. `size` in bytes."""

    name: str
    offset: int
    size: int
    rule: Rule


@dataclass(frozen=True, slots=True)
class RangeFacts:
    """Physical addresses with a name. `registers` have rules of their own."""

    name: str
    address: int
    size: int
    rule: Rule
    registers: tuple[RegisterFacts, ...] = ()
