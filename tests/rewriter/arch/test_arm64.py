import re

import capstone
import numpy as np
import pytest
from numpy.typing import NDArray

from kinst.rewriter.arch.arm64 import DISSECTOR, TABLE
from kinst.targets.arch.arm64 import ARM64, BREAKPOINT, Kind
from kinst.targets.instruction import Flow, Instructions, Reason, Verdict
from tests.gated import draws
from tests.images import at_hand
from tests.rewriter.arch.real_code import real_code
from tests.vectors.arm64 import GROUPS
from tests.vectors.rows import PC

ROWS = [row for group in GROUPS for row in group]
IMAGES = at_hand("u-boot-arm64", "xen-arm64", "linux-arm64")
DIRECT = (Flow.JUMP, Flow.BRANCH, Flow.CALL)


def dissect(code: bytes, address: int = PC) -> Instructions:
    return DISSECTOR.dissect(np.frombuffer(code, np.uint8), address, np.array([[0, len(code)]], np.int64))


def words(*values: int) -> bytes:
    return np.array(values, "<u4").tobytes()


def reasons(code: bytes) -> list[Reason]:
    return [Reason(value) for value in dissect(code).reason]


def test_there_are_vectors_of_every_kind() -> None:
    assert len({row.code for row in ROWS}) >= 300
    assert {row.kind for row in ROWS} == set(Kind)


def test_instructions_are_classified() -> None:
    """In one test, as in the next: a test costs more than an instruction."""
    for row in ROWS:
        found = dissect(row.code)

        assert (found.kind[0], found.verdict[0], found.flow[0]) == (row.kind, row.verdict, row.flow), row
        assert found.reason[0] == row.reason, row
        assert found.size.tolist() == [4], row


def test_a_direct_flow_has_its_target() -> None:
    for row in (row for row in ROWS if row.flow in DIRECT and row.verdict == Verdict.EMULATE):
        shift = re.search(r"\.([+-]0x[0-9a-f]+|[+-]\d+)?$", row.assembly)
        target = PC + int(shift[1] or "0", 0) if shift else row.effect["pc"]
        assert dissect(row.code).target.tolist() == [target], row


def test_one_by_one_is_the_same_as_in_bulk() -> None:
    code = b"".join(row.code for row in ROWS if row.kind not in (Kind.LOAD_EXCLUSIVE, Kind.STORE_EXCLUSIVE))
    bulk = TABLE.match(np.frombuffer(code, "<u4"))

    single = [TABLE.match(np.frombuffer(code[at : at + 4], "<u4"))[0] for at in range(0, len(code), 4)]

    assert bulk.tolist() == single


def test_the_lookup_agrees_with_trying_every_pattern() -> None:
    """The key only saves time: the first pattern whose mask fits is the answer."""
    random = np.random.default_rng(1).integers(0, 1 << 32, 1000, dtype=np.uint32)
    seeded = [pattern.value | (int(word) & ~pattern.mask) for pattern in TABLE.patterns for word in random[:8]]
    tried = np.concatenate([random, np.array(seeded, np.uint32)])

    first = [next(row for row, p in enumerate(TABLE.patterns) if int(word) & p.mask == p.value) for word in tried]

    assert TABLE.match(tried).tolist() == first


LDXR, STXR, CLREX, NOP, LDAR = 0x885F7C20, 0x88037C20, 0xD5033F5F, 0xD503201F, 0x88DFFC20
CASP, LDXP, STXP = 0x08207C40, 0xC87F0440, 0xC8230440


def test_an_exclusive_region_is_refused_from_load_to_store() -> None:
    x, none = Reason.EXCLUSIVE, Reason.NONE

    assert reasons(words(NOP, LDXR, NOP, STXR, NOP)) == [none, x, x, x, none]
    assert reasons(words(LDXP, NOP, STXP, LDAR, NOP)) == [x, x, x, none, none]
    assert reasons(words(LDXR, NOP, CLREX, NOP)) == [x, none, none, none]
    assert reasons(words(LDXR, NOP, CLREX, NOP, STXR)) == [x, none, none, none, x]
    assert reasons(words(CLREX, CASP, NOP)) == [none, none, none]
    assert reasons(words(LDXR, LDXR, STXR, NOP, LDXR, STXR, NOP)) == [x, x, x, none, x, x, none]


BNE_PLUS_16, BNE_PLUS_8, CBNZ_MINUS_16, B_PLUS_8, B_MINUS_8 = 0x54000081, 0x54000041, 0x35FFFF84, 0x14000002, 0x17FFFFFE
BL, RET = 0x94000010, 0xD65F03C0


