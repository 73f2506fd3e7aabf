"""D's functions on strings: bytes without NUL in, bytes or numbers out; NULL is 0. `size` is the option strsize, which
what is made anew keeps to with its NUL, as in the kernel, but for substr().

They behave as the kernel's DTrace does to the byte, where Perl and POSIX leave open what happens at the edges.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from kinst.runtime.trap.faults import Fault, FaultKind

NULL: Final = 0
_WORD: Final = (1 << 64) - 1
_SIGN: Final = 1 << 63
_DIGITS: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"
_HEX_PREFIX: Final = re.compile(rb"0[xX](?=[0-9a-fA-F])")
_CHUNK: Final = 1000  # digits that are made an integer at once: Python's int() is quadratic, and refuses many digits


def present(text: bytes | int) -> bytes:
    """A text is read where it is: NULL is nowhere. Raises Fault BADADDR."""
    if isinstance(text, int):
        raise Fault(FaultKind.BADADDR, text)
    return text


def signed(value: int) -> int:
    """The low 64 bits as a signed number."""
    value &= _WORD
    return value - (1 << 64) if value & _SIGN else value


# -- finding ----------------------------------------------------------------------------------------------------------


def strchr(text: bytes, character: int) -> bytes | int:
    """The rest of the text from the first such character; NULL if there is none."""
    at = text.find(character & 0xFF)
    return text[at:] if at >= 0 else NULL


def strrchr(text: bytes, character: int) -> bytes | int:
    """The rest of the text from the last such character; NULL if there is none."""
    at = text.rfind(character & 0xFF)
    return text[at:] if at >= 0 else NULL


def strstr(text: bytes, wanted: bytes) -> bytes | int:
    """The rest of the text from the first occurrence; NULL if there is none."""
    at = text.find(wanted)
    return text[at:] if at >= 0 else NULL


def index(text: bytes, wanted: bytes, position: int = 0) -> int:
    """Where `wanted` begins at or after a position, -1 if nowhere. As in Perl, positions below 0 mean 0, and the empty
    string is found at the end by every position beyond it."""
    position = max(position, 0)
    if position < len(text):
        return text.find(wanted, position)
    return -1 if wanted else len(text)


def rindex(text: bytes, wanted: bytes, position: int | None = None) -> int:
    """Where `wanted` begins at or before a position, -1 if nowhere; the empty string is found at 0 by those below 0."""
    if position is None or position > len(text):
        position = len(text)
    if position < 0:
        return -1 if wanted else 0
    return text.rfind(wanted, 0, position + len(wanted))


def substr(text: bytes, start: int, length: int | None, size: int) -> bytes:
    """Part of a text. A start below 0 counts from the end, a length below 0 stops so many short of it. What begins
    before the text begins with it if it reaches it."""
    count = size if length is None else length
    if start < 0:
        start += len(text)
        if start < 0 < start + count:
            count += start
            start = 0
    if not 0 <= start < len(text):
        return b""
    if count < 0:
        count += len(text) - start
    return text[start : start + max(count, 0)]


# -- making -----------------------------------------------------------------------------------------------------------


def strjoin(first: bytes, second: bytes, size: int) -> bytes:
    """Both. What does not fit a string is a fault: NOSCRATCH."""
    if len(first) + len(second) >= size:
        raise Fault(FaultKind.NOSCRATCH)
    return first + second


def basename(path: bytes) -> bytes:
    """The last component: "/" of slashes only, "." of the empty path."""
    bare = path.rstrip(b"/")
    if not bare:
        return b"/" if path else b"."
    return bare[bare.rfind(b"/") + 1 :]


def dirname(path: bytes) -> bytes:
    """All but the last component: "/" of slashes only, "." where there is but one component."""
    bare = path.rstrip(b"/")
    if not bare:
        return b"/" if path else b"."
    slash = bare.rfind(b"/")
    return b"." if slash < 0 else bare[:slash].rstrip(b"/") or b"/"


def cleanpath(path: bytes, size: int) -> bytes:
    """The path without "//", "/./" and "x/../". A trailing "/." stays, a trailing "/.." leaves a trailing slash, and
    output stops 5 bytes short of a string, since that much may be written at once."""
    limit = max(size - 5, 0)
    head, *components = path.split(b"/")
    head = head[:limit]
    kept: list[bytes] = []  # each with its slash
    used = len(head)  # bytes of head and kept
    last = len(components) - 1
    for number, component in enumerate(components):
        if used >= limit:
            break
        if component == b"..":
            if number == last:
                return _left_by_parent(head, kept)
            used -= len(kept[-1]) if kept else used
            head = head if kept else b""
            del kept[-1:]
        elif component not in (b"", b".") or number == last:
            kept.append(_fitting(b"/" + component, limit - used))
            used += len(kept[-1])
    return head + b"".join(kept)


def _left_by_parent(head: bytes, kept: list[bytes]) -> bytes:
    """What a trailing ".." leaves: the directory above with its slash. Of a path without slash before it: a byte."""
    return head + b"".join(kept[:-1]) + b"/" if kept else head[:1] or b"/"


def _fitting(component: bytes, room: int) -> bytes:
    """What is stored of "/component". The slash, dots and the character after them are written together: only then is
    the room looked at again."""
    together = 2 + (component[1:2] == b".") + (component[1:3] == b"..")
    return component[: max(together, room)]


def lltostr(value: int, base: int = 10) -> bytes:
    """A number as text: signed only in base 10, with 0x in base 16 and a leading 0 in base 8. ILLOP for other bases
    than 2 to 36."""
    _check_base(base)
    number = signed(value)
    if base == 10:
        return b"%d" % number
    digits = _in_base(number & _WORD, base)
    if base == 16:
        return b"0x" + digits
    return b"0" + digits if base == 8 and number else digits


def _in_base(value: int, base: int) -> bytes:
    digits = bytearray()
    while value:
        value, digit = divmod(value, base)
        digits.append(_DIGITS[digit])
    return bytes(reversed(digits)) or b"0"


def strtoll(text: bytes, base: int = 10) -> int:
    """The number at the start of a text, in 64 bits as they overflow: blanks and tabs, a sign, 0x in base 16, digits.
    0 where there are none. ILLOP for other bases than 2 to 36."""
    _check_base(base)
    text = text.lstrip(b" \t")
    is_negative = text.startswith(b"-")
    if text.startswith((b"-", b"+")):
        text = text[1:]
    if base == 16 and _HEX_PREFIX.match(text):
        text = text[2:]
    known = _DIGITS[:base]
    digits = text[: len(text) - len(text.lstrip(known + known.upper()))]
    value = 0
    for begin in range(0, len(digits), _CHUNK):
        chunk = digits[begin : begin + _CHUNK]
        value = (value * base ** len(chunk) + int(chunk, base)) & _WORD
    return signed(-value if is_negative else value)


def _check_base(base: int) -> None:
    if not 2 <= base <= 36:
        raise Fault(FaultKind.ILLOP)


# -- tokens -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _any_of(characters: bytes) -> re.Pattern[bytes]:
    return re.compile(b"[" + re.escape(characters) + b"]")


@dataclass(slots=True)
class Tokens:
    """What strtok() remembers between the clauses of one firing."""

    rest: bytes = b""

    def next(self, text: bytes | int, delimiters: bytes, size: int) -> bytes | int:
        """The next token, or as much of it as a string keeps with its NUL; NULL at the end. A NULL text goes on with
        what the last call left."""
        remaining = (self.rest if isinstance(text, int) else text).lstrip(delimiters or b"\0")
        found = _any_of(delimiters).search(remaining) if delimiters else None
        end = min(len(remaining) if found is None else found.start(), size - 1)
        self.rest = remaining[end:]
        return remaining[:end] if remaining else NULL
