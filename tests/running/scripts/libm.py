"""The C library's mathematics, strings and formats, through Python's ctypes."""

import ctypes
from ctypes import c_double, c_float, c_int, c_size_t, c_void_p, create_string_buffer

from digests import Told, fixed, library

libm, libc = library("libm.so.6"), library("libc.so.6")
_ONE = (
    "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor j0 j1 lgamma log log10 "
    "log1p log2 logb nearbyint rint round sin sinh sqrt tan tanh tgamma trunc y0 y1"
)
_TWO = "atan2 copysign drem fdim fmax fmin fmod hypot nextafter pow remainder"
_VALUES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1e-320,
    1e308,
    -1e308,
    float("inf"),
    float("nan"),
    3.14159,
    1e15,
    1e-10,
    2.0,
    710.0,
]
_VALUES += [(number * 7919 % 10007 - 5000) / 97 for number in range(300)]
for suffix, real in (("", c_double), ("f", c_float)):
    for name in _ONE.split():
        call, told = getattr(libm, name + suffix), Told(name + suffix)
        call.restype, call.argtypes = real, [real]
        told.add(*(bytes(real(call(value))) for value in _VALUES))
        told.tell()
    for name in _TWO.split():
        call, told = getattr(libm, name + suffix), Told(name + suffix)
        call.restype, call.argtypes = real, [real, real]
        told.add(*(bytes(real(call(one, two))) for one in _VALUES[:60] for two in _VALUES[:60]))
        told.tell()
told = Told("strings")
data = create_string_buffer(fixed(9000).replace(b"\0", b"x"))
start = ctypes.addressof(data)
for name in ("strchr", "strrchr", "memchr", "rawmemchr", "strstr", "memmem", "strpbrk", "strchrnul", "memrchr"):
    getattr(libc, name).restype = c_void_p
libc.strlen.restype = libc.strspn.restype = libc.strcspn.restype = libc.strnlen.restype = c_size_t
for offset in range(0, 4000, 37):
    at = c_void_p(start + offset)
    told.add(
        libc.strlen(at),
        libc.strnlen(at, c_size_t(offset)),
        libc.strcspn(at, b"ab"),
        libc.strspn(at, bytes(range(1, 256))),
    )
    for byte in (1, 65, 200):
        for name, more in (("strchr", ()), ("strrchr", ()), ("memchr", (900,)), ("memrchr", (900,)), ("strchrnul", ())):
            found = getattr(libc, name)(at, c_int(byte), *(c_size_t(one) for one in more))
            told.add(found and found - start)
    found = libc.memmem(at, c_size_t(1000), data.raw[1000:1005], c_size_t(5))
    told.add(found and found - start)
    room = create_string_buffer(6000)
    libc.memcpy(room, at, c_size_t(offset))
    libc.memmove(ctypes.byref(room, offset % 60), room, c_size_t(offset))
    libc.memset(ctypes.byref(room, offset % 50), 7, c_size_t(offset // 3))
    libc.strncpy(ctypes.byref(room, 4000), at, c_size_t(offset % 300))
    told.add(
        room.raw, libc.memcmp(room, at, c_size_t(offset)) > 0, libc.strcmp(room, at) > 0, libc.strncmp(room, at, 9) > 0
    )
told.tell()
told = Told("formats")
for value in _VALUES:
    room = create_string_buffer(500)
    libc.snprintf(room, c_size_t(500), b"%.17g %e %20.3f %a", *(c_double(value) for _ in range(4)))
    libc.strtod.restype = c_double
    told.add(room.value, bytes(c_double(libc.strtod(room, None))))
told.tell()
values = (c_int * 3000)(*(number * 7919 % 10007 for number in range(3000)))
kind = ctypes.CFUNCTYPE(c_int, ctypes.POINTER(c_int), ctypes.POINTER(c_int))
libc.qsort(values, c_size_t(3000), c_size_t(4), kind(lambda a, b: a[0] - b[0]))
told = Told("sorted")
told.add(bytes(values))
told.tell()