def test_an_exclusive_region_follows_branches() -> None:
    """The loop of a compare-and-swap; one whose middle lies behind its store; and one left early for good."""
    x, none = Reason.EXCLUSIVE, Reason.NONE

    assert reasons(words(LDXR, NOP, BNE_PLUS_16, NOP, STXR, CBNZ_MINUS_16, NOP)) == [x, x, x, x, x, none, none]
    assert reasons(words(LDXR, BNE_PLUS_16, NOP, STXR, RET, NOP, RET)) == [x, x, x, x, none, none, none]
    assert reasons(words(LDXR, B_PLUS_8 + 1, STXR, RET, NOP, B_MINUS_8 - 1, NOP)) == [x, x, x, none, x, x, none]


def test_an_exclusive_load_without_a_store_opens_no_region() -> None:
    """An atomic load; nor does one lead over calls and returns to the store of the next loop."""
    x, none = Reason.EXCLUSIVE, Reason.NONE

    assert reasons(words(LDXR, NOP, RET, NOP)) == [x, none, none, none]
    assert reasons(words(LDXR, NOP, LDXR, NOP, STXR)) == [x, none, x, x, x]
    assert reasons(words(LDXR, NOP, BL, NOP, STXR)) == [x, none, none, none, x]
    assert reasons(words(LDXR, NOP, RET, NOP, STXR)) == [x, none, none, none, x]


def test_an_exclusive_region_goes_on_in_the_function_that_it_falls_into() -> None:
    code = np.frombuffer(words(NOP, LDXR, NOP, NOP, STXR, NOP), np.uint8)

    found = DISSECTOR.dissect(code, PC, np.array([[0, 12], [12, 24]], np.int64))

    assert (found.reason == Reason.EXCLUSIVE).tolist() == [False, True, True, True, True, False]
    assert found.function.tolist() == [0, 0, 0, 1, 1, 1]


def test_an_earlier_reason_stays_inside_an_exclusive_region() -> None:
    assert reasons(words(LDXR, 0xD4000001, STXR)) == [Reason.EXCLUSIVE, Reason.SYSTEM_CALL, Reason.EXCLUSIVE]


