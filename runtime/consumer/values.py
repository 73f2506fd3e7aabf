"""Recorded values -> text where there is no format: trace(), keys of aggregations, stacks, symbols, hex dumps.

libdtrace sees only the size of a record here, not its type: 1 and 2 bytes are printed as unsigned integers, 4 and 8 as
signed ones. The widths: docs/facts/dlang.md, Values without a format.
"""

from collections.abc import Callable
from typing import Final

from kinst.runtime.clauses.environment import Stack, SymbolName, Symbols, Value
from kinst.runtime.clauses.guest.frame_names import frame_names
from kinst.runtime.dlang.types.types import DType, Dynamic, String, bare
from kinst.targets.c_types import size_of

Renderer = Callable[[Value], bytes]

TRACE_TEXT: Final = 33  # columns of a string in trace()
KEY_TEXT: Final = 50  # columns of a string as a key
PACKED_TEXT: Final = 16  # columns of a string as a key under agghist and aggpack
_WIDTHS: Final = {1: 3, 2: 5, 4: 8, 8: 16}
_HEX_HEADER: Final = b"\n" + b" " * 11 + b"".join(b"  %c" % digit for digit in b"0123456789abcdef")
_HEX_TITLE: Final = _HEX_HEADER + b"  0123456789abcdef\n"
_PRINTABLE: Final = bytes(byte if 0x20 <= byte <= 0x7E else ord(".") for byte in range(256))
# The characters that libdtrace's dt_print_bytes() prints as text: printable ones, white space, backspace, bell.
_TEXT: Final = bytes(range(0x20, 0x7F)) + b"\a\b\t\n\v\f\r"


def integer_width(kind: DType) -> int:
    """The columns of an integer of this type; 0 for any other type."""
    return _WIDTHS.get(_size(kind), 0)


def _size(kind: DType) -> int:
    plain = bare(kind)
    return 0 if isinstance(plain, String | Dynamic) else size_of(plain) or 0


class ValueText:
    """Renders values without a format, with the options as they were when it was made."""

    def __init__(self, symbols: Symbols, *, stack_indent: int, string_size: int, is_raw: bool) -> None:
        """`is_raw` is the option rawbytes, `string_size` strsize, `stack_indent` stackindent (columns)."""
        self._symbols = symbols
        self._indent = b" " * stack_indent
        self._string_size = string_size
        self._is_raw = is_raw

    def traced(self, kind: DType, *, is_quiet: bool) -> Renderer:
        """The renderer of trace() for values of this type. `is_quiet`: without padding."""
        if is_quiet:
            return self._renderer(kind, b"%d", b"%b")
        return self._renderer(kind, b" %%%dd" % integer_width(kind), b"  %%-%ds" % TRACE_TEXT)

    def key(self, kind: DType, *, is_packed: bool = False) -> Renderer:
        """The renderer of an aggregation's key of this type. `is_packed`: under agghist and aggpack."""
        text = b" %%%ds" % PACKED_TEXT if is_packed else b"  %%-%ds" % KEY_TEXT
        return self._renderer(kind, b" %%%dd" % integer_width(kind), text)

    def _renderer(self, kind: DType, number: bytes, text: bytes) -> Renderer:
        plain, size = bare(kind), _size(kind)
        if isinstance(plain, Dynamic):
            return self.dynamic
        if isinstance(plain, String):
            return lambda value: self._string(value, text)
        if size not in _WIDTHS:
            return lambda value: self._bytes(value, text)
        if size >= 4:
            half, mask = 1 << 8 * size - 1, (1 << 8 * size) - 1
            return lambda value: number % ((_number(value) + half & mask) - half)
        mask = (1 << 8 * size) - 1
        return lambda value: number % (_number(value) & mask)

    def dynamic(self, value: Value) -> bytes:
        """A stack or the name of an address, as an action or a key."""
        match value:
            case Stack():
                return self.stack(value)
            case SymbolName(kind=kind, address=address, name=name):
                return b"  %-50s" % (name or self._symbols.describe(address, kind)).encode()
            case _:
                raise TypeError(f"neither stack nor symbol: {value!r}")

    def stack(self, stack: Stack) -> bytes:
        """A newline, then a line for each frame."""
        names = frame_names(stack, self._symbols)
        return b"\n" + b"".join([b"%b%b\n" % (self._indent, name.encode()) for name in names])

    def _string(self, value: Value, text: bytes) -> bytes:
        """A string. If any character of it is not text, libdtrace dumps its whole buffer of strsize bytes."""
        assert isinstance(value, bytes)
        if self._is_raw or value.translate(None, _TEXT):
            return hex_dump(value.ljust(self._string_size, b"\0"))
        return text % value

    def _bytes(self, value: Value, text: bytes) -> bytes:
        """An array or struct: as text if all bytes are, except for NULs at the end; else a hex dump."""
        assert isinstance(value, bytes)
        end = len(value.rstrip(b"\0"))
        if not value:
            return b""
        if self._is_raw or not end or value[:end].translate(None, _TEXT):
            return hex_dump(value)
        return text % value[:end]


def _number(value: Value) -> int:
    """A number, or bytes of the size of an integer, which are shown as one."""
    if isinstance(value, int):
        return value
    assert isinstance(value, bytes)
    return int.from_bytes(value, "little")


def hex_dump(data: bytes) -> bytes:
    """Rows of 16 bytes, in hexadecimal and as ASCII."""
    digits, text = data.hex(" "), data.translate(_PRINTABLE).decode("ascii")
    rows = [
        f"     {at:5x}: {digits[3 * at : 3 * at + 47]:<47}  {text[at : at + 16]}\n" for at in range(0, len(data), 16)
    ]
    return _HEX_TITLE + "".join(rows).encode("ascii")
