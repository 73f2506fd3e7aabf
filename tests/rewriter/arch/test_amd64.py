"""The amd64 dissector: the table, what neighbours decide, trampolines, and capstone's own opinion on real images."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import product

import capstone
import numpy as np
import pytest
from capstone import x86_const as x86
from numpy.typing import NDArray

from kinst.rewriter.arch.amd64 import DISSECTOR
from kinst.rewriter.arch.amd64_sweep import sweep
from kinst.rewriter.assemble import assemble
from kinst.rewriter.disassemble import disassemble
from kinst.rewriter.program import instructions_of, open_program
from kinst.targets.arch.amd64 import AMD64, Kind
from kinst.targets.image import open_image
from kinst.targets.instruction import Flow, Instructions, Reason, Verdict
from tests.images import at_hand, real_image
from tests.vectors.amd64 import ADDRESS, VECTORS, Vector


def dissect(*functions: bytes, address: int = ADDRESS) -> Instructions:
    """The instructions of functions that lie one behind the other."""
    ends = np.cumsum([len(function) for function in functions])
    ranges = np.stack([ends - [len(function) for function in functions], ends], axis=1)
    return DISSECTOR.dissect(np.frombuffer(b"".join(functions), np.uint8), address, ranges)


def reasons(found: Instructions) -> list[str]:
    return [Reason(reason).name for reason in found.reason]


def test_instructions_are_what_the_table_says() -> None:
    """In one test, as in the next: a test costs more than an instruction."""

    def seen(vector: Vector) -> tuple[object, ...]:
        found = dissect(vector.code)
        kinds = Kind(found.kind[0]), Verdict(found.verdict[0]), Reason(found.reason[0]), Flow(found.flow[0])
        return *kinds, int(found.target[0]), int(found.size[0])

    def said(vector: Vector) -> tuple[object, ...]:
        size = 1 if vector.kind is Kind.UNDECODABLE else len(vector.code)
        return vector.kind, vector.verdict, vector.reason, vector.flow, vector.target, size

    assert {str(vector): seen(vector) for vector in VECTORS if seen(vector) != said(vector)} == {}


def test_the_table_leaves_no_kind_out() -> None:
    assert {vector.kind for vector in VECTORS} == set(Kind)
    assert len({vector.code for vector in VECTORS}) == len(VECTORS) >= 300


def test_the_table_says_what_its_bytes_are() -> None:
    read = {vector: disassemble(AMD64, vector.code, ADDRESS)[0].text for vector in VECTORS if vector.text != "?"}
    assert {vector.text: text for vector, text in read.items() if text != vector.text} == {}


def test_many_functions_are_dissected_as_each_alone() -> None:
    """The bulk decoder and the decoder of one instruction are the same code; functions do not affect each other."""
    codes = [vector.code for vector in VECTORS if vector.kind is not Kind.TRANSACTION]
    starts = ADDRESS + np.cumsum([0, *map(len, codes)])

    together = dissect(*codes)
    apart = [dissect(code, address=int(start)) for code, start in zip(codes, starts, strict=False)]

    # What one of them reads may lie in another one now, so what that is refused for differs.
    for column in ("address", "target", "size", "kind", "flow"):
        assert getattr(together, column).tolist() == np.concatenate([getattr(one, column) for one in apart]).tolist()


def test_a_function_without_bytes_has_no_instructions() -> None:
    assert dissect(b"\x55", b"", b"\xc3").function.tolist() == [0, 2]
    assert len(dissect()) == 0
    assert len(dissect(b"")) == 0


def test_the_sweep_stops_where_bytes_do_not_decode_and_goes_on_with_the_next_function() -> None:
    found = dissect(bytes.fromhex("55 06 90 90"), bytes.fromhex("90 e8 00"), bytes.fromhex("c3"))

    assert (found.address - ADDRESS).tolist() == [0, 1, 4, 5, 7]
    assert reasons(found) == ["NONE", "UNDECODABLE", "NONE", "UNDECODABLE", "NONE"]
    assert found.function.tolist() == [0, 0, 1, 1, 2]


def test_an_instruction_is_not_read_across_the_end_of_its_function() -> None:
    """b8 lacks its immediate; the bytes behind belong to another function."""
    assert reasons(dissect(b"\xb8", b"\x01\x00\x00\x00")) == ["UNDECODABLE", "NONE", "NONE"]


def test_undefined_instructions_do_not_put_the_sweep_out_of_step() -> None:
    """Capstone takes ud1 for two bytes: of Linux's static calls (jmp; ud1 %esp,%ecx) it leaves an int3."""
    found = dissect(bytes.fromhex("e900000000 0fb9cc 670fb94001 0fff00 c3"))

    assert found.size.tolist() == [5, 3, 5, 3, 1]