@pytest.mark.parametrize(
    ("load", "size"), [(0x18000060, 4), (0x58000060, 8), (0x98000060, 4), (0x1C000060, 4), (0x9C000060, 16)]
)
def test_what_a_literal_load_reads_is_data(load: int, size: int) -> None:
    """The literal is at +12; its words look like code, even like the begin of an exclusive region."""
    found = dissect(words(load, NOP, 0xD65F03C0, LDXR, LDXR, 0x14000001, 0x14000001, NOP, NOP))
    data = [False] * 3 + [index < size // 4 for index in range(6)]

    assert (found.reason == Reason.DATA).tolist() == data
    assert found.flow[data].tolist() == [Flow.STOP] * (size // 4)
    assert found.target[data].tolist() == [0] * (size // 4)
    assert found.target[0] == PC + 12
    assert found.verdict[data].tolist() == [Verdict.REFUSE] * (size // 4)


def test_a_prefetch_reads_nothing() -> None:
    assert reasons(words(0xD8000040, NOP, NOP)) == [Reason.NONE] * 3


def test_a_literal_of_another_function_and_block_is_data() -> None:
    """1 MiB apart is further than one block of the sweep."""
    code = np.frombuffer(words(*[NOP] * (1 << 18)), np.uint8).copy()
    distance = len(code) - 8
    code[:4] = np.frombuffer(words(0x58000000 | distance // 4 << 5), np.uint8)
    ranges = np.array([[start, start + 0x1000] for start in range(0, len(code), 0x1000)], np.int64)

    found = DISSECTOR.dissect(code, 0xFFFF_8000_0800_0000, ranges)

    assert np.flatnonzero(found.reason == Reason.DATA).tolist() == [distance // 4, distance // 4 + 1]
    assert np.array_equal(found.function, np.repeat(np.arange(len(ranges)), 0x400))
    assert np.array_equal(found.address, np.arange(len(code) // 4, dtype=np.uint64) * 4 + 0xFFFF_8000_0800_0000)


def test_ranges_are_cut_to_whole_aligned_words() -> None:
    code = np.frombuffer(words(NOP, 0xD65F03C0, NOP, NOP), np.uint8)

    found = DISSECTOR.dissect(code[2:], PC + 2, np.array([[0, 1], [1, 8], [8, 14]], np.int64))

    assert found.address.tolist() == [PC + 4, PC + 12]
    assert found.kind.tolist() == [Kind.RET, Kind.NOP]
    assert found.function.tolist() == [1, 2]
    assert len(DISSECTOR.dissect(code, PC, np.zeros((0, 2), np.int64))) == 0


def test_trampolines_hold_the_instruction_and_a_breakpoint() -> None:
    sites = dissect(words(0x8B020020, 0x94000000, 0x91000421))
    original = np.zeros((3, 16), np.uint8)
    original[:, :4] = np.frombuffer(words(0x8B020020, 0x94000000, 0x91000421), np.uint8).reshape(3, 4)

    made = DISSECTOR.trampolines(sites, original, np.arange(3, dtype=np.uint64))

    assert made.code[0].tobytes() == words(0x8B020020) + BREAKPOINT
    assert made.code[1:].tobytes() == BREAKPOINT * 4
    assert not made.reason.any()
    assert made.code.shape[1] == ARM64.slot_size


# Independent of us: capstone's mnemonic of each distinct word of the real images.
CAPSTONE_FLOW = {
    **dict.fromkeys(("b",), Flow.JUMP),
    **dict.fromkeys(("cbz", "cbnz", "tbz", "tbnz"), Flow.BRANCH),
    **dict.fromkeys(("bl",), Flow.CALL),
    **dict.fromkeys(("br", "braa", "braaz", "brab", "brabz"), Flow.INDIRECT_JUMP),
    **dict.fromkeys(("blr", "blraa", "blraaz", "blrab", "blrabz"), Flow.INDIRECT_CALL),
    **dict.fromkeys(("ret", "retaa", "retab"), Flow.RETURN),
    **dict.fromkeys(("eret", "eretaa", "eretab", "drps", "udf"), Flow.STOP),
}


def distinct_words(image: str, limit: int) -> NDArray[np.uint32]:
    found = []
    for code in real_code(image):
        offsets = DISSECTOR.dissect(code.bytes, code.address, code.ranges).address - np.uint64(code.address)
        found.append(code.bytes[: len(code.bytes) // 4 * 4].view("<u4")[offsets // 4])
    unique = np.unique(np.concatenate(found))
    return np.random.default_rng(2).permutation(unique)[:limit]


@pytest.mark.parametrize("most", draws(15_000, 60_000))
@pytest.mark.parametrize("image", IMAGES)
def test_capstone_agrees_on_flow_and_target(image: str, most: int) -> None:
    tried = distinct_words(image, most)
    found = TABLE.match(tried)
    addresses = np.arange(len(tried), dtype=np.uint64) * 4 + PC
    targets = TABLE.targets(found, tried, addresses)
    machine = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
    machine.skipdata = True
    disagreed, unknown = [], 0

    for address, _, mnemonic, operands in machine.disasm_lite(tried.tobytes(), PC):
        index = (address - PC) // 4
        pattern = TABLE.patterns[found[index]]
        if mnemonic == ".byte":
            unknown += pattern.verdict != Verdict.REFUSE
            continue
        conditional = mnemonic.startswith(("b.", "bc."))
        flow = Flow.BRANCH if conditional else CAPSTONE_FLOW.get(mnemonic, Flow.NEXT)
        wrong_target = flow in DIRECT and int(operands.rpartition("#")[2], 0) != targets[index]
        if pattern.flow != flow or wrong_target or (pattern.reason == Reason.UNDECODABLE and mnemonic != "udf"):
            disagreed.append((hex(tried[index]), mnemonic, operands, pattern.name))

    assert disagreed == []
    assert unknown < len(tried) / 1000, "words that capstone does not know, taken for instructions"


@pytest.mark.skipif(not at_hand("linux-arm64"), reason="linux-arm64 was not downloaded")
def test_refusals_of_a_whole_kernel() -> None:
    """Nearly everything can be probed; what cannot says why."""
    found = [DISSECTOR.dissect(code.bytes, code.address, code.ranges) for code in real_code("linux-arm64")]
    verdict = np.concatenate([part.verdict for part in found])
    reason = np.concatenate([part.reason for part in found])

    assert len(verdict) > 2_500_000
    assert (verdict == Verdict.REFUSE).mean() < 0.03
    assert ((verdict == Verdict.REFUSE) == (reason != Reason.NONE)).all()
