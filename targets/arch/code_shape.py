"""What code looks like where there are no symbols: padding between functions, and how functions begin."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern for the first eight bytes of an instruction, little-endian, so that it can include the next
    instruction. It matches if ``head & mask == value``."""

    mask: int
    value: int


@dataclass(frozen=True, slots=True)
class CodeShape:
    """The shape of one machine's code.

    `fill` are bytes of which linkers and assemblers make long runs; `absurd` is what a program of user mode has no use
    for: privileged instructions, ports, and what only data decodes to.
    """

    fill: tuple[int, ...]
    padding: tuple[Pattern, ...]
    prologues: tuple[Pattern, ...]
    absurd: tuple[Pattern, ...]


def pattern(text: str) -> Pattern:
    """The bytes of an instruction in the order of memory, two digits each; ".." is any byte."""
    words = text.split()
    mask = sum(0 if word == ".." else 0xFF << 8 * index for index, word in enumerate(words))
    value = sum(0 if word == ".." else int(word, 16) << 8 * index for index, word in enumerate(words))
    return Pattern(mask, value)