def test_what_is_alike_in_many_places_is_swept_as_each_alone() -> None:
    """Padding, ud1 and bytes that do not decode or end early, each between functions that are not swept."""
    pieces = [bytes.fromhex(piece) for piece in ("660f1f440000 cc", "0fb9cc 90", "480fb9cc", "06 90", "b8 00", "c3")]
    code, ranges = bytearray(), []
    for number, piece in enumerate(pieces * 3):
        code += bytes(100)
        ranges.append((len(code), len(code) + len(piece) - (number == 7)))  # one is cut short
        code += piece
    padded = np.frombuffer(bytes(code) + bytes(32), np.uint8)

    def sizes(wanted: Sequence[tuple[int, int]]) -> list[tuple[int, int, bool]]:
        found = list(sweep(padded, np.array(wanted)))
        columns = (np.concatenate([getattr(one, name) for one in found]) for name in ("offset", "size", "broken"))
        return list(zip(*(column.tolist() for column in columns), strict=True))

    assert sizes(ranges) == [row for one in ranges for row in sizes([one])]


def test_more_prefixes_than_an_instruction_has_bytes_end_the_sweep() -> None:
    found = dissect(b"\x90" + b"\x66" * 100)
    assert (found.size.tolist()[0], reasons(found)) == (1, ["NONE", "UNDECODABLE"])


def test_padding_is_what_nothing_falls_into_or_branches_to() -> None:
    """Fillers behind the last instruction, if that one never falls through; but not those that a branch reaches."""
    padded = bytes.fromhex("c3 cc 90 0f1f00 0000")
    reached = bytes.fromhex("7401 c3 90 cc")  # je to the nop
    falling = bytes.fromhex("ffd0 90 cc")
    inside = bytes.fromhex("c3 90 55 c3")
    only = bytes.fromhex("9090")

    assert reasons(dissect(padded)) == ["NONE", *["PADDING"] * 4]
    assert reasons(dissect(reached)) == ["NONE", "NONE", "NONE", "BREAKPOINT"]
    assert reasons(dissect(falling)) == ["NONE", "NONE", "BREAKPOINT"]
    assert reasons(dissect(inside)) == ["NONE"] * 4
    assert reasons(dissect(only)) == ["NONE"] * 2
    assert reasons(dissect(padded, reached, inside)) == [
        *("NONE", *["PADDING"] * 4),
        *("NONE", "NONE", "NONE", "BREAKPOINT"),
        *["NONE"] * 4,
    ]


def test_an_interrupt_shadow_covers_the_next_instruction() -> None:
    """sti; hlt must not be interrupted in between, nor mov to ss and the load of rsp that follows."""
    sti, stack = bytes.fromhex("90 fb f4 90"), bytes.fromhex("8ed0 4889c4 90")

    assert reasons(dissect(sti)) == ["NONE", "INTERRUPT_SHADOW", "INTERRUPT_SHADOW", "NONE"]
    assert reasons(dissect(stack)) == ["INTERRUPT_SHADOW", "INTERRUPT_SHADOW", "NONE"]
    assert reasons(dissect(b"\xfb", b"\xc3")) == ["INTERRUPT_SHADOW", "NONE"]


