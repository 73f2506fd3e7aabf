"""riscv64 trampolines of standalone images, executed by Unicorn beside the code that they stand for."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from kinst.rewriter.arch.riscv64 import COMPRESSED, DISSECTOR, TABLE
from kinst.rewriter.disassemble import disassemble
from kinst.rewriter.liveness.riscv64 import EFFECTOR
from kinst.rewriter.patching.riscv64 import encode
from kinst.rewriter.standalone.code.trampoline import Clock, ImmovableError
from kinst.rewriter.standalone.riscv64.generator import GENERATOR
from kinst.rewriter.standalone.riscv64.short import shortened
from kinst.targets.arch.riscv64 import RISCV64
from kinst.targets.instruction import Verdict
from kinst.targets.standalone import WORD
from tests.gated import draws
from tests.rewriter.standalone.displaced import Machine, Place, check_records, counters, covered, drawn_place, outcome
from tests.rewriter.standalone.single import Record, jump_to, trampoline_of
from tests.runtime.trap.arch.risc_properties import invented
from tests.runtime.trap.arch.risc_unicorn import RISCV64_MODEL
from tests.vectors.riscv64 import GROUPS

MACHINE = Machine(RISCV64_MODEL, DISSECTOR, EFFECTOR, GENERATOR, 64)
UNFIT = ("rdtime", "rdcycle", "wfi")  # clocks tell how many instructions ran, and Unicorn ends with wfi
COPIED = [
    row.code for group in GROUPS for row in group if row.verdict == Verdict.COPY and not row.assembly.startswith(UNFIT)
]
MOVED = [
    sample.code
    for table, size in ((TABLE, 4), (COMPRESSED, 2))
    for found in invented(table, size, 40).values()
    for sample in found
]
NEAR = Place(0x8000_0000, 0x8000_8000, 0x8800_0000, 0)
FAR = Place(0x8000_0000, 0x8080_0000, 0x8800_0000, 1 << 30)
T2, A0 = 1 << 7, 1 << 10


def code_of(text: str, address: int) -> bytes:
    code = b""
    for line in text.split("; "):
        code += encode(line, address + len(code))
    return code


@pytest.mark.parametrize("number", draws(250, 700))
def test_groups_do_what_they_did(number: int) -> None:
    choose, outcomes = random.Random(1), Counter[str]()
    for _ in range(number):
        code = b"".join(choose.choice(choose.choice((COPIED, MOVED))) for _ in range(choose.choice((1, 2, 3, 4))))
        dead, has_stack = choose.getrandbits(32) & choose.getrandbits(32), choose.random() < 0.7
        outcomes[outcome(MACHINE, code, drawn_place(choose, 2), dead, choose, has_stack=has_stack)] += 1
    assert outcomes["same"] > number / 3
    assert outcomes["faults"] < number / 8


@pytest.mark.parametrize(
    ("text", "place", "dead", "expected"),
    [
        ("auipc ra, 16; jalr ra, 16(ra)", NEAR, 0, "same"),
        ("auipc ra, 16; jalr ra, 16(ra)", FAR, T2, "same"),
        ("auipc ra, 16; jalr ra, 16(ra)", FAR, 0, "no register is dead there to jump through"),
        ("auipc t1, 16; jalr zero, 16(t1)", FAR, 0, "same"),
        ("auipc ra, 16; jalr a0, 16(a0)", NEAR, T2, "it jumps through its own link register"),
        ("jalr ra, 16(ra)", NEAR, T2, "it jumps through its own link register"),
        ("c.jalr ra", NEAR, T2, "it jumps through its own link register"),
        ("c.jalr a0", NEAR, 0, "same"),
        ("jal ra, 0x80010000", FAR, T2, "same"),
        ("jal t2, 0x80010000", FAR, T2, "no register is dead there to jump through"),
        ("beq a0, a0, 0x80000100", FAR, T2, "same"),
        ("beq a0, a0, 0x80000100", FAR, 0, "a jump does not reach"),
        ("c.addi a0, 1; c.addi a1, 1; addi a2, a2, 1", FAR, T2, "same"),
        ("c.addi a0, 1; c.addi a1, 1; addi a2, a2, 1", FAR, A0, "a jump does not reach"),
        ("c.addi a0, 1; bne a0, zero, 0x80000000", NEAR, 0, "same"),
        ("c.addi a0, 1; bne a0, zero, 0x80000002", NEAR, 0, "a jump of the same trampoline leads to it"),
        ("jal ra, 0x80010000; c.addi a0, 1", NEAR, 0, "refused"),
    ],
)  # fmt: skip
def test_what_leaves_goes_where_it_went(text: str, place: Place, dead: int, expected: str) -> None:
    assert expected in outcome(MACHINE, code_of(text, place.site), place, dead, random.Random(2), has_stack=True)


def test_control_comes_back_to_the_end_of_a_group_only() -> None:
    """A call in the middle returns to where the jump is."""
    call, add = code_of("jal ra, 0x80010000", NEAR.site), code_of("c.addi a0, 1", 0)
    first, second = (covered(MACHINE, code, NEAR, 0, counters(NEAR), has_stack=True) for code in (call, add))
    assert first is not None and second is not None
    behind = replace(second[0], address=NEAR.site + 4)
    with pytest.raises(ImmovableError, match="control leaves in the middle of it"):
        trampoline_of(GENERATOR, [first[0], behind], NEAR.trampoline)


@pytest.mark.parametrize("seed", range(30))
def test_records_tell_what_was_there(seed: int) -> None:
    check_records(MACHINE, bytes.fromhex("0100"), random.Random(seed))


def test_records_tell_the_time() -> None:
    task = Record(NEAR.cells, 7, 3 * WORD, 0, (Clock(),))
    group = covered(MACHINE, bytes.fromhex("0100"), NEAR, 0, [task], has_stack=True)
    assert group is not None
    code = trampoline_of(GENERATOR, group, NEAR.trampoline)
    words = [int.from_bytes(code[at : at + 4], "little") for at in range(0, len(code), 2)]
    assert sum(word & 0xFFFF_F07F == 0xC010_2073 for word in words) == 1  # rdtime


# As GNU as 2.40 (-march=rv64gc) encodes them.
ENCODED = """
4111 addi sp, sp, -16
6111 addi sp, sp, -8
7d61 addi sp, sp, 496
0171 addi sp, sp, -512
13010120 addi sp, sp, 512
8542 addi t0, zero, 1
8152 addi t0, zero, -32
93020002 addi t0, zero, 32
8112 addi t0, t0, -32
9a82 addi t0, t1, 0
93021300 addi t0, t1, 1
16e0 sd t0, 0(sp)
feff sd t6, 504(sp)
aafd sd a0, 248(sp)
2330a120 sd a0, 512(sp)
2332a100 sd a0, 4(sp)
23b0a200 sd a0, 0(t0)
8262 ld t0, 0(sp)
fe70 ld ra, 504(sp)
6e75 ld a0, 248(sp)
033581ff ld a0, -8(sp)
9a92 add t0, t0, t1
33846240 sub s0, t0, t1
b3826202 mul t0, t0, t1
"""


@pytest.mark.parametrize("line", ENCODED.strip().splitlines())
def test_two_bytes_do_where_there_is_such_an_instruction(line: str) -> None:
    code, text = line.split(None, 1)
    assert shortened(encode(text, 0)).hex() == code


@pytest.mark.parametrize(("nop", "sizes"), [("0100", {2, 4}), ("13000000", {4})])
def test_instructions_of_two_bytes_are_only_where_the_code_has_some(nop: str, sizes: set[int]) -> None:
    group = covered(MACHINE, bytes.fromhex(nop), NEAR, 0, counters(NEAR), has_stack=True)
    assert group is not None
    code = trampoline_of(GENERATOR, group, NEAR.trampoline)
    assert {line.size for line in disassemble(RISCV64, code, NEAR.trampoline)} == sizes


def test_a_task_takes_dead_registers_and_else_the_stack() -> None:
    sizes = {}
    for dead in (0, T2, T2 | A0):
        for has_stack in (True, False):
            group = covered(MACHINE, bytes.fromhex("0100"), NEAR, dead, counters(NEAR), has_stack=has_stack)
            assert group is not None
            try:
                sizes[dead, has_stack] = len(trampoline_of(GENERATOR, group, NEAR.trampoline))
            except ImmovableError:
                sizes[dead, has_stack] = 0
    assert sizes[0, True] > sizes[T2, True] > sizes[T2 | A0, True] == sizes[T2 | A0, False] > 0
    assert sizes[0, False] == sizes[T2, False] == 0


def test_jumps_are_as_short_as_their_room() -> None:
    assert jump_to(GENERATOR, 0x8000_0000, 2, 0x8000_0100) == encode("c.j 0x80000100", 0x8000_0000)
    jump = encode("j 0x800f0000", 0x8000_0000)
    for size, filler in ((4, ""), (6, "0290"), (8, "73001000"), (10, "730010000290")):
        assert jump_to(GENERATOR, 0x8000_0000, size, 0x800F_0000) == jump + bytes.fromhex(filler)
    for size, target, dead in ((2, 0x8000_1000, T2), (4, 0x8010_0000, T2), (8, 0x8010_0000, A0)):
        with pytest.raises(ImmovableError, match="a jump does not reach"):
            jump_to(GENERATOR, 0x8000_0000, size, target, dead)


def test_a_far_jump_goes_by_a_register_that_is_dead() -> None:
    far = code_of("auipc t2, 0x801; jalr zero, -2048(t2)", 0x8000_0000)
    assert jump_to(GENERATOR, 0x8000_0000, 10, 0x8080_0800, T2 | A0) == far + bytes.fromhex("0290")


STAYS = """
    addi sp, sp, -16; c.addi sp, 8; add sp, sp, a0; c.add sp, a0; sub sp, sp, t0; andi sp, sp, -16
    addi sp, s0, -32; mv sp, s0; c.mv sp, s0
    ld a0, 8(sp); sd sp, 0(a0); mv a0, sp; c.jr a0; j 0x80000000; csrw sscratch, sp; fence
"""
SWITCHES = """
    mv sp, a0; c.mv sp, tp; addi sp, gp, 8; add sp, tp, a0; sub sp, a0, sp
    lui sp, 16; auipc sp, 16; li sp, 0; c.li sp, 0; ld sp, 0(a0); amoadd.d sp, a0, (a1); csrrw sp, sscratch, sp
    sret; mret
"""
UNNAMED = {False: ("6161", "0808"), True: ("0261",)}  # c.addi16sp, c.addi4spn; c.ldsp sp, 0(sp)


def test_what_switches_stacks_is_known() -> None:
    for text, expected in ((STAYS, False), (SWITCHES, True)):
        codes = [encode(line, 0x8000_0000) for part in text.strip().splitlines() for line in part.split("; ")]
        codes += map(bytes.fromhex, UNNAMED[expected])
        sizes = np.array([len(code) for code in codes], np.uint8)
        offsets = np.cumsum(sizes, dtype=np.int64) - sizes
        content = np.frombuffer(b"".join(codes) + bytes(32), np.uint8)
        found, _ = GENERATOR.stack_roles(content, offsets, sizes, EFFECTOR.effects(content, offsets, sizes))
        assert [code.hex() for code, one in zip(codes, found, strict=True) if one != expected] == []
