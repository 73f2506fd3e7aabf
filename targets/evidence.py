"""How sure it is that a function is one."""

from enum import IntEnum


class Evidence(IntEnum):
    """How a function was found, from the surest to the weakest."""

    SYMBOL = 0
    FDE = 1
    ENTRY_POINT = 2
    CALL = 3  # a direct call goes there
    POINTER = 4  # a relocation or a table of code pointers holds its address
    PROLOGUE = 5  # it only looks like one
