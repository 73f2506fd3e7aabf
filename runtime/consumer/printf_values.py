"""A recorded value -> what a printf conversion prints of it: numbers of their type's size, text, times, names,
floats."""

import functools
import socket
import struct
import time
from typing import Final

from kinst.runtime.clauses.environment import Stack, SymbolName, Symbols, Value
from kinst.runtime.clauses.guest.frame_names import frame_names
from kinst.runtime.dlang.types.types import DType, Dynamic, String, bare
from kinst.targets.c_types import size_of

NANOSECONDS: Final = 1_000_000_000
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_LETTERS: Final = zip(b'\0\a\b\f\n\r\t\v"\\', b'0abfnrtv"\\', strict=True)
_ESCAPES: Final = {code: b"\\%03o" % code for code in range(256) if not 32 <= code < 127} | {
    code: b"\\%c" % letter for code, letter in _LETTERS
}


def bits_of(kind: DType) -> int:
    """The bits of a number of this type; 64 if it is not one of C's numbers."""
    plain = bare(kind)
    size = None if isinstance(plain, String | Dynamic) else size_of(plain)
    return 8 * min(size or 8, 8)


def number(value: object) -> int:
    """A value as a number: the bits of a float, the address of a symbol; 0 for anything else."""
    match value:
        case int():
            return value
        case SymbolName(address=address):
            return address
        case bytes():
            return int.from_bytes(value[:8], "little")
        case _:
            return 0


def signed(value: int, bits: int) -> int:
    """The low bits as a signed number."""
    half = 1 << bits - 1
    return (value + half & (1 << bits) - 1) - half


def text(value: Value) -> bytes:
    """The bytes up to the NUL. A number in place of text is shown as its digits."""
    if isinstance(value, bytes):
        return value.partition(b"\0")[0]
    return str(number(value)).encode()


def escaped(value: bytes) -> bytes:
    """Text with C's escapes for quotes, backslashes and what is not printable."""
    return b"".join(_ESCAPES.get(code) or bytes((code,)) for code in value)


def wide_text(value: Value) -> bytes:
    """The wchar_t's (4 bytes each) up to the 0, as UTF-8."""
    data = value if isinstance(value, bytes) else b""
    codes = struct.unpack(f"<{len(data) // 4}I", data[: len(data) & ~3])
    end = codes.index(0) if 0 in codes else len(codes)
    return b"".join(map(wide_character, codes[:end]))


def wide_character(code: int) -> bytes:
    """One wchar_t as UTF-8."""
    code &= 0xFFFFFFFF
    return (chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\N{REPLACEMENT CHARACTER}").encode()


def calendar_time(value: Value) -> bytes:
    """%Y: nanoseconds since 1970 as `2003 Sep  3 10:23:41`, local time."""
    return _calendar_time(_seconds(value))


@functools.lru_cache(maxsize=64)
def _calendar_time(seconds: int) -> bytes:
    at = time.localtime(seconds)
    clock = f"{at.tm_hour:02d}:{at.tm_min:02d}:{at.tm_sec:02d}"
    return f"{at.tm_year} {_MONTHS[at.tm_mon - 1]} {at.tm_mday:2d} {clock}".encode()


def mail_date(value: Value) -> bytes:
    """%T: nanoseconds since 1970 as `Wed, 03 Sep 2003 10:23:41 PDT` (RFC 822), local time."""
    at = time.localtime(_seconds(value))
    clock = f"{at.tm_hour:02d}:{at.tm_min:02d}:{at.tm_sec:02d}"
    day = f"{_DAYS[at.tm_wday]}, {at.tm_mday:02d} {_MONTHS[at.tm_mon - 1]} {at.tm_year}"
    return f"{day} {clock} {at.tm_zone}".encode()


def _seconds(value: Value) -> int:
    """Nanoseconds as whole seconds, rounded toward zero as in C."""
    nanoseconds = signed(number(value), 64)
    seconds = abs(nanoseconds) // NANOSECONDS
    return -seconds if nanoseconds < 0 else seconds


def port(value: Value) -> bytes:
    """%P: the service of a TCP port, given in network byte order; its number if it has no name."""
    low = number(value) & 0xFFFF
    host_order = socket.ntohs(low)
    try:
        return socket.getservbyport(host_order).encode()
    except OSError:
        return str(host_order).encode()


def symbol(value: Value, symbols: Symbols, kind: str) -> bytes:
    """%a and %A: the name of an address. A value of sym(), mod() and the like is shown as its own kind."""
    if isinstance(value, SymbolName):
        return (value.name or symbols.describe(value.address, value.kind)).encode()
    return symbols.describe(number(value) & (1 << 64) - 1, kind).encode()


def stack_frames(value: Value, symbols: Symbols) -> list[bytes]:
    """The names of a stack's frames, innermost first."""
    if not isinstance(value, Stack):
        return []
    return [name.encode() for name in frame_names(value, symbols)]


def floating(value: Value, kind: DType) -> float:
    """A float, double or long double, from its bytes or from the integer that holds them."""
    plain = bare(kind)
    size = 8 if isinstance(plain, String | Dynamic) else size_of(plain) or 8
    data = value if isinstance(value, bytes) else (number(value) & (1 << 64) - 1).to_bytes(8, "little")
    data = data.ljust(size, b"\0")
    if size == 4:
        return float(struct.unpack("<f", data[:4])[0])
    return float(struct.unpack("<d", data[:8])[0]) if size == 8 else _long_double(data)


def _long_double(data: bytes) -> float:
    """A long double: x87's 80 bits, or IEEE's 128 on arm64 and riscv64. They are told apart by the upper 48 bits, which
    are x87's padding and zero."""
    word = int.from_bytes(data[:16], "little")
    if not word >> 80:
        sign_and_exponent, mantissa, fraction_bits = word >> 64, word & (1 << 64) - 1, 63
    else:
        sign_and_exponent, fraction_bits = word >> 112, 112
        mantissa = word & (1 << 112) - 1 | (1 << 112 if sign_and_exponent & 0x7FFF else 0)
    return _scaled(mantissa, (sign_and_exponent & 0x7FFF) - 16383 - fraction_bits, sign_and_exponent)


def _scaled(mantissa: int, exponent: int, sign_and_exponent: int) -> float:
    sign = -1.0 if sign_and_exponent >> 15 else 1.0
    if sign_and_exponent & 0x7FFF == 0x7FFF:
        return sign * float("inf")
    try:
        return sign * (mantissa * 2.0**exponent if exponent > -1000 else mantissa / 2 ** min(-exponent, 20000))
    except OverflowError:
        return sign * float("inf")
