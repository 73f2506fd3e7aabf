"""What the scripts beside this one share: fixed bytes, and lines that say what came of them."""

import ctypes
import hashlib
import sys

LENGTHS = [
    0,
    1,
    7,
    8,
    15,
    16,
    17,
    31,
    32,
    33,
    47,
    63,
    64,
    65,
    127,
    128,
    129,
    191,
    255,
    256,
    257,
    511,
    1000,
    2049,
    8197,
    16400,
]
if "few" in sys.argv[1:]:  # for emulated programs
    LENGTHS = [0, 1, 16, 65, 129, 257, 1000, 2049]


def fixed(size, seed=b""):
    """Bytes that look random, the same each time."""
    return hashlib.shake_128(b"kinst" + seed).digest(size)


def library(name):
    """A shared library, whose functions return what a C program would take for an int."""
    return ctypes.CDLL(name)


class Told:
    """Results, of which only the digest is printed."""

    def __init__(self, name):
        self.name, self.digest = name, hashlib.sha256()

    def add(self, *values):
        for value in values:
            self.digest.update(value if isinstance(value, bytes) else repr(value).encode())
            self.digest.update(b"|")

    def tell(self):
        print(self.name, self.digest.hexdigest()[:32])
        sys.stdout.flush()
