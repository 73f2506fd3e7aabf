"""What code looks like where there are no symbols: padding between functions, how functions begin, and calls."""

from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern for the first eight bytes of an instruction, little-endian, so that it can include the next
    instruction.

    It matches if ``head & mask == value``.
    """

    mask: int
    value: int


@dataclass(frozen=True, slots=True)
class Field:
    """A number in an instruction, or part of one."""

    low: int  # its lowest bit in the instruction
    bits: int
    place: int  # of its lowest bit in the whole number
    is_signed: bool = False


@dataclass(frozen=True, slots=True)
class CallShape:
    """A direct call, as it appears in bytes of which nothing else is known.

    Its displacement, the sum of the fields, counts from `origin` bytes after its start.
    """

    shape: Pattern
    fields: tuple[Field, ...]
    origin: int = 0


@dataclass(frozen=True, slots=True)
class CodeShape:
    """The shape of one machine's code.

    `fill` are bytes of which linkers and assemblers make long runs; `absurd` is what a user program has no use for:
    privileged instructions, ports, and what only data decodes to.
    """

    fill: tuple[int, ...]
    padding: tuple[Pattern, ...]
    prologues: tuple[Pattern, ...]
    calls: tuple[CallShape, ...]
    absurd: tuple[Pattern, ...]


def pattern(text: str) -> Pattern:
    """The bytes of an instruction in memory order, two digits each; ".." is any byte."""
    words = text.split()
    mask = sum(0 if word == ".." else 0xFF << 8 * index for index, word in enumerate(words))
    value = sum(0 if word == ".." else int(word, 16) << 8 * index for index, word in enumerate(words))
    return Pattern(mask, value)
