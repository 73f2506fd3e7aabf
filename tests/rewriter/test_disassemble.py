"""Text of instructions for the three machines, sizes in bulk, and assembly."""

import numpy as np
import pytest

from kinst.rewriter.assemble import assemble
from kinst.rewriter.disassemble import Line, Sweep, differing, disassemble, is_decoded
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.registry import ARCHES, arch_by_name
from kinst.targets.errors import UsageError

AMD64, ARM64, RISCV64 = (arch_by_name(name) for name in ("amd64", "arm64", "riscv64"))


@pytest.mark.parametrize(
    ("facts", "code", "lines"),
    [
        (AMD64, "55 4889e5 e800000000", ["pushq %rbp", "movq %rsp, %rbp", "callq 0x1009"]),
        (ARM64, "fd7bbfa9 00000014", ["stp x29, x30, [sp, #-0x10]!", "b #0x1004"]),
        (RISCV64, "0100 6f000000 8280", ["c.nop", "j 0", "c.jr ra"]),
    ],
    ids=["amd64", "arm64", "riscv64"],
)
def test_every_machine_has_text(facts: ArchFacts, code: str, lines: list[str]) -> None:
    assert [line.text for line in disassemble(facts, bytes.fromhex(code), 0x1000)] == lines


@pytest.mark.parametrize("facts", ARCHES, ids=lambda facts: facts.name)
def test_every_byte_belongs_to_one_line(facts: ArchFacts) -> None:
    """Also where bytes do not decode, and at an end in the middle of an instruction."""
    code = np.random.default_rng(1).integers(0, 256, 4096, np.uint8).tobytes()

    lines = disassemble(facts, code, 0xFFFF000000000000)

    ends = [line.address + line.size for line in lines]
    assert [line.address for line in lines] == [0xFFFF000000000000, *ends[:-1]]
    assert 0 <= 0xFFFF000000000000 + len(code) - ends[-1] < facts.instruction_alignment


def test_what_does_not_decode_is_shown_as_bytes() -> None:
    assert disassemble(AMD64, b"\x06\xc3", 0) == [Line(0, 1, ".byte 0x06"), Line(1, 1, "retq")]


@pytest.mark.parametrize(
    ("facts", "code", "lines"),
    [
        # hfence.gvma, hfence.vvma a0, a1, nop: the H extension's. Its halves would be others by themselves.
        (RISCV64, "73000062 7300b522 0100", [".insn 0x62000073", ".insn 0x22b50073", "c.nop"]),
        (RISCV64, "0080 8280", [".insn 0x8000", "c.jr ra"]),  # reserved
        (RISCV64, "8280 7300", ["c.jr ra", ".byte 0x73, 0x00"]),  # cut off
        (ARM64, "ffffffff c0035fd6", [".inst 0xffffffff", "ret"]),
    ],
    ids=["hfence", "reserved", "cut", "arm64"],
)
def test_an_instruction_that_capstone_does_not_know_is_one_line_with_its_word(
    facts: ArchFacts, code: str, lines: list[str]
) -> None:
    found = disassemble(facts, bytes.fromhex(code), 0x1000)

    assert [line.text for line in found] == lines
    assert [is_decoded(facts, line.text) for line in found] == [not text.startswith(".") for text in lines]


def test_two_encodings_of_one_text_differ_where_they_are_beside_each_other() -> None:
    """mov %rax, %rbx by its two opcodes."""
    one, other = b"\x48\x89\xc3", b"\x48\x8b\xd8"
    text = disassemble(AMD64, one, 0)[0].text
    assert text == disassemble(AMD64, other, 0)[0].text

    assert differing(text, one, text, other) == (f"{text} (48 89 c3)", f"{text} (48 8b d8)")
    assert differing(text, one, text, one) == (text, text)
    assert differing("nop", b"\x90", "ret", b"\xc3") == ("nop", "ret")


def test_sizes_in_bulk_are_those_of_the_text() -> None:
    """More instructions than one call of capstone gives."""
    pieces = ("90", "4889e5", "e800000000", "48b80000000000000000", "0f1f8400ffffffff")
    chosen = np.random.default_rng(2).integers(0, len(pieces), 20_000).tolist()
    code = bytes.fromhex("".join(pieces[piece] for piece in chosen))

    sizes = Sweep(np.frombuffer(code, np.uint8)).sizes(0, len(code))

    assert sizes.tolist() == [len(pieces[piece]) // 2 for piece in chosen]
    assert sizes.tolist() == [line.size for line in disassemble(AMD64, code, 0)]


def test_sizes_end_where_bytes_do_not_decode() -> None:
    sweep = Sweep(np.frombuffer(b"\x90\x55\x06\x90\xe8\x00", np.uint8))

    assert sweep.sizes(0, 6).tolist() == [1, 1]
    assert sweep.sizes(2, 6).tolist() == []
    assert sweep.sizes(3, 6).tolist() == [1]
    assert sweep.sizes(6, 6).tolist() == []


def test_a_32_bit_sweep_knows_other_sizes() -> None:
    code = np.frombuffer(bytes.fromhex("40 a300300001 ea000000010800"), np.uint8)

    assert Sweep(code, bits=32).sizes(0, len(code)).tolist() == [1, 5, 7]


def test_code_must_be_contiguous() -> None:
    with pytest.raises(ValueError, match="contiguous"):
        Sweep(np.zeros(64, np.uint8)[::2])


def test_assembly_is_placed_at_its_address() -> None:
    assert assemble(AMD64, "jmp 0x1010", 0x1000) == bytes.fromhex("eb0e")
    assert assemble(ARM64, "b #0x1010; ret", 0x1000) == bytes.fromhex("04000014 c0035fd6")


@pytest.mark.parametrize(
    ("facts", "text", "message"),
    [
        (AMD64, "foo %rax", "'foo %rax': Invalid mnemonic"),
        (AMD64, "", "no instruction"),
        (RISCV64, "ret", "riscv64: no assembler; there is one for amd64 and arm64"),
    ],
)
def test_what_does_not_assemble_says_why(facts: ArchFacts, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        assemble(facts, text)
