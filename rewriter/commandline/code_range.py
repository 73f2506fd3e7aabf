"""What --force-code was given -> a range of addresses."""

from kinst.targets.errors import UsageError


def parse_code_range(text: str) -> tuple[int, int]:
    """``0x1000-0x1040`` -> start and end, which is the first address behind it. Raises UsageError."""
    first, dash, last = text.partition("-")
    try:
        start, end = int(first, 0), int(last, 0)
    except ValueError:
        dash = ""
        start, end = 0, 0
    if not dash or not 0 <= start < end < 1 << 64:
        raise UsageError(f"--force-code {text}: not a range such as 0x1000-0x1040 (the end is behind the code)")
    return start, end
