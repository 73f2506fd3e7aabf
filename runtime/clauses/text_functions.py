"""D's functions on strings: bytes without NUL in, bytes or numbers out; NULL is 0. `size` is the option strsize. As in
the kernel, new strings with their NUL are truncated to it, except those of substr().

The DTrace Guide defines them by Perl's and POSIX' functions. In corner cases that these leave open, or where the kernel
deviates from them, the kernel's dtrace_dif_subr() is followed.
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
_CHUNK: Final = 1000  # digits that are converted at once: Python's int() is quadratic, and refuses very many digits


def present(text: bytes | int) -> bytes:
    """The text itself, for a function that reads it. Raises Fault BADADDR for NULL."""
    if isinstance(text, int):
        raise Fault(FaultKind.BADADDR, text)
    return text


def signed(value: int) -> int:
    """The low 64 bits as a signed number."""
    value &= _WORD
    return value - (1 << 64) if value & _SIGN else value


# -- finding ----------------------------------------------------------------------------------------------------------


def strchr(text: bytes, character: int) -> bytes | int:
    """The rest of the text from the first such character, which may be the NUL at its end; NULL if there is none."""
    wanted = character & 0xFF
    at = text.find(wanted) if wanted else len(text)
    return text[at:] if at >= 0 else NULL


def strrchr(text: bytes, character: int) -> bytes | int:
    """The rest of the text from the last such character, which may be the NUL at its end; NULL if there is none."""
    wanted = character & 0xFF
    at = text.rfind(wanted) if wanted else len(text)
    return text[at:] if at >= 0 else NULL


def strstr(text: bytes, wanted: bytes) -> bytes | int:
    """The rest of the text from the first occurrence; NULL if there is none."""
    at = text.find(wanted)
    return text[at:] if at >= 0 else NULL


def index(text: bytes, wanted: bytes, position: int = 0) -> int:
    """Where `wanted` first begins at or after a position; -1 if nowhere. As in Perl, a position below 0 means 0, and
    from a position beyond the end the empty string is found at the end."""
    position = max(position, 0)
    if position < len(text):
        return text.find(wanted, position)
    return -1 if wanted else len(text)


def rindex(text: bytes, wanted: bytes, position: int | None = None) -> int:
    """Where `wanted` last begins at or before a position; -1 if nowhere. From a position below 0 the empty string is
    found at 0."""
    if position is None or position > len(text):
        position = len(text)
    if position < 0:
        return -1 if wanted else 0
    return text.rfind(wanted, 0, position + len(wanted))


def substr(text: bytes, start: int, length: int | None, size: int) -> bytes:
    """Part of a text. A start below 0 counts from the end; a length below 0 stops that many characters before the end.
    A part that starts before the text begins with the text, if it reaches that far."""
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
    """Both texts joined. Raises Fault NOSCRATCH if they and the NUL do not fit into a string."""
    if len(first) + len(second) >= size:
        raise Fault(FaultKind.NOSCRATCH)
    return first + second


def basename(path: bytes) -> bytes:
    """The last component of a path: "/" for a path of slashes only, "." for the empty path."""
    bare = path.rstrip(b"/")
    if not bare:
        return b"/" if path else b"."
    return bare[bare.rfind(b"/") + 1 :]


def dirname(path: bytes) -> bytes:
    """All but the last component of a path: "/" for a path of slashes only, "." for a single component."""
    bare = path.rstrip(b"/")
    if not bare:
        return b"/" if path else b"."
    slash = bare.rfind(b"/")
    return b"." if slash < 0 else bare[:slash].rstrip(b"/") or b"/"


def cleanpath(path: bytes, size: int) -> bytes:
    """The path without "//", "/./" and "x/../". A trailing "/." stays, and a trailing "/.." leaves a trailing slash.
    The result ends 5 bytes before strsize: the kernel checks its space only once for the "/", two dots, one more
    character and the NUL."""
    limit = max(size - 5, 0)
    head, *components = path.split(b"/")
    head = head[:limit]
    kept: list[bytes] = []  # components, each with its slash
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
    """What a trailing ".." leaves: the directory above with its slash. Without a slash before it, the kernel's loop
    stops at the first byte and keeps that."""
    return head + b"".join(kept[:-1]) + b"/" if kept else head[:1] or b"/"


def _fitting(component: bytes, space: int) -> bytes:
    """What the kernel stores of "/component". It writes the slash, the dots and the character after them together, and
    checks its space only then."""
    together = 2 + (component[1:2] == b".") + (component[1:3] == b"..")
    return component[: max(together, space)]


def lltostr(value: int, base: int = 10) -> bytes:
    """A number as text: signed only in base 10, with 0x in base 16 and a leading 0 in base 8. Raises Fault ILLOP unless
    the base is 2 to 36."""
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
    """The number at the start of a text, modulo 2**64: blanks and tabs, a sign, 0x in base 16, digits; 0 if there are
    no digits. Raises Fault ILLOP unless the base is 2 to 36."""
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
    """The state of strtok() between calls in one firing. The kernel keeps it per probe firing, not per thread."""

    rest: bytes = b""

    def forget(self) -> None:
        """A firing begins: there is nothing to continue."""
        self.rest = b""

    def next(self, text: bytes | int, delimiters: bytes, size: int) -> bytes | int:
        """The next token, or as much of it as fits into a string with its NUL; NULL at the end. A NULL text continues
        with what the last call left."""
        remaining = (self.rest if isinstance(text, int) else text).lstrip(delimiters or b"\0")
        found = _any_of(delimiters).search(remaining) if delimiters else None
        end = min(len(remaining) if found is None else found.start(), size - 1)
        self.rest = remaining[end:]
        return remaining[:end] if remaining else NULL
