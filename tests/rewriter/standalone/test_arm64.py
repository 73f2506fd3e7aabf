"""arm64 trampolines of standalone images, executed by Unicorn beside the code that they stand for."""

import random
from collections import Counter

import numpy as np
import pytest

from kinst.rewriter.arch.arm64 import DISSECTOR, TABLE
from kinst.rewriter.liveness.arm64 import EFFECTOR
from kinst.rewriter.standalone.arm64.generator import GENERATOR
from kinst.rewriter.standalone.code.trampoline import Clock, ImmovableError
from kinst.targets.arch.arm64 import BREAKPOINT, Kind
from kinst.targets.instruction import Verdict
from kinst.targets.standalone import WORD
from tests.gated import draws
from tests.rewriter.standalone.displaced import Machine, Place, check_records, counters, covered, drawn_place, outcome
from tests.rewriter.standalone.single import Record, jump_to, trampoline_of
from tests.runtime.trap.arch.risc_properties import invented
from tests.runtime.trap.arch.risc_unicorn import ARM64_MODEL
from tests.vectors.arm64 import GROUPS

MACHINE = Machine(ARM64_MODEL, DISSECTOR, EFFECTOR, GENERATOR, 128)
COPIED = [
    row.code
    for group in GROUPS
    for row in group
    if row.verdict == Verdict.COPY and not row.assembly.startswith(("mrs", "wf"))
]
BC = 1 << 4  # in b.cond, another instruction that Unicorn's CPU lacks
MOVED = [
    sample.code
    for kind, found in invented(TABLE, 4, 60).items()
    for sample in found
    if kind != Kind.B_COND or not sample.code[0] & BC
]
NEAR = Place(0x8000_0000, 0x8000_8000, 0x8800_0000, 0)
FAR = Place(0x8000_0000, 0x8200_0000, 0x8800_0000, 1 << 30)
X9, X10, X11 = (1 << number for number in (9, 10, 11))


@pytest.mark.parametrize("number", draws(120, 600))
def test_groups_do_what_they_did(number: int) -> None:
    choose, outcomes = random.Random(1), Counter[str]()
    for _ in range(number):
        code = b"".join(choose.choice(choose.choice((COPIED, MOVED))) for _ in range(choose.choice((1, 2, 3))))
        dead, has_stack = choose.getrandbits(32) & choose.getrandbits(32), choose.random() < 0.7
        outcomes[outcome(MACHINE, code, drawn_place(choose, 4), dead, choose, has_stack=has_stack)] += 1
    assert outcomes["same"] > number / 2.2
    assert outcomes["faults"] < number / 4.5


# GNU as wrote the words; addresses are relative to their own.
LITERALS = """
40000018 ldr w0, .+8
40000058 ldr x0, .+8
40000098 ldrsw x0, .+8
5f000058 ldr xzr, .+8
4000001c ldr s0, .+8
4000005c ldr d0, .+8
4000009c ldr q0, .+8
450000d8 prfm pldl3strm, .+8
40000010 adr x0, .+8
5f000010 adr xzr, .+8
400000d0 adrp x0, .+0xa000
5f0000d0 adrp xzr, .+0xa000
"""


@pytest.mark.parametrize("has_stack", [True, False])
@pytest.mark.parametrize("place", [NEAR, FAR], ids=["near", "far"])
@pytest.mark.parametrize("line", LITERALS.strip().splitlines())
def test_what_is_read_beside_code_is_read_from_there(line: str, place: Place, has_stack: bool) -> None:  # noqa: FBT001
    dead = 0 if has_stack else X9 | X10 | X11
    one = outcome(MACHINE, bytes.fromhex(line.split()[0]), place, dead, random.Random(2), has_stack=has_stack)
    assert one == "same"


