import re
from collections.abc import Iterator

import capstone
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinst.rewriter.arch.patterns import PatternTable
from kinst.rewriter.arch.riscv64 import COMPRESSED, DISSECTOR, TABLE
from kinst.targets.arch.riscv64 import C_NOP, EBREAK, RISCV64, Kind
from kinst.targets.instruction import Flow, Instructions, Reason, Verdict
from tests.gated import long_where
from tests.images import at_hand
from tests.rewriter.arch.real_code import Code, real_code
from tests.vectors.riscv64 import GROUPS
from tests.vectors.rows import PC

ROWS = [row for group in GROUPS for row in group]
IMAGES = at_hand("opensbi-1.1", "opensbi-1.6", "u-boot-riscv64", "u-boot-riscv64-smode", "linux-riscv64")
DIRECT = (Flow.JUMP, Flow.BRANCH, Flow.CALL)


def dissect(code: bytes, address: int = PC) -> Instructions:
    return DISSECTOR.dissect(np.frombuffer(code, np.uint8), address, np.array([[0, len(code)]], np.int64))


def code_of(*instructions: int) -> bytes:
    return b"".join(word.to_bytes(4 if word & 3 == 3 else 2, "little") for word in instructions)


def reasons(*instructions: int) -> list[Reason]:
    return [Reason(value) for value in dissect(code_of(*instructions)).reason]


def test_there_are_vectors_of_every_kind() -> None:
    assert len({row.code for row in ROWS}) >= 300
    assert {row.kind for row in ROWS} == set(Kind)


def test_instructions_are_classified() -> None:
    """In one test, as in the next: a test costs more than an instruction."""
    for row in ROWS:
        found = dissect(row.code)

        assert (found.kind[0], found.verdict[0], found.flow[0]) == (row.kind, row.verdict, row.flow), row
        assert found.reason[0] == row.reason, row
        assert found.size.tolist() == [len(row.code)], row


def test_a_direct_flow_has_its_target() -> None:
    for row in (row for row in ROWS if row.flow in DIRECT and row.verdict == Verdict.EMULATE):
        shift = re.search(r"\.([+-](?:0x)?[0-9a-f]+)?$", row.assembly)
        assert shift
        assert dissect(row.code).target.tolist() == [PC + int(shift[1] or "0", 0)], row


@pytest.mark.parametrize(("table", "bits"), [(TABLE, 32), (COMPRESSED, 16)])
def test_the_lookup_agrees_with_trying_every_pattern(table: PatternTable, bits: int) -> None:
    """The key only saves time: the first pattern whose mask fits is the answer."""
    random = np.random.default_rng(1).integers(0, 1 << bits, 4000, dtype=np.uint32)
    patterns = [(pattern.mask, pattern.value) for pattern in table.patterns]
    seeded = [value | (int(word) & ~mask) for mask, value in patterns for word in random[:20]]
    tried = np.concatenate([random, np.array(seeded, np.uint32)])

    first = [next(row for row, (mask, value) in enumerate(patterns) if int(word) & mask == value) for word in tried]

    assert table.match(tried).tolist() == first


@given(st.lists(st.binary(min_size=0, max_size=40), min_size=1, max_size=6))
def test_boundaries_are_those_of_a_walk(functions: list[bytes]) -> None:
    """Any bytes, any function ends: the scan without a loop gives the starts of a loop, function by function."""
    starts, ranges, at = [], [], 0
    for content in functions:
        end, whole = at + len(content), at + len(content) // 2 * 2
        ranges.append((at, whole))
        while at < whole:
            starts.append(at)
            low = content[at - ranges[-1][0]]
            is_long = low & 3 == 3 and low & 0x1F != 0x1F and at + 4 <= whole
            at += 4 if is_long else 2
        at = (end + 1) // 2 * 2
    code = b"".join(content + b"\0" * (len(content) % 2) for content in functions)

    found = DISSECTOR.dissect(np.frombuffer(code, np.uint8), PC, np.array(ranges, np.int64))

    assert (found.address - np.uint64(PC)).tolist() == starts


def test_an_instruction_cut_off_by_the_end_is_undecodable() -> None:
    code = np.frombuffer(code_of(NOP, 0x00A50533, 0x00A50533), np.uint8)
    found = DISSECTOR.dissect(code, PC, np.array([[0, 4], [6, 8]], np.int64))

    assert found.size.tolist() == [2, 2, 2]
    assert found.reason.tolist() == [Reason.NONE, Reason.UNDECODABLE, Reason.UNDECODABLE]


