"""Each instruction in Unicorn, once with the registers that it does not read as they are and once with others."""

import random
from functools import cache

import numpy as np
import pytest

from kinst.rewriter.arch.registry import dissector
from kinst.rewriter.liveness.effects import EVERYTHING, Effects, effector
from kinst.targets.arch.registry import arch_by_name
from tests.images import at_hand
from tests.rewriter.arch.real_code import real_code
from tests.rewriter.liveness.machine import Machine, drawn_values, poisoned

CODE = 0x40_0000
IMAGES = {
    "amd64": ("linux-amd64", "u-boot-amd64"),
    "arm64": ("linux-arm64", "u-boot-arm64"),
    "riscv64": ("linux-riscv64", "opensbi-1.6"),
}
DRAWN = 30  # of each image


def one(name: str, code: bytes) -> Effects:
    padded = np.frombuffer(code.ljust(64, b"\0"), np.uint8)
    return effector(arch_by_name(name)).effects(padded, np.zeros(1, np.int64), np.array([len(code)], np.uint8))


def broken(name: str, code: bytes, reads: int, writes: int, choose: random.Random) -> str:
    """What does not fit these effects; empty if they may be right."""
    values = drawn_values(name, choose)
    held = effector(arch_by_name(name)).held  # the stack pointer is read without being named
    other = poisoned(values, ~(reads | held) & EVERYTHING, choose)
    first, second = (Machine(name, code, CODE).run(CODE, given, 1) for given in (values, other))
    if first.fault or second.fault:
        return "" if (first.fault, first.stopped) == (second.fault, second.stopped) else "faults"
    if (first.path, first.stores, first.stopped) != (second.path, second.stores, second.stopped):
        return "does something else"
    for bit, before in values.items():
        # What is not overwritten may differ where it differed before, and nowhere else.
        may_differ = 0 if writes >> bit & 1 else before ^ other[bit]
        if (first.values[bit] ^ second.values[bit]) & ~may_differ & (1 << 64) - 1:
            return f"{bit} differs"
    return ""


@cache
def real(name: str) -> list[bytes]:
    """Instructions of real code, drawn from up to 200 functions of each image."""
    found, choose = list[bytes](), random.Random(1)
    for image in at_hand(*IMAGES[name]):
        code = max(real_code(image), key=lambda one: len(one.bytes))
        ranges = code.ranges[np.sort(choose.sample(range(len(code.ranges)), min(200, len(code.ranges))))]
        rows = dissector(arch_by_name(name)).dissect(code.bytes, code.address, ranges)
        for row in choose.sample(range(len(rows)), DRAWN):
            at = int(rows.address[row]) - code.address
            found.append(code.bytes[at : at + int(rows.size[row])].tobytes())
    return found


def noise(name: str) -> list[bytes]:
    """Words drawn at random: what real code has none of."""
    choose = random.Random(4)
    if name == "amd64":
        return []  # opcodes that no code has are not in the table
    if name == "riscv64":
        return [choose.randbytes(2 + 2 * (choose.getrandbits(32) & 1)) for _ in range(DRAWN)]
    return [choose.randbytes(4) for _ in range(DRAWN)]


@pytest.mark.parametrize("name", IMAGES)
def test_what_is_not_read_changes_nothing(name: str) -> None:
    choose = random.Random(2)
    wrong = {}
    for code in (*real(name), *noise(name)):
        effects = one(name, code)
        reads, writes = int(effects.reads[0]), int(effects.writes[0])
        if reads != EVERYTHING and (text := broken(name, code, reads, writes, choose)):
            wrong[code.hex()] = text
    assert wrong == {}


@pytest.mark.parametrize("name", IMAGES)
def test_an_analysis_that_is_wrong_is_found_out(name: str) -> None:
    choose = random.Random(3)
    codes = real(name)[:60]
    assert sum(bool(broken(name, code, 0, 0, choose)) for code in codes) >= 3
    assert sum(bool(broken(name, code, EVERYTHING, EVERYTHING, choose)) for code in codes) == 0
    assert sum(bool(broken(name, code, 0, EVERYTHING, choose)) for code in codes) > 48
