"""Vector and floating-point instructions in Unicorn: which general registers each changes, and which it may."""

import random

import numpy as np

from kinst.rewriter.addresses.arm64 import Arm64Registers
from tests.rewriter.liveness.machine import Machine, drawn_values

CODE = 0x40_0000
# What is fixed, and which bits are drawn: vector loads and stores of three groups; vector and floating-point arithmetic
# of four; conversions and fmov; umov and smov.
DRAWN = (
    (0x0C00_0000, 0x41BF_FFFF),
    (0x2C00_0000, 0xD3FF_FFFF),
    (0x3C00_0000, 0xC3FF_FFFF),
    (0x0E00_0000, 0x71FF_FFFF),
    (0x1E20_0000, 0xE0DF_FFFF),
    (0x1E20_0000, 0x80DF_03FF),
    (0x1E00_0000, 0x80DF_FFFF),
    (0x0E00_2C00, 0x401F_13FF),
)
EACH = 40


def changed(word: int, choose: random.Random) -> int | None:
    """The registers that an instruction has changed, as bits; None if it is none, or faults."""
    values = drawn_values("arm64", choose)
    outcome = Machine("arm64", word.to_bytes(4, "little"), CODE).run(CODE, values, 1)
    if outcome.fault:
        return None
    return sum(1 << bit for bit, value in outcome.values.items() if bit < 31 and value != values[bit])


def test_general_registers_that_vector_instructions_change() -> None:
    choose = random.Random(5)
    words = [fixed | choose.getrandbits(32) & drawn for fixed, drawn in DRAWN for _ in range(EACH)]
    code = np.frombuffer(
        b"".join(word.to_bytes(4, "little") for word in words).ljust(4 * len(words) + 32, b"\0"), np.uint8
    )
    may = Arm64Registers().may_write(code, np.arange(len(words)) * 4)
    seen = [changed(word, choose) for word in words]
    wrong = {
        f"{word:#x}": hex(bits)
        for word, bits, more in zip(words, seen, may.tolist(), strict=True)
        if bits and bits & ~more
    }
    assert wrong == {}
    ran = [bits for bits in seen if bits is not None]
    assert len(ran) > 60
    assert sum(map(bool, ran)) > 30
    assert sum(map(int.bit_count, may.tolist())) < len(words)  # one register, or none
