"""OpenBLAS: vectors, matrices and equations of many sizes in all four types."""

import sys
from ctypes import byref, c_char_p, c_double, c_float, c_int

from digests import Told, library

blas = library(sys.argv[1])
blas.openblas_get_corename.restype = c_char_p
print(blas.openblas_get_corename().decode())
_SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 48, 65, 97, 130)


def values(real, count, seed):
    return (real * count)(*(((number * 7919 + seed * 104_729) % 2003 - 1001) / 512 for number in range(count)))


for letter, real, parts in (("s", c_float, 1), ("d", c_double, 1), ("c", c_float, 2), ("z", c_double, 2)):
    one = (real * 2)(1.25, 0.5) if parts == 2 else real(1.25)
    scale = byref(one) if parts == 2 else one
    for size in _SIZES:
        told, count = Told(f"{letter} {size}"), size * size * parts
        a, b, c = (values(real, count, seed) for seed in (1, 2, 3))
        for left in (111, 112):
            for right in (111, 112):
                call = getattr(blas, f"cblas_{letter}gemm")
                call(101, left, right, size, size, size, scale, a, size, b, size, scale, c, size)
                told.add(bytes(c))
        getattr(blas, f"cblas_{letter}gemv")(101, 112, size, size, scale, a, size, b, 1, scale, c, 1)
        getattr(blas, f"cblas_{letter}axpy")(size, scale, a, 1, c, 1)
        getattr(blas, f"cblas_{letter}scal")(size, scale, c, 1)
        getattr(blas, f"cblas_{letter}swap")(size, b, 1, c, 1)
        getattr(blas, f"cblas_{letter}trsm")(101, 141, 121, 111, 131, size, size, scale, a, size, c, size)
        told.add(bytes(b), bytes(c), getattr(blas, f"cblas_i{letter}amax")(size, c, 1))
        for row in range(size):
            a[(row * size + row) * parts] += 50
        pivots, info, n = (c_int * size)(), c_int(), c_int(size)
        getattr(blas, f"{letter}gesv_")(byref(n), byref(n), a, byref(n), pivots, b, byref(n), byref(info))
        told.add(bytes(a), bytes(b), bytes(pivots), info.value)
        told.tell()