def test_a_transaction_is_refused_as_a_whole() -> None:
    begin, end, abort = "c7f805000000", "0f01d5", "c6f801"

    assert reasons(dissect(bytes.fromhex(f"90 {begin} 90 90 {end} 90"))) == ["NONE", *["EXCLUSIVE"] * 4, "NONE"]
    assert reasons(dissect(bytes.fromhex(f"{begin} 90 {abort}"), b"\x90")) == ["EXCLUSIVE"] * 3 + ["NONE"]
    assert reasons(dissect(bytes.fromhex(f"{end} 90 {begin}"), b"\x90")) == ["EXCLUSIVE", "NONE", "EXCLUSIVE", "NONE"]


def legacy(*functions: bytes, address: int) -> list[bool]:
    """Which functions are refused as a whole for their mode."""
    found = dissect(*functions, address=address)
    other = np.isin(np.arange(len(functions)), found.function[found.reason == Reason.OTHER_MODE])
    assert (found.verdict[other[found.function]] == Verdict.REFUSE).all()
    return [bool(chosen) for chosen in other]


def far_jump(target: int, selector: int = 8) -> bytes:
    return b"\xea" + target.to_bytes(4, "little") + selector.to_bytes(2, "little")


def test_code_that_enters_64_bit_mode_is_no_64_bit_code() -> None:
    """Where it jumps to is a physical address, so only its place in the page is known."""
    stub = bytes.fromhex("fa a300300001 b800000001")  # mov %eax, 0x1003000: in 64-bit mode of 8 bytes

    assert legacy(stub + far_jump(0x1000012), b"\x55\xc3", address=0xFFFFFFFF81000000) == [True, False]
    assert legacy(stub + far_jump(0x1000016), b"\x55\xc3", address=0xFFFFFFFF81000000) == [False, False]
    assert legacy(stub + far_jump(0x1000012, selector=0x2B), b"\x55\xc3", address=0x1000000) == [False, False]


def test_what_leads_to_the_entry_of_64_bit_mode_and_what_it_calls_is_refused_too() -> None:
    """start jumps over unrelated to enter, which calls helper; next falls into start. Their 64-bit caller stays."""
    falling = bytes.fromhex("fc 31c0")
    start = bytes.fromhex("31f6 eb02")
    unrelated = bytes.fromhex("55 c3")
    helper_distance = 7
    enter = b"\xe8" + helper_distance.to_bytes(4, "little") + far_jump(0x1000000 + 3 + 4 + 2 + 12)
    helper = bytes.fromhex("40 c3")
    caller = b"\xe8" + (-7 & 0xFFFFFFFF).to_bytes(4, "little") + b"\xc3"

    functions = (falling, start, unrelated, enter, helper, caller)
    assert legacy(*functions, address=0x1000000) == [True, True, False, True, True, False]


@pytest.mark.parametrize(
    "code",
    [
        "0f22c0 6a08 8d85d7000000 50 cb b9010100c0",  # mov %eax, %cr0; push $8; lea; push; lret; 64-bit code
        "8ed8 8ec0 6a08 50 cf 31c0 c3",  # mov to ds and es; iret
        "0f0110 b810000000 8ed8 ff6d00 c3",  # lgdt; mov to ds; ljmp *0(%ebp)
        "0f22c0 a300300001 48 a300300001 b0cb cb c3",  # 64-bit mode would read an address of 8 bytes, and no lret
        "fa 0f011600f0 0f20c0 0c01 0f22c0 ea34120800",  # 16-bit: mov to cr0; ljmp $8, $0x1234
        "90 660f22d8 0f22c0 66ea341200001000",  # 16-bit: ljmpl $16, $0x1234
        "488b05f0ffffff 8ed8 6a10 50 cb",  # 64-bit code that leaves for 32-bit code
    ],
)
def test_a_far_transfer_beside_a_change_of_mode_leaves_no_certain_mode(code: str) -> None:
    assert legacy(bytes.fromhex(code), b"\x55\xc3", address=0x1000000) == [True, False]


