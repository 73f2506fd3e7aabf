"""What debug information says about functions that were inlined: values only; `kinst.targets.debuginfo.inline_search`
finds them.

All addresses are link addresses of the image.
"""

from kinst.targets.c_types import CType
from kinst.targets.values import dataclass

Range = tuple[int, int]  # [low, high)


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A file as debug information names it, and a line; `file` is empty and `line` 0 where it does not say."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Location:
    """Where a value is in [low, high): a DWARF expression, to be evaluated with `frame_base`, the expression of the
    enclosing function, and what the unit at offset `unit` of .debug_info says of types.

    An empty expression: the value was optimised out there.
    """

    low: int
    high: int
    expression: bytes
    frame_base: bytes = b""
    unit: int = 0


@dataclass(frozen=True, slots=True)
class InlinedParameter:
    """A formal parameter of one inlined copy. `constant` is DW_AT_const_value."""

    name: str
    type: CType | None
    locations: tuple[Location, ...]
    constant: int | None = None


@dataclass(frozen=True, slots=True)
class InlinedCopy:
    """One copy: its ranges in the order of the debug information, where it is entered, who contains it.

    `caller` is the ELF function that holds the first range ("" if there is none) and `caller_address` its start; `call`
    is where the call is in the source.
    """

    ranges: tuple[Range, ...]
    entry: int  # DW_AT_entry_pc, else the low end of the first range
    caller: str
    caller_address: int
    call: SourceLine
    parameters: tuple[InlinedParameter, ...] = ()


@dataclass(frozen=True, slots=True)
class InlineFunction:
    """One definition of a function that debug information marks as inline: a header's static inline function has one in
    each unit that uses it. `is_out_of_line`: the same definition also has code of its own."""

    name: str
    declaration: SourceLine
    copies: tuple[InlinedCopy, ...]
    is_out_of_line: bool


@dataclass(frozen=True, slots=True)
class Matching:
    """What was found; of a glob by name. `damage` says which units could not be read and were left out."""

    found: tuple[InlineFunction, ...]
    damage: tuple[str, ...]
