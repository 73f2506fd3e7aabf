"""Which functions count: what symbols and FDEs cover, what nothing vouches for, and what speaks against it."""

import struct
from pathlib import Path

import numpy as np
import pytest

from kinst.rewriter.naming.resolve import resolve
from kinst.rewriter.program import Program, instructions_of, open_program
from kinst.rewriter.rewriting import Source, open_source
from kinst.runtime import KinstError, api
from kinst.targets.errors import UsageError
from kinst.targets.functions.evidence import Evidence
from kinst.targets.image import open_image
from kinst.targets.instruction import Reason
from kinst.targets.probe import parse_probe_name
from tests.writers.elf import EM_AARCH64, EM_RISCV, EM_X86_64, Part, Symbol, elf64

CODE = 0x80000000
FRAMES, DATA = CODE + 0x4000, CODE + 0x6000


def words(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, "little") for value in values)


def padded(code: bytes, size: int, unit: bytes) -> bytes:
    return (code + unit * size)[:size]


# A function of 32 bytes; and as many that begin as it, end, and go on with what is no code.
FUNCTION = {
    EM_X86_64: padded(bytes.fromhex("55 4889e5 31c0 5d c3"), 32, b"\xcc"),
    EM_AARCH64: words(0xA9BF7BFD, 0xD2800000, 0xA8C17BFD, 0xD65F03C0, *[0xD503201F] * 4),
    EM_RISCV: padded(bytes.fromhex("4111 0545 4101 8280"), 32, b"\1\0"),
}
LENGTH = {EM_X86_64: 8, EM_AARCH64: 16, EM_RISCV: 8}
TABLE = {machine: padded(FUNCTION[machine][: LENGTH[machine]], 32, b"\xff") for machine in FUNCTION}
MACHINES = pytest.mark.parametrize("machine", FUNCTION)


def frames(*ranges: tuple[int, int]) -> bytes:
    """.eh_frame at `FRAMES` with an FDE for each address and size."""
    content = (struct.pack("<II", 16, 0) + b"\1zR\0\1\x78\x10\1\x1b").ljust(20, b"\0")
    for address, size in ranges:
        at = len(content)
        content += struct.pack("<IIiI", 16, at + 4, address - (FRAMES + at + 8), size) + bytes(4)
    return content


def opened(
    machine: int,
    code: bytes,
    path: Path,
    described: tuple[tuple[int, int], ...] = (),
    data: bytes = b"",
    symbols: tuple[Symbol, ...] = (),
    forced: tuple[tuple[int, int], ...] = (),
    *,
    is_hosted: bool = False,
) -> Program:
    """A program of some code; `described` are offset and size of FDEs. `is_hosted`: an operating system maps it."""
    parts = [Part(".text", CODE, code, 5)]
    if described:
        parts.append(Part(".eh_frame", FRAMES, frames(*((CODE + start, size) for start, size in described)), 4))
    if data:
        parts.append(Part(".data", DATA, data, 6))
    path = path / "code.elf"
    content = bytearray(elf64(machine, CODE, parts, symbols))
    content[7] = 3 if is_hosted else 0  # ELFOSABI_GNU
    path.write_bytes(content)
    return open_program(open_image(path), forced=forced)


def starts(program: Program) -> dict[int, Evidence]:
    found = program.functions
    return {
        address - CODE: Evidence(kind)
        for address, kind in zip(found.address.tolist(), found.evidence.tolist(), strict=True)
    }


@MACHINES
def test_what_only_looks_like_code_is_none_where_fdes_cover_the_rest(machine: int, tmp_path: Path) -> None:
    code = FUNCTION[machine] * 2 + TABLE[machine] + FUNCTION[machine] * 3
    covered = ((0, 64), (96, 96))
    with_frames = opened(machine, code, tmp_path, covered)
    assert starts(with_frames) == {0: Evidence.FDE, 96: Evidence.FDE}
    assert starts(opened(machine, code, tmp_path))[64] is Evidence.PROLOGUE
    # The same with nothing unexplained is a function for which there is no FDE.
    whole = FUNCTION[machine] * 6
    assert starts(opened(machine, whole, tmp_path, covered))[64] is Evidence.PROLOGUE


