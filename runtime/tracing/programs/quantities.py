"""Times and sizes as users write them -> seconds and bytes."""

import re
from typing import Final

from kinst.targets.errors import UsageError

_SIZES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_UNITS: Final = {
    "": 1.0, "s": 1.0, "sec": 1.0, "ms": 1e-3, "msec": 1e-3, "us": 1e-6, "usec": 1e-6, "m": 60.0, "min": 60.0,
    "h": 3600.0,
}  # fmt: skip


def size_of(option: str, text: str) -> int:
    """Bytes of a size such as 256m. Raises UsageError, which names the option."""
    found = re.fullmatch(r"([0-9]{1,19}|0[xX][0-9a-fA-F]{1,16})([kmgKMG]?)(?:i?[bB])?", text)
    if found is None:
        raise UsageError(f"{option} {text}: a number with k, m or g behind it")
    number = found[1]
    return int(number, 16 if number[:2] in ("0x", "0X") else 10) * _SIZES[found[2].lower()]


def seconds_of(option: str, text: str) -> float:
    """Seconds of a time such as 500ms. Raises UsageError, which names the option."""
    found = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]*)?)([a-z]*)", text)
    if found is None or found[2] not in _UNITS:
        raise UsageError(f"{option} {text}: a number of seconds, or with a unit: us, ms, s, m, h")
    return float(found[1]) * _UNITS[found[2]]
