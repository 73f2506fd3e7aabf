"""A class with annotated fields -> the memory that Python and machine code share: each field at the next place.

Fields are unsigned words. Machine code may read the lower half of a 64-bit one: hosts are little-endian.
"""

import ctypes
from typing import Annotated, Final, TypeVar

HASH: Final = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio: tables are looked up by what it multiplies
Word = Annotated[int, ctypes.c_uint64]
Half = Annotated[int, ctypes.c_uint32]
_Layout = TypeVar("_Layout", bound=type[ctypes.Structure])


def layout(described: _Layout) -> _Layout:
    """Lay out a subclass of ctypes.Structure by its annotations, whose first metadata is ctypes' type.

    Give it `__slots__ = ()`, so that a misspelt field is an error and no new attribute.
    """
    described._fields_ = [(name, kind.__metadata__[0]) for name, kind in described.__annotations__.items()]
    return described


def offset(described: type[ctypes.Structure], name: str) -> int:
    """Where a field is, in bytes."""
    found: int = getattr(described, name).offset
    return found


def index(described: type[ctypes.Structure], name: str) -> int:
    """Which 64-bit word a field is: a view of words is read in two thirds of the time that an attribute takes."""
    return offset(described, name) // ctypes.sizeof(ctypes.c_uint64)


def log2(power: int) -> int:
    """The logarithm of a power of two: the size of a row as a shift, a number of rows as that of their bits."""
    assert power.bit_count() == 1
    return power.bit_length() - 1
