"""Encodings that machines have in common whose instructions are words."""

from functools import cache

from kinst.rewriter.arch.patterns import Immediate
from kinst.rewriter.standalone.code.parts import Addresses, Encoding, Filled, Numbers, as_bytes, distances


@cache
def near(layout: Immediate, size: int = 4) -> Encoding:
    """The operand, an instruction without its displacement, with the distance to the value in it."""

    def fill(at: Addresses, value: Addresses, operand: Numbers) -> Filled:
        away = distances(at, value)
        bits = layout.bits_of(away)
        return as_bytes(operand | bits, size), layout.of(bits) == away

    return Encoding(size, fill)