@MACHINES
def test_it_is_refused_by_address_unless_the_user_says_that_it_is_code(machine: int, tmp_path: Path) -> None:
    code = FUNCTION[machine] * 2 + TABLE[machine] + FUNCTION[machine] * 3
    covered = ((0, 64), (96, 96))
    name = parse_probe_name(f"kinst::{CODE + 64:#x}:")
    outcome = resolve(opened(machine, code, tmp_path, covered), [name]).outcomes[0]
    assert len(outcome.choice) == 0
    assert outcome.refusals.reason.tolist() == [Reason.UNVOUCHED]
    assert "--force-code" in str(outcome.error)
    forced = opened(machine, code, tmp_path, covered, forced=((CODE + 64, CODE + 72),))
    assert len(resolve(forced, [name]).outcomes[0].choice) == 1
    every = resolve(forced, [parse_probe_name("fbt:::entry")]).outcomes[0]
    assert len(every.choice) == 3  # a glob has it, too
    path = tmp_path / "code.elf"
    with api.open_image(path) as image, pytest.raises(KinstError, match="force-code"):
        image.resolve(str(name))
    with api.open_image(path, code=[(CODE + 64, CODE + 72)]) as image:
        assert len(image.resolve(str(name)).outcomes[0].choice) == 1
    with pytest.raises(UsageError, match="not the start and the end"):
        api.open_image(path, code=[(CODE, CODE)])
    inside = resolve(forced, [parse_probe_name(f"kinst::{CODE + 64:#x}:*")])
    assert set(inside.refusals.reason.tolist()) <= {Reason.UNVOUCHED, Reason.UNDECODABLE, Reason.PADDING}


READS = {
    # lea table(%rip), %rax; movups (%rax), %xmm0; ret    adr x0; ldr q0, [x0]; ret    auipc, addi, ld; ret
    EM_X86_64: padded(bytes.fromhex("488d0539000000 0f1000 c3"), 64, b"\xcc"),
    EM_AARCH64: words(0x10000200, 0x3DC00000, 0xD65F03C0, *[0xD503201F] * 13),
    EM_RISCV: padded(words(0x00000517, 0x04050513, 0x00053583, 0x00008067), 64, b"\1\0"),
}
KEEPS = {
    # The same, but the address is stored: mov %rax, (%rdi), str x0, [x1], sd a0, 0(a1)
    EM_X86_64: padded(bytes.fromhex("488d0539000000 488907 c3"), 64, b"\xcc"),
    EM_AARCH64: words(0x10000200, 0xF9000020, 0xD65F03C0, *[0xD503201F] * 13),
    EM_RISCV: padded(words(0x00000517, 0x04050513, 0x00A5B023, 0x00008067), 64, b"\1\0"),
}


@MACHINES
def test_a_pointer_counts_unless_code_reads_there(machine: int, tmp_path: Path) -> None:
    middle = FUNCTION[machine]
    for first, expected in ((READS, None), (KEEPS, Evidence.POINTER)):
        code = first[machine] + middle + FUNCTION[machine] * 3
        found = starts(opened(machine, code, tmp_path, ((0, 64), (96, 96))))
        assert found.get(64) is expected


@MACHINES
def test_what_code_reads_is_no_function_where_nothing_describes_it_either(machine: int, tmp_path: Path) -> None:
    """Neither is what follows it, up to a function that more than its look vouches for."""
    for first, expected in ((READS, {0}), (KEEPS, {0, 64, 96})):
        found = starts(opened(machine, first[machine] + FUNCTION[machine] * 2, tmp_path))
        assert {*found} == expected


def test_the_letter_of_nm_makes_no_function_of_a_table(tmp_path: Path) -> None:
    """Where functions have sizes or FDEs, what has none is a label, and gives way to what speaks against it."""
    program = opened(EM_X86_64, READS[EM_X86_64] + FUNCTION[EM_X86_64] * 2, tmp_path, is_hosted=True)
    plain, sized = tmp_path / "plain", tmp_path / "sized"
    plain.write_text(f"{CODE:x} t reader\n{CODE + 64:x} t K256\n{CODE + 96:x} t helper\n")
    sized.write_text(f"{CODE:x} 0000000b t reader\n{CODE + 64:x} t K256\n{CODE + 96:x} 00000008 t helper\n")
    names = {path: open_source(Source(program.image.path, symbols=path)).program.functions for path in (plain, sized)}
    assert {path: set(found.names) for path, found in names.items()} == {
        plain: {"reader", "helper"},
        sized: {"reader", "helper"},
    }