@pytest.mark.parametrize(
    "code",
    [
        "0f0110 8ed8 8ec0 6a10 488d0501000000 50 48cb 55 c3",  # lgdt; mov to ds; ...; lretq, as kernels load CS
        "8ed8 0f22d8 48cf",  # iretq
        "0f22c0 48ff2d00000000",  # rex.w ljmp
        "31c0 cb",  # lret, and nothing that sets up a mode
        "0f0110 b8cb000000 c3",  # a byte of an operand
    ],
)
def test_far_transfers_of_64_bit_code_are_known_by_their_width(code: str) -> None:
    assert legacy(bytes.fromhex(code), b"\x55\xc3", address=0x1000000) == [False, False]


def test_a_far_jump_inside_of_another_instruction_is_none() -> None:
    # shr edx, 2; mov [rbx + 0x20], eax: ea 02 ... 20 00 with an offset that is right in its page.
    shift = bytes.fromhex("c1ea 0248c743 2000 e5b0 c3")
    address = 0x1000000 + 0x43C74802 % 4096 - 9
    assert legacy(b"\x90" + shift, b"\x55\xc3", address=address) == [False, False]
    assert legacy(b"\xfa\x90" + shift[1:], b"\x55\xc3", address=address) == [True, False]


@pytest.mark.parametrize("name", at_hand("linux-amd64", "linux-6.12-amd64"))
def test_linux_entry_for_pvh_guests_is_no_64_bit_code(name: str) -> None:
    """It ends by lret, and what it jumps to is 64-bit code."""
    program = open_program(open_image(real_image(name)))
    functions = program.functions
    rows = np.array([functions.names.index("pvh_start_xen"), functions.names.index("startup_64")])

    found = instructions_of(program, np.sort(rows))

    assert (found.verdict[found.function == rows[0]] == Verdict.REFUSE).all()
    assert (found.reason[found.function == rows[0]] == Reason.OTHER_MODE).any()
    assert not (found.reason[found.function == rows[1]] == Reason.OTHER_MODE).any()


@pytest.mark.parametrize(
    ("load", "width"),
    [
        ("8a05", 1), ("66 8b05", 2), ("8b05", 4), ("48 8b05", 8), ("ff15", 8), ("ff25", 8), ("ff35", 8), ("0f1005", 16),
        ("48 8905", 8), ("65 488b05", 0), ("488d05", 0), ("0f1f05", 0),
    ],
)  # fmt: skip
def test_what_a_relative_operand_reads_is_data(load: str, width: int) -> None:
    """The pushes from distance 4 on are read or written; lea, a nop and an offset into a segment touch none."""
    reader = bytes.fromhex(load) + (4).to_bytes(4, "little")
    found = dissect(reader + b"\x50" * 24)

    assert reasons(found)[1:] == [*["NONE"] * 4, *["DATA"] * width, *["NONE"] * (20 - width)]


def test_data_in_another_function_is_found_and_an_instruction_is_data_as_a_whole() -> None:
    reader, data = bytes.fromhex("8a05 00000000"), bytes.fromhex("b801020304 c3")

    found = dissect(reader[:2] + (3).to_bytes(4, "little"), data)

    assert reasons(found) == ["NONE", "DATA", "NONE"]


def trampoline(code: bytes, site: int, slot: int) -> tuple[bytes, Reason]:
    found = dissect(code, address=site).take(np.array([0]))
    original = np.frombuffer(code.ljust(16, b"\0"), np.uint8)[None, :]
    built = DISSECTOR.trampolines(found, original, np.array([slot], np.uint64))
    return built.code[0].tobytes(), Reason(built.reason[0])


