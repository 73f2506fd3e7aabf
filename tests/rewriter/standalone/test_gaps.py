"""Room between two segments: only what a linker leaves for alignment, and only where no operating system maps more."""

import re
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kinst.rewriter.cli import diff, rewrite
from kinst.rewriter.standalone.places.gaps import gaps, slacks
from kinst.runtime.cli import run
from kinst.targets.image import open_image
from kinst.targets.manifest.packed import Manifest, find_manifest
from tests.images import real_image
from tests.samples.machines import MACHINES
from tests.writers.elf import EM_RISCV, PT_GNU_STACK, Part, Symbol, elf64

CODE, DATA = 0x8000_0000, 0x8004_0000
WORK = bytes.fromhex("411106e4a260080041018280") * 4  # c.addi sp, -16; c.sdsp ra, 8(sp); c.ldsp ra, 8(sp); ...; ret
PT_INTERP, PT_GNU_RELRO = 3, 0x6474E552
HEADER = 0x40 + 2 * 56  # the program header behind those of two parts
COPIES = "has relocations, and may copy itself elsewhere and go on there without its trampolines"


def image(
    folder: Path,
    *labels: tuple[str, int],
    data: int = DATA,
    load: int | None = None,
    header: tuple[int, bytes] | None = None,
) -> Path:
    """Firmware whose code ends at 0x80001000 and whose data begin at 0x80040000. `header`: the kind and content of
    another program header."""
    content = b"" if header is None else header[1]
    parts = (
        Part(".text", CODE, (WORK + content).ljust(0x1000, b"\0"), flags=5),
        Part(".data", data, b"data", flags=6, load_address=load),
    )
    symbols = [Symbol("work", CODE, len(WORK)), *(Symbol(name, address, 0) for name, address in labels)]
    bytes_ = bytearray(elf64(EM_RISCV, CODE, parts, symbols))
    if header is not None:
        assert struct.unpack_from("<I", bytes_, HEADER)[0] == PT_GNU_STACK
        place = bytes_.index(content), CODE, CODE, len(content), len(content), 1
        struct.pack_into("<IIQQQQQQ", bytes_, HEADER, header[0], 4, *place)
    path = folder / "firmware.elf"
    path.write_bytes(bytes_)
    return path


def found(path: Path) -> Sequence[tuple[int, int]]:
    return gaps(open_image(path), CODE)


def test_what_is_left_for_alignment_is_room(tmp_path: Path) -> None:
    assert found(image(tmp_path)) == ((CODE + 0x1000, DATA),)


@pytest.mark.parametrize(
    "change",
    [
        {"data": DATA + 0x1_0000},  # which is aligned to less than it is away
        {"load": DATA + 0x100_0000},  # the gap is another one as loaded
    ],
    ids=str,
)
def test_what_may_be_anything_is_none(change: dict[str, int], tmp_path: Path) -> None:
    assert not found(image(tmp_path, **change))  # type: ignore[arg-type]


def test_what_a_kernel_gives_back_is_none(tmp_path: Path) -> None:
    assert not found(image(tmp_path, ("__init_begin", CODE), ("__init_end", DATA)))
    assert found(image(tmp_path, ("__init_begin", CODE), ("__init_end", CODE + 0x800)))


def test_data_have_room_before_an_aligned_bss() -> None:
    assert (0xFFFF_FFFF_810A_11E0, 0xFFFF_FFFF_810A_2000) in slacks(open_image(real_image("gnumach")))


# -- what kinst-rewrite makes of it -----------------------------------------------------------------------------------


def standalone(path: Path, *words: str) -> tuple[Result, Path]:
    out = path.with_name("alone.elf")
    return CliRunner().invoke(rewrite, [str(path), "--standalone", *words, "-o", str(out)]), out


def manifest_of(path: Path) -> Manifest:
    manifest = find_manifest(open_image(path))
    assert manifest is not None
    return manifest


def test_firmware_has_both_in_its_gap(tmp_path: Path) -> None:
    result, out = standalone(image(tmp_path), "--probe", "fbt:::entry")
    assert result.exit_code == 0, result.output
    manifest = manifest_of(out)
    assert manifest.standalone is not None
    assert CODE + 0x1000 == manifest.trampolines[0] < manifest.standalone.address < DATA
    assert CliRunner().invoke(diff, [str(tmp_path / "firmware.elf"), str(out)]).exit_code == 0


