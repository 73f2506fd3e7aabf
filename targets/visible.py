"""Text from a file or a guest -> text that a terminal only shows: what would act on it is written as an escape.

The one place that decides which characters those are: controls (ESC, NUL, the C1 set), and what Unicode calls a format,
a surrogate or unassigned, such as marks that change the direction of writing. `ls` and `git` do the same.
"""

import re
from typing import Final

_PLAIN: Final = r"\x20-\x7e"
_SUSPECT: Final = re.compile(f"[^{_PLAIN}]")
_SUSPECT_IN_LINES: Final = re.compile(f"[^{_PLAIN}\n\t]")
_SURROGATES: Final = range(0xDC80, 0xDD00)  # what Python makes of a byte that is not UTF-8


def visible(text: str) -> str:
    """A name, or part of a line. Newlines are escaped as well."""
    return text if text.isprintable() else _SUSPECT.sub(_escaped, text)


def visible_lines(text: str) -> str:
    """Text that may have several lines and columns."""
    return _SUSPECT_IN_LINES.sub(_escaped, text)


def text_of(data: bytes) -> str:
    """A name as a file has it, in bytes that should be UTF-8."""
    return visible(data.decode(errors="backslashreplace"))


def visible_bytes(data: bytes) -> bytes:
    """Output of lines, in bytes that need not be UTF-8."""
    return visible_lines(data.decode(errors="surrogateescape")).encode()


def _escaped(found: re.Match[str]) -> str:
    letter, code = found[0], ord(found[0])
    if letter.isprintable():
        return letter
    if code in _SURROGATES:
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 1 << 8 else f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"