def test_a_trampoline_is_the_instruction_and_a_jump_back() -> None:
    code, reason = trampoline(bytes.fromhex("488b45f8"), 0xFFFFFFFF81000000, 0xFFFFFFFFBFFF0000)

    assert reason is Reason.NONE
    assert code == bytes.fromhex("488b45f8 e9fbff00c1").ljust(32, b"\xcc")
    code, reason = trampoline(bytes.fromhex("488b45f8"), 0xFFFFFFFF81000000, 0xFFFFFFFF01000000)
    assert reason is Reason.NONE, "2 GiB away"
    assert code == bytes.fromhex("488b45f8 e9fbffff7f").ljust(32, b"\xcc")
    code, reason = trampoline(bytes.fromhex("488b45f8"), 0xFFFFFFFF81000000, 0xFFFFFFFF00FFFFF0)
    assert reason is Reason.NONE, "and further"
    assert code == bytes.fromhex("488b45f8 ff2500000000 04000081ffffffff").ljust(32, b"\xcc")


@pytest.mark.parametrize(
    ("code", "slots"),
    [
        ("55", 1),
        ("48b8" + 8 * "11", 1),
        ("48c70425" + 8 * "11", 2),
        ("c7842411111111" + 4 * "22", 1),
        ("e811111111", 2),
    ],
)
def test_a_slot_is_enough_for_what_it_must_hold(code: str, slots: int) -> None:
    """Eleven bytes and a jump of five; two slots for more, out of reach, and where the runtime may put a call."""
    site = 0x40_0000_0000
    found = dissect(bytes.fromhex(code), address=site).take(np.array([0]))
    reached = [(site, site + (1 << 30)), (site - (1 << 30), site)]
    assert [DISSECTOR.slot_counts(found, span).tolist() for span in reached] == [[slots]] * 2
    for span in ((site, site + (1 << 31)), (site - (1 << 31), site)):
        assert DISSECTOR.slot_counts(found, span).tolist() == [2]
    original = np.frombuffer(bytes.fromhex(code).ljust(16, b"\0"), np.uint8)[None, :]
    for slot in (site - (1 << 30), site + (1 << 30)):
        made = DISSECTOR.trampolines(found, original, np.array([slot], np.uint64)).code[0].tobytes()
        assert made[16 * slots :] == b"\xcc" * (32 - 16 * slots)
    deferred = replace(found, verdict=np.full(1, Verdict.DEFER, np.uint8))
    assert DISSECTOR.slot_counts(deferred, reached[0]).tolist() == [2]


def test_an_emulated_instruction_has_a_slot_of_breakpoints() -> None:
    assert trampoline(b"\xe8" + bytes(4), ADDRESS, ADDRESS + 0x1000) == (b"\xcc" * 32, Reason.NONE)


SITES = (0x1000, 0x401000, 0x7FFFF000, 0xFFFFFFFF81000000, 0xFFFFFFFF7FFFFFF8)
DISTANCES = (-0x40000000, -32, 32, 0x10000000, 0x7FF00000)


@pytest.mark.parametrize("vector", [v for v in VECTORS if v.kind is Kind.RELATIVE and v.target], ids=str)
def test_a_relative_operand_keeps_its_address(vector: Vector) -> None:
    """Capstone reads the same operand from the trampoline; addresses wrap round at the end of the address space."""
    for site, distance in product(SITES, DISTANCES):
        slot = (site + distance) % (1 << 64)
        code, reason = trampoline(vector.code, site, slot)

        assert reason is Reason.NONE
        assert _operand_address(code, slot) == _operand_address(vector.code, site)
        behind, end = code[len(vector.code) :], slot + len(vector.code)
        assert behind[0] == 0xE9 or behind[:6] == bytes.fromhex("ff2500000000")
        if behind[0] == 0xE9:
            assert (end + 5 + int.from_bytes(behind[1:5], "little", signed=True)) % (1 << 64) == site + len(vector.code)