@pytest.mark.parametrize("machine", MACHINES)
def test_what_has_no_room_is_refused_with_what_to_name(machine: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.elf"
    path.write_bytes(MACHINES[machine].image.read_bytes())
    result, out = standalone(path, "--probe", "fbt:::entry")
    why = r"nothing shows that it leaves the memory after its end alone, and it has no room inside: name 0x\w+000 bytes"
    assert re.search(rf"kernel.elf: {why} that it neither uses nor gives away with --trampoline-base", result.stderr)
    assert (result.exit_code, result.stderr.count("\n"), out.exists()) == (1, 1, False)


def test_what_has_too_little_says_how_much(tmp_path: Path) -> None:
    result, _ = standalone(image(tmp_path), "--probe", "fbt:::entry", "--action", "record", "--ring", "65536")
    assert "it has room inside for 0x3f000 bytes, not 0x102000: ask for less, or name 0x102000" in result.stderr
    assert result.exit_code == 1


def test_address_fields_of_multiboot_load_no_segment(tmp_path: Path) -> None:
    """What is in the file behind them is not loaded."""
    magic, flags = 0x1BADB002, 1 << 16
    words = (magic, flags, -(magic + flags) & 0xFFFF_FFFF, 0x10_0000, 0x10_0000, 0x10_4000, 0x14_0000, 0x10_0020)
    text = struct.pack("<8I", *words).ljust(0x1000, b"\x90")
    parts = (Part(".text", 0x10_0000, text, flags=5), Part(".data", 0x14_0000, b"data", flags=6))
    path = tmp_path / "kernel.elf"
    path.write_bytes(elf64(62, 0x10_0020, parts, [Symbol("work", 0x10_0020, 0x100)]))
    assert gaps(open_image(path), 0x10_0020)
    result, _ = standalone(path, "--probe", "fbt:::entry")
    assert "nothing shows that it leaves the memory after its end alone" in result.stderr


@pytest.mark.parametrize(
    "header",
    [(PT_INTERP, b"/lib/ld-linux-riscv64-lp64d.so.1\0"), (PT_INTERP, b"/lib/klibc-x.so\0"), (PT_GNU_RELRO, b"relro")],
    ids=str,
)
def test_an_operating_system_maps_what_a_program_loads(header: tuple[int, bytes], tmp_path: Path) -> None:
    result, out = standalone(image(tmp_path, header=header), "--probe", "fbt:::entry")
    assert result.exit_code == 0, result.output
    assert manifest_of(out).trampolines[0] > DATA


def test_a_program_does_not_copy_itself(tmp_path: Path) -> None:
    """Its relocations are for the dynamic linker. Firmware that has some is another matter."""
    path = tmp_path / "firmware.elf"
    path.write_bytes(real_image("u-boot-riscv64").read_bytes())
    named = ("--trampoline-base", "0x80100000", "--probe", "fbt:::entry")
    refused, out = standalone(path, *named)
    assert refused.exit_code == 1
    assert COPIES in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not out.exists()
    assert standalone(path, "--stays", *named)[0].exit_code == 0
    data = bytearray(path.read_bytes())
    start, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    spare = next(
        at for at in range(start, start + 56 * count, 56) if data[at : at + 4] == struct.pack("<I", PT_GNU_STACK)
    )
    struct.pack_into("<I", data, spare, PT_GNU_RELRO)  # as a program has one
    path.write_bytes(data)
    result = standalone(path, *named)[0]
    assert result.exit_code == 0
    assert COPIES not in result.stderr


def test_gnu_mach_counts_in_its_gap_what_breakpoints_count(tmp_path: Path) -> None:
    plain, out = real_image("gnumach"), tmp_path / "alone.elf"
    words = ("--standalone", "--probe", "fbt::vm_map*:entry", "-q", "-o", str(out))
    assert CliRunner().invoke(rewrite, [str(plain), *words]).exit_code == 0
    manifest = manifest_of(out)
    assert manifest.trampolines[0] == 0xFFFF_FFFF_8109_9000
    program = 'fbt::vm_map*:entry { @[probefunc] = count(); } END { printa("%s %@d\\n", @); }'
    given = ("-q", "--clock", "icount", "--until", "No bootstrap code", "-n", program)
    told = [CliRunner().invoke(run, [*given, "--console", str(tmp_path / "c"), str(image)]) for image in (plain, out)]
    known = {manifest.probe_fields(row)[2] for row in range(len(manifest.probes))}
    lines = [{line for line in one.stdout.splitlines() if line.partition(" ")[0] in known} for one in told]
    assert told[1].exit_code == 0 and len(lines[0]) > 10
    assert lines[0] == lines[1]