VECTORS = {
    # vmovaps (%rcx), %ymm1     ld1 {v27.4h, v28.4h}, [x16]     vadd.vv v10, v2, v3: number 10 is a0's as well
    EM_X86_64: bytes.fromhex("c5fc2809"),
    EM_AARCH64: words(0x0C40A61B),
    EM_RISCV: words(0x02218557),
}
OVERWRITES = {
    # vmovd %xmm1, %eax     umov w0, v1.s[0]     vmv.x.s a0, v1
    EM_X86_64: bytes.fromhex("c5f97ec8"),
    EM_AARCH64: words(0x0E043C20),
    EM_RISCV: words(0x42102557),
}


@MACHINES
def test_an_address_is_followed_past_vector_instructions(machine: int, tmp_path: Path) -> None:
    """dav1d for arm64: from the address of a table of jumps to the load there are vector loads and shifts."""
    made = {EM_X86_64: 7, EM_AARCH64: 4, EM_RISCV: 8}[machine]
    for between, is_function in ((VECTORS, False), (OVERWRITES, True)):
        reader = (READS[machine][:made] + between[machine] + READS[machine][made:])[:64]
        found = starts(opened(machine, reader + FUNCTION[machine] * 4, tmp_path, ((0, 64), (96, 96))))
        assert (64 in found) is is_function


def test_what_is_behind_a_function_and_never_comes_to_an_end_is_no_code(tmp_path: Path) -> None:
    """Offsets of two bytes that decode as far as the size of a function goes."""
    table = words(0x089C09B0, 0x0B0006F0)  # stllrb w16, [x13]; add w16, w23, w0, lsl #1
    code = FUNCTION[EM_AARCH64][:16] + table
    first, following = Symbol("first", CODE, 24), Symbol("next", CODE + 24, 32)
    for behind, symbols, expected in (
        (words(0x034C03DC) * 2, (first,), Reason.UNREACHED),
        (FUNCTION[EM_AARCH64], (first, following), Reason.NONE),
    ):
        program = opened(EM_AARCH64, code + behind, tmp_path, symbols=symbols, is_hosted=True)
        found = instructions_of(program, np.arange(1))
        assert found.reason[-2:].tolist() == [expected] * 2


@MACHINES
def test_a_table_behind_the_code_of_a_sized_function_is_refused(machine: int, tmp_path: Path) -> None:
    code = READS[machine] + FUNCTION[machine] * 2
    symbols = (Symbol("reader", CODE, 128),)
    program = opened(machine, code, tmp_path, symbols=symbols)
    found = instructions_of(program, np.arange(len(program.functions)))
    table = (found.address >= CODE + 64) & (found.address < CODE + 128)
    assert (found.reason[table] != Reason.NONE).all()
    assert Reason.DATA in found.reason[table].tolist()
    kept = opened(machine, KEEPS[machine] + FUNCTION[machine] * 2, tmp_path, symbols=symbols)
    others = instructions_of(kept, np.arange(len(kept.functions)))
    assert Reason.DATA not in others.reason.tolist()


def test_text_behind_the_code_of_a_sized_function_is_refused(tmp_path: Path) -> None:
    """RC4_options() of OpenSSL for amd64: its size covers the names that it returns."""
    text = b"rc4(64x,int)\0rc4(8x,char)\0\xd6\xd6RC4 for x86_64\0"
    code = (bytes.fromhex("31c0 c3") + text).ljust(64, b"\xcc")
    program = opened(EM_X86_64, code, tmp_path, symbols=(Symbol("options", CODE, 3 + len(text)),))
    found = instructions_of(program, np.arange(1))
    assert found.reason[:2].tolist() == [Reason.NONE, Reason.NONE]
    assert set(found.reason[2:].tolist()) <= {Reason.UNREACHED, Reason.UNDECODABLE}
    assert Reason.UNREACHED in found.reason.tolist()