def _operand_address(code: bytes, address: int) -> int:
    instruction = next(_detailed().disasm(code, address))
    relative = next(op for op in instruction.operands if op.type == x86.X86_OP_MEM and op.mem.base == x86.X86_REG_RIP)
    return int(address + instruction.size + relative.mem.disp) % (1 << 64)


@pytest.mark.parametrize(
    ("distance", "fits"), [(0x7FFFFFFF, True), (0x80000000, False), (-0x80000000, True), (-0x80000001, False)]
)
def test_an_operand_out_of_reach_is_refused(distance: int, fits: bool) -> None:  # noqa: FBT001
    """The new displacement is `distance`; upstream cuts it to 32 bits."""
    site = 0x4000000000
    code, reason = trampoline(bytes.fromhex("8b0500000000"), site, site - distance)

    assert reason is (Reason.NONE if fits else Reason.OUT_OF_REACH)
    assert fits == (code != b"\xcc" * 32)


def test_a_32_bit_address_is_always_in_reach() -> None:
    """With 67 the sum is cut to 32 bits, so that the displacement may wrap round."""
    code, reason = trampoline(bytes.fromhex("678b0510000000"), 0x4000000000, 0x1000)

    assert reason is Reason.NONE
    assert (0x1000 + 7 + int.from_bytes(code[3:7], "little")) % (1 << 32) == 0x17


def test_trampolines_in_bulk_are_those_of_each_alone() -> None:
    chosen = [vector for vector in VECTORS if vector.verdict is not Verdict.REFUSE]
    found = dissect(*(vector.code for vector in chosen))
    usable = np.flatnonzero(found.verdict != Verdict.REFUSE)  # some read what is another one's code here
    codes = [chosen[row].code for row in usable]
    original = np.frombuffer(b"".join(code.ljust(16, b"\0") for code in codes), np.uint8).reshape(-1, 16)
    slots = np.uint64(0x500000) + np.arange(len(codes), dtype=np.uint64) * np.uint64(32)

    built = DISSECTOR.trampolines(found.take(usable), original, slots)

    assert len(codes) > 500
    for row, (code, site, slot) in enumerate(zip(codes, found.address[usable].tolist(), slots.tolist(), strict=True)):
        assert built.code[row].tobytes() == trampoline(code, site, slot)[0]


def test_assembly_and_disassembly_agree() -> None:
    code = assemble(AMD64, "push %rbp; mov %rsp, %rbp; jmp 0x401020", ADDRESS)

    assert [line.text for line in disassemble(AMD64, code, ADDRESS)] == [
        "pushq %rbp",
        "movq %rsp, %rbp",
        "jmp 0x401020",
    ]


@cache
def _detailed() -> capstone.Cs:
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    engine.detail = True
    return engine


def real_instructions(name: str) -> Iterator[tuple[NDArray[np.uint8], Instructions]]:
    """Code and instructions of every code region: by function where there are symbols, else by page."""
    image = open_image(real_image(name))
    for region in image.code_regions:
        code = image.data[region.offset : region.offset + region.size]
        starts = image.symbols.address[image.symbols.size > 0] - np.uint64(region.address)
        pages = np.arange(0, region.size, 4096, dtype=np.uint64)
        cuts = np.unique(np.concatenate([starts[starts < region.size], pages])).astype(np.int64)
        ranges = np.stack([cuts, np.append(cuts[1:], region.size)], axis=1)
        yield code, DISSECTOR.dissect(code, region.address, ranges)


def _expected(instruction: capstone.CsInsn) -> tuple[Flow, int]:
    """Flow and target by capstone's groups and operands."""
    groups = instruction.groups
    relative = x86.X86_GRP_BRANCH_RELATIVE in groups
    target = instruction.operands[0].imm % (1 << 64) if relative else _known_access(instruction)
    if x86.X86_GRP_CALL in groups:
        return (Flow.CALL, target) if relative else (Flow.INDIRECT_CALL, 0)
    if x86.X86_GRP_IRET in groups or instruction.id in (x86.X86_INS_SYSEXIT, x86.X86_INS_SYSRET, x86.X86_INS_RSM):
        return Flow.STOP, 0
    if x86.X86_GRP_RET in groups:
        return Flow.RETURN, 0
    if instruction.id in (x86.X86_INS_JMP, x86.X86_INS_LJMP):
        return (Flow.JUMP, target) if relative else (Flow.INDIRECT_JUMP, 0)
    if instruction.id in (x86.X86_INS_UD0, x86.X86_INS_UD1, x86.X86_INS_UD2):
        return Flow.STOP, 0
    return (Flow.BRANCH if relative else Flow.NEXT), target