LR, SC, NOP, AMO = 0x1005A52F, 0x18B6252F, 0x0001, 0x00B6252F


BNE_PLUS_12, BNEZ_MINUS_14 = 0x00B51663, 0xFE0519E3


def test_a_reserved_region_is_refused_from_load_to_store() -> None:
    x, none = Reason.EXCLUSIVE, Reason.NONE

    assert reasons(NOP, LR, NOP, SC, NOP) == [none, x, x, x, none]
    assert reasons(NOP, AMO, NOP, SC, NOP) == [none, none, none, x, none]
    assert reasons(LR, NOP, LR, SC, NOP, LR, NOP) == [x, none, x, x, none, x, none]
    assert reasons(LR, BNE_PLUS_12, NOP, SC, BNEZ_MINUS_14, NOP) == [x, x, x, x, none, none]


def test_a_far_call_has_its_target() -> None:
    """Auipc ra, 0x12345; jalr ra, -0x10(ra): kernels have hundred thousands of these."""
    found = dissect(code_of(0x12345097, 0xFF0080E7, 0x12345317, 0x01030067))

    assert found.flow.tolist() == [Flow.NEXT, Flow.CALL, Flow.NEXT, Flow.JUMP]
    assert found.target.tolist() == [0, PC + 0x12345000 - 0x10, 0, PC + 8 + 0x12345000 + 0x10]
    assert found.kind.tolist() == [Kind.AUIPC, Kind.JALR] * 2


def test_a_register_set_elsewhere_gives_no_target() -> None:
    found = dissect(code_of(0x12345097, NOP, 0xFF0080E7, 0x12345517, 0xFF0080E7))

    assert found.flow[[2, 4]].tolist() == [Flow.INDIRECT_CALL] * 2
    assert not found.target.any()


@pytest.mark.parametrize(
    ("load", "size"), [(0x01453503, 8), (0x01452503, 4), (0x01451503, 2), (0x01450503, 1), (0x01453507, 8)]
)
def test_what_a_pc_relative_load_reads_is_data(load: int, size: int) -> None:
    """Auipc a0, 0 and a load of 0x14(a0): the constant lies 20 bytes after the auipc."""
    code = code_of(0x00000517, load, 0x8082, *[NOP] * 10)
    found = dissect(code)

    data = [PC + 20 <= address < PC + 20 + size for address in found.address]
    assert (found.reason == Reason.DATA).tolist() == data
    assert found.target[1] == PC + 20


def test_a_constant_misaligned_over_a_long_instruction_is_data() -> None:
    """Lw of 0x13(a0) begins in the last byte of a long instruction and ends in the first of the one after the next."""
    found = dissect(code_of(0x00000517, 0x01352503, 0x8082, NOP, NOP, NOP, 0x00A50533, NOP, NOP, NOP))

    assert (found.reason == Reason.DATA).tolist() == [False] * 6 + [True, True, True, False]


def test_trampolines_hold_the_instruction_and_a_breakpoint_at_4() -> None:
    code = code_of(0x00B50533, 0x952E, 0x8082, 0x0040006F)
    sites = dissect(code)
    original = np.zeros((4, 16), np.uint8)
    for row, (start, size) in enumerate(
        zip((sites.address - np.uint64(PC)).tolist(), sites.size.tolist(), strict=True)
    ):
        original[row, :size] = np.frombuffer(code[start : start + size], np.uint8)

    made = DISSECTOR.trampolines(sites, original, np.arange(4, dtype=np.uint64))

    assert made.code[0].tobytes() == code_of(0x00B50533) + EBREAK
    assert made.code[1].tobytes() == code_of(0x952E) + C_NOP + EBREAK
    assert made.code[2:].tobytes() == EBREAK * 4
    assert not made.reason.any()
    assert made.code.shape[1] == RISCV64.slot_size


