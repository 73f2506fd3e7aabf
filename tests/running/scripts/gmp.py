"""GMP: arithmetic of numbers of one to some thousand words."""

import sys
from ctypes import c_char_p, c_size_t, c_ulong, create_string_buffer

from digests import Told, fixed, library

gmp = library("libgmp.so.10")
gmp.__gmpz_sizeinbase.restype = c_size_t
gmp.__gmpz_get_str.restype = c_char_p
_SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 23, 31, 32, 48, 64, 100, 128, 200, 300, 500, 1000, 2000)


def value(data=b""):
    room = create_string_buffer(16)
    gmp.__gmpz_init(room)
    gmp.__gmpz_import(room, c_size_t(len(data)), 1, c_size_t(1), 0, c_size_t(0), data)
    return room


def text(number):
    room = create_string_buffer(gmp.__gmpz_sizeinbase(number, 62) + 2)
    return gmp.__gmpz_get_str(room, 62, number)


for words in _SIZES if "few" not in sys.argv[1:] else _SIZES[::3]:
    told = Told(f"{words} words")
    for other in (1, words // 2 + 1, words):
        one, two, out, rest = value(fixed(8 * words)), value(fixed(8 * other, b"2")), value(), value()
        for name in ["add", "sub", "mul", "and", "ior", "xor", "com", "gcd", "lcm"]:
            arguments = (out, one) if name == "com" else (out, one, two)
            getattr(gmp, f"__gmpz_{name}")(*arguments)
            told.add(text(out))
        for name in ("tdiv_qr", "fdiv_qr"):
            getattr(gmp, f"__gmpz_{name}")(out, rest, one, two)
            told.add(text(out), text(rest))
        gmp.__gmpz_setbit(two, c_ulong(0))
        gmp.__gmpz_powm(out, one, value(fixed(min(8 * other, 256 if words < 64 else 16), b"3")), two)
        told.add(text(out), gmp.__gmpz_jacobi(one, two), gmp.__gmpz_invert(out, one, two), text(out))
        gmp.__gmpz_sqrtrem(out, rest, one)
        told.add(text(out), text(rest))
        for shift in (1, 7, 63, 64, 65, 130):
            gmp.__gmpz_mul_2exp(out, one, c_ulong(shift))
            gmp.__gmpz_fdiv_q_2exp(rest, one, c_ulong(shift))
            told.add(text(out), text(rest), gmp.__gmpz_popcount(out), gmp.__gmpz_hamdist(out, one))
        gmp.__gmpz_mul(out, one, one)
        told.add(text(out), gmp.__gmpz_probab_prime_p(two, 3) if words < 40 else 0)
    told.tell()
