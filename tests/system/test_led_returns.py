"""A guest that rewrites its returns where its table says they are, as Linux does at boot: standalone, they are counted,
and are rewritten in their trampolines."""

import struct
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kinst.rewriter.assemble import assemble
from kinst.rewriter.cli import diff, rewrite
from kinst.runtime.cli import run
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.image import Image, open_image
from kinst.targets.kernels.leading_records import leading_records, led_elsewhere
from kinst.targets.manifest.packed import Manifest, find_manifest
from tests.writers.elf import EM_X86_64, Part, Symbol, elf64

CODE, TABLE, FREE = 0x20_0000, 0x20_2000, 0x30_0000
F, G, H, THUNK = 0x100, 0x140, 0x180, 0x240  # jumps to the thunk have 5 bytes
SECTION = ".return_sites"
SITES = (F + 7, G + 5)


def guest(folder: Path, *more: tuple[str, bytes]) -> Path:
    """Calls f, g and h in turn; after the first time it goes through its table as apply_returns() does. It ends well if
    f and g return 7 and 9 each time, and if nothing is where its returns were that looks rewritten."""
    call = f"call {CODE + F:#x}; add %eax, %r12d; call {CODE + G:#x}; add %eax, %r12d; "
    start = assemble(
        AMD64,
        f"mov $0x400000, %rsp; xor %r12d, %r12d; {call} mov ${TABLE:#x}, %ebx; "
        f"next: movslq (%rbx), %rax; add %rbx, %rax; movb $0xc3, (%rax); movl $0xcccccccc, 1(%rax); add $4, %rbx; "
        f"cmp ${TABLE + 4 * len(SITES):#x}, %ebx; jne next; "
        + (call + f"call {CODE + H:#x}; ") * 3
        + "mov %r12d, %eax; outb %al, $0xf4",
        CODE,
    )
    pieces = {
        0: start,
        F: assemble(AMD64, "mov $7, %eax; nop; nop", CODE + F)
        + assemble(AMD64, f"jmp {CODE + THUNK:#x}", CODE + F + 7),
        G: assemble(AMD64, "mov $9, %eax", CODE + G) + assemble(AMD64, f"jmp {CODE + THUNK:#x}", CODE + G + 5),
        H: assemble(AMD64, f"mov $1, %eax; jmp {CODE + F:#x}", CODE + H),
        THUNK: b"\xc3",
    }
    text = bytearray(b"\xcc" * 0x280)
    for at, piece in pieces.items():
        text[at : at + len(piece)] = piece
    records = b"".join(struct.pack("<i", CODE + site - TABLE - 4 * row) for row, site in enumerate(SITES))
    parts = [Part(".text", CODE, bytes(text), 7), Part(SECTION, TABLE, records, 4)]
    parts += [Part(name, TABLE + 0x1000 * (row + 1), data, 4) for row, (name, data) in enumerate(more)]
    sizes = {"start": (0, len(start)), "f": (F, 12), "g": (G, 10), "h": (H, 10), "thunk": (THUNK, 1)}
    symbols = [Symbol(name, CODE + at, size) for name, (at, size) in sizes.items()]
    path = folder / "guest.elf"
    path.write_bytes(elf64(EM_X86_64, CODE, parts, symbols))
    return path


def called(command: object, *words: object) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words])  # type: ignore[arg-type]


def alone(path: Path, *words: str) -> tuple[Image, Manifest]:
    out = path.with_name("alone.elf")
    given = ("--standalone", "--trampoline-base", hex(FREE), *(words or ("--probe", "fbt:::return")), "-o", out)
    result = called(rewrite, path, *given)
    assert result.exit_code == 0, result.output
    image = open_image(out)
    manifest = find_manifest(image)
    assert manifest is not None
    return image, manifest


def counted(*words: object) -> dict[str, int]:
    program = 'fbt:::return { @[probefunc] = count(); } END { printa("%s %@d\\n", @); }'
    result = called(run, "-q", "--clock", "icount", "--timeout", "1s", "-n", program, *words)
    assert result.stderr == ""
    return {name: int(count) for name, count in map(str.split, filter(None, result.stdout.splitlines()))}


def test_returns_are_counted_before_and_after_they_are_rewritten(tmp_path: Path) -> None:
    path = guest(tmp_path)
    image, _ = alone(path)
    assert counted(path) == counted(image.path) == {"f": 7, "g": 4, "h": 3, "thunk": 2}


def test_records_lead_to_the_copies(tmp_path: Path) -> None:
    path = guest(tmp_path)
    original, (image, manifest) = open_image(path), alone(path)
    before, after = leading_records(original), leading_records(image)
    assert before.site.tolist() == [CODE + site for site in SITES]
    assert sorted(after.field.tolist()) == sorted(before.field.tolist())
    assert after.site.tolist() == led_elsewhere(original, manifest).tolist()
    start, size = manifest.trampolines
    for site in after.site.tolist():
        assert start <= site < start + size
        opcode, distance = struct.unpack("<Bi", image.read(site, 5))
        assert (opcode, site + 5 + distance) == (0xE9, CODE + THUNK)
    explained = called(diff, path, image.path)
    assert explained.exit_code == 0
    assert "2 records of the kernel's now lead to displaced instructions" in explained.output
    restored = called(rewrite, image.path, "--restore", "-o", tmp_path / "back.elf")
    assert restored.exit_code == 0
    assert (tmp_path / "back.elf").read_bytes() == path.read_bytes()


def test_a_record_that_leads_elsewhere_is_a_difference(tmp_path: Path) -> None:
    path = guest(tmp_path)
    image, _ = alone(path)
    data, at = bytearray(Path(image.path).read_bytes()), image.offset_of(TABLE)
    assert at is not None
    data[at] ^= 4
    Path(image.path).write_bytes(data)
    result = called(diff, path, image.path)
    assert (result.exit_code, SECTION in result.output) == (1, True)


@pytest.mark.parametrize("section", [".retpoline_sites", ".altinstructions"])
def test_what_another_table_lists_as_well_stays(section: str, tmp_path: Path) -> None:
    """g's return is in two tables: who writes there last is not known."""
    at = TABLE + 0x1000
    lead = struct.pack("<i", CODE + SITES[1] - at)
    record = lead if section == ".retpoline_sites" else lead + struct.pack("<iHBB", CODE - at - 4, 1, 5, 1)
    path = guest(tmp_path, (section, record))
    _, manifest = alone(path)
    assert [manifest.function_name(int(row)) for row in manifest.sites["function"]] == ["f", "h", "thunk"]


def test_a_static_call_is_led_only_within_the_text(tmp_path: Path) -> None:
    """Later the kernel leaves alone what is not there, and its copy would go on to the first callee for ever. With
    trampolines elsewhere h's jump stays, and its return is not counted."""
    at = TABLE + 0x1000
    path = guest(tmp_path, (".static_call_sites", struct.pack("<ii", CODE + H + 5 - at, 0)))
    image = open_image(path)
    assert leading_records(image).site.tolist() == [CODE + one for one in (*SITES, H + 5)]
    assert leading_records(image, in_text=False).site.tolist() == [CODE + site for site in SITES]
    _, manifest = alone(path)
    assert [manifest.function_name(int(row)) for row in manifest.sites["function"]] == ["f", "g", "thunk"]