@pytest.mark.parametrize(
    ("code", "place", "expected"),
    [
        ("c0033fd6", NEAR, "it jumps through its own link register"),  # blr x30
        ("20013fd6", FAR, "same"),  # blr x9
        ("00000094", FAR, "same"),  # bl .
        (
            "00000096",
            Place(0x9000_0000, 0x9000_1000, 0x8800_0000, 0),
            "its target is out of a jump's reach",
        ),  # bl .-0x8000000
        ("0f000054", FAR, "same"),  # b.nv ., which always goes
        ("2000001400000014", NEAR, "refused"),
        ("8a000034000100b5", NEAR, "same"),  # cbz w10, .+16; cbnz x0, .+32
        ("2a000034000100b5", NEAR, "a jump of the same trampoline leads to it"),  # cbz w10, .+4
    ],
)
def test_what_leaves_goes_where_it_went(code: str, place: Place, expected: str) -> None:
    assert expected in outcome(MACHINE, bytes.fromhex(code), place, 0, random.Random(2), has_stack=True)


@pytest.mark.parametrize("seed", range(30))
def test_records_tell_what_was_there(seed: int) -> None:
    check_records(MACHINE, bytes.fromhex("1f2003d5"), random.Random(seed))


def test_records_tell_the_time() -> None:
    task = Record(NEAR.cells, 7, 3 * WORD, 0, (Clock(),))
    group = covered(MACHINE, bytes.fromhex("1f2003d5"), NEAR, 0, [task], has_stack=True)
    assert group is not None
    words = np.frombuffer(
        trampoline_of(GENERATOR, group, NEAR.trampoline)[: -len(bytes.fromhex("1f2003d5")) - 4], "<u4"
    )
    assert np.count_nonzero(words & 0xFFFF_FFE0 == 0xD53B_E040) == 1  # mrs cntvct_el0


def test_a_task_takes_dead_registers_and_else_the_stack() -> None:
    sizes = {}
    for dead in (0, X9, X9 | X10 | X11):
        for has_stack in (True, False):
            group = covered(MACHINE, bytes.fromhex("1f2003d5"), NEAR, dead, counters(NEAR), has_stack=has_stack)
            assert group is not None
            try:
                sizes[dead, has_stack] = len(trampoline_of(GENERATOR, group, NEAR.trampoline))
            except ImmovableError:
                sizes[dead, has_stack] = 0
    assert sizes[0, True] > sizes[X9, True] > sizes[X9 | X10 | X11, True] == sizes[X9 | X10 | X11, False] > 0
    assert sizes[0, False] == sizes[X9, False] == 0


def test_a_jump_is_filled_up_with_breakpoints() -> None:
    assert jump_to(GENERATOR, 0x8000_0000, 12, 0x8000_0100) == bytes.fromhex("40000014") + BREAKPOINT * 2
    with pytest.raises(ImmovableError, match="a jump does not reach"):
        jump_to(GENERATOR, 0x8000_0000, 4, 0x8800_0000)


STAYS = """
ff4300d1 sub sp, sp, #16
bf430091 add sp, x29, #16
bf030091 mov sp, x29
ff632acb sub sp, sp, x10
ff638a8b add xzr, xzr, x10, asr #24
ff0301f1 cmp sp, #64
1f0001f2 tst x0, #0x8000000000000000
fd030091 mov x29, sp
fd7bbfa9 stp x29, x30, [sp, #-16]!
004118d5 msr sp_el0, x0
c0035fd6 ret
"""
SWITCHES = """
3f010091 mov sp, x9
1f400091 add sp, x0, #16
3fed7c92 and sp, x9, #0xfffffffffffffff0
3f632acb sub sp, x25, x10
bf4100d5 msr spsel, #1
e0039fd6 eret
ff0b9fd6 eretaa
"""


def test_what_switches_stacks_is_known() -> None:
    for text, expected in ((STAYS, False), (SWITCHES, True)):
        lines = text.strip().splitlines()
        content = np.frombuffer(b"".join(bytes.fromhex(line.split()[0]) for line in lines) + bytes(32), np.uint8)
        offsets = np.arange(len(lines), dtype=np.int64) * 4
        sizes = np.full(len(lines), 4, np.uint8)
        found, _ = GENERATOR.stack_roles(content, offsets, sizes, EFFECTOR.effects(content, offsets, sizes))
        assert [line for line, one in zip(lines, found, strict=True) if one != expected] == []
