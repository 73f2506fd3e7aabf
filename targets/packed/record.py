"""A line of a file of hex digits, and what the two kinds of such files (`records`) do not have in common."""

import re
from collections.abc import Callable, Iterator, Sequence

from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Record:
    """A line."""

    start: int  # offset of its first character in the file
    end: int  # of what follows its last one
    kind: int
    address: int  # as it stands there, or whole once it is `Form.placed`
    data: bytes
    at: int  # offset of the first digit of its data


@dataclass(frozen=True, slots=True)
class Form:
    """One of the two kinds."""

    name: str
    begins: re.Pattern[bytes]  # the start of such a file
    lead: int  # characters of a line before its digits
    data: frozenset[int]  # kinds of lines with bytes of memory
    read: Callable[[bytes, bytes, int], Record | None]  # a line, its bytes, its offset; None: its sum is wrong
    placed: Callable[[Sequence[Record]], Iterator[Record]]  # the same lines, with whole addresses
    entry: Callable[[Record], int | None]  # where the image starts, if the line says it
    line: Callable[[Record, bytes], str]  # a line with other data
    new: Callable[[Iterator[tuple[int, bytes]], Sequence[Record]], Iterator[str]]  # lines for what is somewhere
    is_data: Callable[[bytes], bool]  # whether a line has bytes of memory
    counted: Callable[[Sequence[Record], int], Iterator[tuple[Record, str]]]  # lines that count, if there are more
