"""ELF relocation types of a machine: what they write, as far as it is needed here."""

from collections.abc import Iterable, Mapping
from enum import Enum

from kinst.targets.values import dataclass

LEB128 = 0  # for `DebugRelocation.width`


@dataclass(frozen=True, slots=True)
class CodeField:
    """Where the 4 bytes at a relocation hold a distance: ``(low, width, shift)`` of its pieces: bits [low, low + width)
    of the word are the distance's from `shift` on."""

    pieces: tuple[tuple[int, int, int], ...]
    added: int = 0  # added to the distance first
    offset: int = 0  # of the bytes
    is_table: bool = False  # the distance is to something that the loader makes


class Change(Enum):
    """What a relocation does with its value."""

    SET = 0
    ADD = 1  # to what is there
    SUBTRACT = 2  # from what is there


@dataclass(frozen=True, slots=True)
class DebugRelocation:
    """What a type of relocation does in debug sections."""

    change: Change
    width: int  # bits: 8, 16, 32, 64, the low 6 of a byte, or `LEB128`, a number that keeps its length
    is_relative: bool = False  # to its own place


@dataclass(frozen=True, slots=True)
class RelocationFacts:
    """The relocations of one machine, by type."""

    sizes: Mapping[int, int]  # bytes written, where they are not 4
    relative: frozenset[int]  # base + addend: the addend is a link address of the image
    code: Mapping[int, tuple[CodeField, ...]]  # those that write distances into the instructions of a module
    nowhere: int  # an address near which a module has no code
    debug: Mapping[int, DebugRelocation]
    nothing: frozenset[int]  # those that may stand in debug sections as well, and write nothing


def by_type(*groups: tuple[int, Iterable[int]]) -> dict[int, int]:
    """(size, types) ... -> type -> size."""
    return {kind: size for size, kinds in groups for kind in kinds}


def set_to(widths: Mapping[int, int], *, is_relative: bool = False) -> dict[int, DebugRelocation]:
    """Type -> bits that are set."""
    return {kind: DebugRelocation(Change.SET, width, is_relative) for kind, width in widths.items()}
