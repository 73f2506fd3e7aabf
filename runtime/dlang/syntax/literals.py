"""The text of a constant -> its value and type, by the rules of C as libdtrace applies them."""

import re
from typing import Final

from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError, Span

INTEGER: Final = r"(?:0[xX][0-9A-Fa-f]+|[0-9]+)(?:[uU][lL]{0,2}|[lL]{1,2}[uU]?)?"
_INTEGER_PARTS: Final = re.compile(r"(0[xX][0-9A-Fa-f]+|[0-9]+)([uUlL]*)")
_LARGEST: Final = 2**64 - 1
_LONGEST: Final = 24  # characters: nothing longer fits, and Python refuses to convert very many digits

# What C tries in turn; a decimal constant is never unsigned by itself.
_TYPES: Final = (
    ("int", 2**31 - 1),
    ("unsigned int", 2**32 - 1),
    ("long", 2**63 - 1),
    ("unsigned long", _LARGEST),
    ("long long", 2**63 - 1),
    ("unsigned long long", _LARGEST),
)

_ESCAPE: Final = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]*)|(.)|$)", re.DOTALL)
_KNOWN: Final = {
    b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v", b'"': b'"', b"\\": b"\\"
}  # fmt: skip


def _unescape(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, other = match.groups()
    if octal is not None:
        return bytes((int(octal, 8) & 0xFF,))
    if hexadecimal is not None:
        return bytes((int(hexadecimal[-2:] or b"0", 16),))
    return _KNOWN.get(other, b"\\" + other) if other is not None else b""


def encode(text: str) -> bytes:
    """The bytes of a program's text, even if they were not UTF-8."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def unescape(text: str) -> bytes:
    """Bytes with the escapes replaced that libdtrace knows (dt_string.c, stresc2chr). Of any other, those of the
    apostrophe and the question mark among them, the backslash stays, too."""
    raw = encode(text)
    return _ESCAPE.sub(_unescape, raw) if b"\\" in raw else raw


def string(span: Span, text: str) -> tree.StringLiteral:
    """The literal for what is between quotes. As in C, the first NUL ends it."""
    return tree.StringLiteral(span, unescape(text).partition(b"\0")[0])


def _type(value: int, suffix: str, span: Span, *, is_decimal: bool) -> str:
    is_unsigned = "u" in suffix
    step = 2 if is_decimal or is_unsigned else 1
    for name, limit in _TYPES[suffix.count("l") * 2 + is_unsigned :: step]:
        if value <= limit:
            return name
    raise DError("D_INT_OFLOW", f"integer constant {value:#x} cannot be represented in any integral type", span)


def digits(text: str, span: Span, *, tag: str = "D_INT_OFLOW", what: str = "") -> int:
    """The value of a constant, which has lost its suffix. Raises DError: D_INT_DIGIT, and `tag` for an overflow."""
    base = 16 if text[:2] in ("0x", "0X") else 8 if text[0] == "0" else 10
    body = (text[2:] if base == 16 else text).lstrip("0")
    if base == 8:
        for digit in body:
            if digit > "7":
                raise DError("D_INT_DIGIT", f"constant {text} contains invalid digit {digit}", span)
    value = int(body or "0", base) if len(body) <= _LONGEST else _LARGEST + 1
    if value > _LARGEST:
        raise DError(tag, f"{what}constant {text[:80]} results in integer overflow", span)
    return value


def integer(span: Span, text: str) -> tree.IntegerLiteral:
    """The literal for a number with its suffix. Raises DError: D_INT_DIGIT, D_INT_OFLOW."""
    parts = _INTEGER_PARTS.match(text)
    assert parts is not None
    number, suffix = parts.groups()
    value = digits(number, span)
    kind = _type(value, suffix.lower(), span, is_decimal=number[0] != "0")
    return tree.IntegerLiteral(span, value, kind, text)


def number(span: Span, value: int) -> tree.IntegerLiteral:
    """A literal for a number that is not in the program's text."""
    return tree.IntegerLiteral(span, value, _type(value, "", span, is_decimal=True), str(value))


def character(span: Span, text: str) -> tree.IntegerLiteral:
    """The literal for a character constant with its quotes: up to eight characters, the first the most significant.
    Raises DError: D_CHR_NULL, D_CHR_OFLOW."""
    if len(text) == 2:
        raise DError("D_CHR_NULL", "empty character constant", span)
    raw = unescape(text[1:-1])
    if len(raw) > 8:
        raise DError("D_CHR_OFLOW", "character constant is too long", span)
    value = int.from_bytes(raw, "big")
    return tree.IntegerLiteral(span, value, _type(value, "", span, is_decimal=True), text)
