"""How certain it is that something is a function."""

from enum import IntEnum
from typing import Final


class Evidence(IntEnum):
    """How a function was found, from the most to the least certain."""

    SYMBOL = 0
    FDE = 1
    ENTRY_POINT = 2
    CALL = 3  # a direct call goes there
    POINTER = 4  # a relocation, a table of code pointers, or code that stores it for others holds its address
    LABEL = 5  # a symbol that may name data
    PROLOGUE = 6  # it only looks like one
    ADDRESS = 7  # the user names it by its address

    @property
    def text(self) -> str:
        """What vouches for the function, in words."""
        return _TEXT[self]


_TEXT: Final = {
    Evidence.SYMBOL: "symbol",
    Evidence.FDE: "FDE",
    Evidence.ENTRY_POINT: "entry point",
    Evidence.CALL: "call",
    Evidence.POINTER: "pointer",
    Evidence.LABEL: "label",
    Evidence.PROLOGUE: "prologue",
    Evidence.ADDRESS: "address given",
}
