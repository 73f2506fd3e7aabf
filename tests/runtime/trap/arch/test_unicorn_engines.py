"""A reused engine is as a new one: the oracles must not see what ran on it before."""

import random
from collections.abc import Callable

import pytest

from tests.runtime.trap.arch import amd64_unicorn, risc_unicorn, unicorn_engines
from tests.runtime.trap.arch.risc_unicorn import ARM64_MODEL, RISCV64_MODEL, Model

START = 0x40_0000
# What no state has is read and then written (the top of the x87 stack, TPIDR_EL0, mscratch); then stores, arithmetic
# that leaves flags, and a vector.
AMD64 = bytes.fromhex("dfe0 d9e8 48891c24 4801d1 660fefc1 48893e 488937")
ARM64 = bytes.fromhex("45d03bd5 41d01bd5 010000f9 420003ab c61de46e 450040f9")
RISCV64 = bytes.fromhex("f3120334 23b0b500 b30dcd00 53f01202 03b70300 2330e300")


def amd64(rng: random.Random) -> object:
    low = [rng.getrandbits(46) for _ in amd64_unicorn.COMPARED]
    low[amd64_unicorn.COMPARED.index("rip")] = START
    low[amd64_unicorn.COMPARED.index("rflags")] = 2 | rng.getrandbits(1)
    state = amd64_unicorn.State(tuple(low), tuple(rng.getrandbits(128) for _ in range(16)))
    code = AMD64[: rng.choice((8, 11, 15, 18, 21))] + b"\x90" * 16
    return amd64_unicorn.Cpu({START: code}).run(state, START, 0, count=rng.randint(3, 6))


def risc(model: Model, code: bytes, nop: bytes) -> Callable[[random.Random], object]:
    def run(rng: random.Random) -> object:
        count = len(model.general) + (model.flags is not None)
        regs = [rng.getrandbits(37) & ~7 for _ in range(count)]
        if model.flags is not None:
            regs[-1] = rng.getrandbits(4) << 28 | 5
        state = risc_unicorn.State(tuple(regs), tuple(rng.getrandbits(64) for _ in model.vectors))
        given = code[: 4 * rng.randint(3, 6)] + nop * 6
        return risc_unicorn.Cpu(model, {START: given}).run(state, START, count=rng.randint(3, 6))

    return run


@pytest.mark.parametrize(
    "run",
    [
        amd64,
        risc(ARM64_MODEL, ARM64, bytes.fromhex("1f2003d5")),
        risc(RISCV64_MODEL, RISCV64, bytes.fromhex("13000000")),
    ],
    ids=["amd64", "arm64", "riscv64"],
)
def test_a_reused_engine_is_as_a_new_one(run: Callable[[random.Random], object]) -> None:
    reused = [run(random.Random(seed)) for seed in range(24)]
    for seed, outcome in enumerate(reused):
        unicorn_engines.forget()
        assert run(random.Random(seed)) == outcome, seed