def _known_access(instruction: capstone.CsInsn) -> int:
    """Address of a RIP-relative operand that is read or written."""
    if instruction.id in (x86.X86_INS_LEA, x86.X86_INS_NOP) or instruction.prefix[3] == 0x67:
        return 0
    for operand in instruction.operands:
        if operand.type == x86.X86_OP_MEM and operand.mem.base == x86.X86_REG_RIP:
            segment = operand.mem.segment in (x86.X86_REG_FS, x86.X86_REG_GS)
            return 0 if segment else int(instruction.address + instruction.size + operand.mem.disp) % (1 << 64)
    return 0


def _unlike(code: NDArray[np.uint8], found: Instructions, rows: Sequence[int]) -> list[str]:
    """Rows on which capstone sees another flow or target."""
    engine = _detailed()
    base = int(found.address[0])
    unlike = []
    for row in rows:
        address, size = int(found.address[row]), int(found.size[row])
        instruction = next(engine.disasm(code[address - base : address - base + size].tobytes(), address))
        seen = Flow(found.flow[row]), int(found.target[row])
        if seen != _expected(instruction) or instruction.size != size:
            unlike.append(f"{address:#x} {instruction.mnemonic} {instruction.op_str}: {seen}")
    return unlike


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", ["gnumach", "u-boot-amd64"])
def test_flow_and_target_are_as_capstone_says(name: str, step: int) -> None:
    """Distinct instructions of real images, by capstone's groups and operands."""
    checked = 0
    for code, found in real_instructions(name):
        if not len(found):
            continue
        skipped = (found.kind == Kind.UNDECODABLE) | (found.kind == Kind.NARROW_FLOW) | _is_mended(found)
        known = np.flatnonzero(~skipped)
        offsets = (found.address[known] - found.address[0]).astype(np.int64)
        padded = np.concatenate([code, np.zeros(16, np.uint8)])
        window = np.lib.stride_tricks.sliding_window_view(padded, 15)[offsets]
        window[np.arange(15) >= found.size[known, None]] = 0
        _, first = np.unique(window, axis=0, return_index=True)
        assert _unlike(code, found, known[first[::step]].tolist()) == []
        checked += len(first[::step])
    assert checked > 10_000 // step


def _is_mended(found: Instructions) -> NDArray[np.bool_]:
    """Where the size is ours and not capstone's."""
    mended: NDArray[np.bool_] = (found.kind == Kind.BREAKPOINT) & (found.size > 2)
    return mended


def test_batches_are_joined_in_order() -> None:
    """More instructions than one batch holds, in functions of unequal sizes."""
    functions = [bytes.fromhex("55 4889e5 5d c3") * (number % 50) for number in range(3000)]
    code = np.frombuffer(b"".join(functions) + bytes(32), np.uint8)
    ends = np.cumsum([len(function) for function in functions])
    ranges = np.stack([ends - [len(function) for function in functions], ends], axis=1)
    batches = list(sweep(code, ranges))

    assert len(batches) > 1
    assert np.concatenate([batch.offset for batch in batches]).tolist() == sorted(
        at for at in range(int(ends[-1])) if at % 6 in (0, 1, 4, 5)
    )
    whole = DISSECTOR.dissect(code[:-32], 0, ranges)
    assert np.bincount(whole.function, minlength=3000).tolist() == [4 * (number % 50) for number in range(3000)]