def flow_of(mnemonic: str, operands: str) -> Flow:
    """What capstone's text says, pseudo-instructions included."""
    known = {
        **dict.fromkeys(("j", "c.j"), Flow.JUMP),
        "jal": Flow.CALL,
        **dict.fromkeys(("ret",), Flow.RETURN),
        "jr": Flow.INDIRECT_JUMP,
        "c.jr": Flow.RETURN if operands == "ra" else Flow.INDIRECT_JUMP,
        "c.jalr": Flow.INDIRECT_CALL,
        "jalr": Flow.INDIRECT_JUMP if operands.startswith("zero") else Flow.INDIRECT_CALL,
        **dict.fromkeys(("mret", "sret", "uret", "dret", "c.unimp", "unimp"), Flow.STOP),
    }
    if re.fullmatch(r"(c\.)?b(eq|ne|lt|ge|gt|le)u?z?", mnemonic):
        return Flow.BRANCH
    return known.get(mnemonic, Flow.NEXT)


def sample(code: Code, limit: int = 60_000) -> Code:
    """Functions from the middle of a region, of about `limit` bytes in all."""
    first = len(code.ranges) // 2 if len(code.ranges) > 100 else 0
    total = np.cumsum(code.ranges[first:, 1] - code.ranges[first:, 0])
    return Code(code.bytes, code.address, code.ranges[first : first + 1 + int((total < limit).sum())])


Decoded = tuple[int, int, str, str]  # address, size, mnemonic, operands


def walk(machine: capstone.Cs, content: bytes, address: int) -> Iterator[Decoded]:
    """Capstone's linear sweep. It knows no Zb*, Zicond, ...: over those it steps by the length rule, as unknown."""
    at = 0
    while at + 1 < len(content):
        for decoded in machine.disasm_lite(content[at:], address + at):
            yield decoded
            at = decoded[0] + decoded[1] - address
        if at + 1 < len(content):
            low = content[at]
            size = 4 if low & 3 == 3 and low & 0x1F != 0x1F and at + 4 <= len(content) else 2
            yield address + at, size, "", ""
            at += size


@pytest.mark.parametrize("image", long_where(IMAGES, lambda name: name not in ("opensbi-1.6", "linux-riscv64")))
def test_capstone_agrees_on_length_flow_and_target(image: str) -> None:
    machine = capstone.Cs(capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV64 | capstone.CS_MODE_RISCVC)
    disagreed, seen, unknown = [], 0, 0
    for code in map(sample, real_code(image)):
        found = DISSECTOR.dissect(code.bytes, code.address, code.ranges)
        decoded = [
            instruction
            for start, end in code.ranges.tolist()
            for instruction in walk(machine, code.bytes[start:end].tobytes(), code.address + start)
        ]
        assert [one[:2] for one in decoded] == list(zip(found.address.tolist(), found.size.tolist(), strict=True))
        seen += len(decoded)
        unknown += sum(not one[2] and found.verdict[row] != Verdict.REFUSE for row, one in enumerate(decoded))
        disagreed += [one for row, one in enumerate(decoded) if not agrees(found, row, *one[2:])]

    assert disagreed == []
    assert seen > 10_000
    assert unknown < seen / 100, "what capstone does not know, taken for instructions"


def agrees(found: Instructions, row: int, mnemonic: str, operands: str) -> bool:
    if not mnemonic or found.reason[row] == Reason.DATA:
        return True
    flow = flow_of(mnemonic, operands)
    if found.kind[row] == Kind.JALR and found.target[row]:  # joined with the auipc before it
        return flow in (Flow.INDIRECT_CALL, Flow.INDIRECT_JUMP, Flow.RETURN)
    if flow not in DIRECT:
        return bool(found.flow[row] == flow)
    displacement = int(operands.rpartition(",")[2], 0)
    return bool(found.flow[row] == flow) and int(found.target[row]) == int(found.address[row]) + displacement


@pytest.mark.skipif(not at_hand("linux-riscv64"), reason="linux-riscv64 was not downloaded")
def test_refusals_of_a_whole_kernel() -> None:
    """Nearly everything can be probed; what cannot says why."""
    found = [DISSECTOR.dissect(code.bytes, code.address, code.ranges) for code in real_code("linux-riscv64")]
    verdict = np.concatenate([part.verdict for part in found])
    reason = np.concatenate([part.reason for part in found])

    assert len(verdict) > 3_000_000
    assert (verdict == Verdict.REFUSE).mean() < 0.01
    assert ((verdict == Verdict.REFUSE) == (reason != Reason.NONE)).all()
