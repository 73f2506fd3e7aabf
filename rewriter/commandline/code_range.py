"""The value of --force-code -> a range of addresses."""

from collections.abc import Sequence

from kinst.targets.errors import UsageError


def parse_code_range(text: str) -> tuple[int, int]:
    """``0x1000-0x1040`` -> start and end, the first address after it. Raises UsageError."""
    first, dash, last = text.partition("-")
    try:
        start, end = int(first, 0), int(last, 0)
    except ValueError:
        dash = ""
        start, end = 0, 0
    if not dash or not _is_range(start, end):
        raise UsageError(
            f"--force-code {text}: not a range such as 0x1000-0x1040 (the end is the address after the code)"
        )
    return start, end


def code_ranges(given: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The same from Python. Raises UsageError."""
    for start, end in given:
        if not _is_range(start, end):
            raise UsageError(f"code: ({start:#x}, {end:#x}) is not the start and the end of a range")
    return tuple(given)


def _is_range(start: int, end: int) -> bool:
    return 0 <= start < end < 1 << 64
