"""Untrusted JSON values -> numbers and texts that have been checked. Raises ValueError."""

from typing import Any, Final

_LONGEST: Final = 1 << 16  # of a text: names of C++ have thousands of characters


def number_of(value: Any, end: int) -> int:
    """An integer from 0 to before `end`; neither `true` nor 1.0 is one."""
    if type(value) is not int or not 0 <= value < end:
        text = hex(value) if type(value) is int else repr(value)  # of a long number str() fails
        raise ValueError(f"{text[:40]} is out of range")
    return value


def address_of(value: Any) -> int:
    """An address, or a size."""
    return number_of(value, 1 << 64)


def text_of_value(value: Any) -> str:
    """A text without control characters."""
    if not isinstance(value, str) or len(value) > _LONGEST or not value.isprintable():
        raise ValueError(f"{repr(value)[:40]} is no text that a manifest has")
    return value
