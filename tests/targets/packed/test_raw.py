"""A file of nothing but memory: an ELF file is made of it, and it is read, run, patched, compared and restored."""

import re
from pathlib import Path

import numpy as np
import pytest

from kinst.targets.arch.registry import arch_by_name
from kinst.targets.errors import ImageError, ManifestError, UsageError
from kinst.targets.image import open_image
from kinst.targets.packed.beside import path_beside
from kinst.targets.packed.memory import Span, elf_of_memory, filled, memory_of
from kinst.targets.packed.reading import Reading, reading_of
from tests.commands.in_process import command, kinst_run
from tests.writers.flat_images import flat_image

SAMPLES = Path(__file__).parents[3] / "samples"
ARM64 = arch_by_name("arm64")


def raw(folder: Path, machine: str) -> tuple[Path, str]:
    """The memory of a sample, and what --raw says of it."""
    data, start, entry = flat_image(SAMPLES / f"kernel-{machine}.elf")
    assert entry == start
    path = folder / f"kernel-{machine}.bin"
    path.write_bytes(data)
    return path, f"{machine}@{start:#x}"


def bytes_of(data: bytes) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    return np.frombuffer(data, np.uint8)


def test_memory_becomes_an_elf_file_and_comes_back() -> None:
    spans = [Span(0x9003, bytes_of(b"later")), Span(0x4000, bytes_of(b"first"))]
    elf = elf_of_memory(ARM64, spans, 0x4000)
    assert [(span.address, span.data.tobytes()) for span in memory_of(elf)] == [(0x4000, b"first"), (0x9003, b"later")]
    changed = filled(elf, [Span(0x4001, bytes_of(b"IRST")), Span(0x9000, bytes_of(b"___LA"))])
    assert [span.data.tobytes() for span in memory_of(changed)] == [b"fIRST", b"LAter"]
    assert memory_of(elf)[0].data.tobytes() == b"first"


@pytest.mark.parametrize(
    ("spans", "entry", "why"),
    [
        ([], 0, "nothing in it that would be loaded"),
        ([(0x10, b"abcd"), (0x12, b"x")], 0x10, "two contents for the memory at 0x12"),
        ([(0x10, b"abcd")], 0x14, "it starts at 0x14, and has memory from 0x10 to 0x14: name its start with --entry"),
        ([((1 << 64) - 2, b"abcd")], (1 << 64) - 2, "pass the last address"),
        ([(4 * at, b"a") for at in range(5000)], 0, "5000 pieces of memory"),
    ],
)
def test_memory_that_no_image_can_have_is_refused(spans: list[tuple[int, bytes]], entry: int, why: str) -> None:
    with pytest.raises(ImageError, match=why):
        elf_of_memory(ARM64, [Span(address, bytes_of(data)) for address, data in spans], entry)


def test_what_the_user_says_is_checked() -> None:
    assert reading_of("riscv64@0x80000000", "2147483652", None) == Reading("riscv64", 0x8000_0000, 0x8000_0004)
    assert str(Reading("arm64", 0x10, 0x20, "fw")) == "--raw arm64@0x10 --entry 0x20 --payload fw"
    for text in ("mips@0x10", "arm64@", "arm64@0x1ffffffffffffffff", "0x10", "arm64@12g"):
        with pytest.raises(UsageError, match=r"--raw .*: (MACHINE@ADDRESS|not an address)"):
            reading_of(text, None, None)
    with pytest.raises(UsageError, match="--entry start: not an address"):
        reading_of("arm64@0", "start", None)


def map_of(machine: str, folder: Path) -> Path:
    """The functions of a sample, as nm prints them."""
    image = open_image(SAMPLES / f"kernel-{machine}.elf")
    rows = np.flatnonzero(image.symbols.kind == 2)
    names = zip(image.symbols.address[rows].tolist(), image.symbols.names(rows), strict=True)
    path = folder / "System.map"
    path.write_text("".join(f"{address:016x} T {name}\n" for address, name in sorted(names)))
    return path


@pytest.mark.parametrize("machine", ["arm64", "riscv64"])
def test_it_runs_as_its_elf_file_does(machine: str, tmp_path: Path) -> None:
    (path, where), program = raw(tmp_path, machine), "fbt::vfs_*:entry { @[probefunc] = count(); }"
    plain = kinst_run(SAMPLES / f"kernel-{machine}.elf", "-qn", program, "--clock", "icount")
    names = map_of(machine, tmp_path)
    found = kinst_run(path, "--raw", where, "--symbols", names, "-qn", program, "--clock", "icount")
    assert (found.stdout, found.returncode) == (plain.stdout, 0)
    assert "vfs_read  " in found.stdout


@pytest.mark.parametrize("machine", ["arm64", "riscv64"])
def test_it_is_patched_compared_and_restored(machine: str, tmp_path: Path) -> None:
    (path, where), out, back = raw(tmp_path, machine), tmp_path / "p.bin", tmp_path / "back.bin"
    names, original = map_of(machine, tmp_path), path.read_bytes()
    asked = ("--symbols", names, "--probe", "fbt:::entry")
    done = command("rewrite", path, "--raw", where, *asked, "-o", out)
    assert "p.bin.manifest: keep it beside the image" in done.stderr
    patched = out.read_bytes()
    assert patched[: len(original)] != original  # breakpoints, where the functions are; then zeros up to trampolines
    assert sum(a != b for a, b in zip(original, patched, strict=False)) < len(original) // 20
    assert not any(patched[len(original) : len(original) + (1 << 20)])
    same = command("diff", path, out)
    assert same.stdout.endswith("every difference is explained\n"), same.stdout
    own, plain = kinst_run(out, "-q", "--clock", "icount"), kinst_run(path, "--raw", where, "--clock", "icount")
    assert (own.returncode, len(own.stdout) > len(plain.stdout)) == (0, True)
    command("rewrite", out, "--restore", "-o", back)
    assert back.read_bytes() == original


def test_more_is_patched_where_something_was(tmp_path: Path) -> None:
    (path, where), names = raw(tmp_path, "riscv64"), map_of("riscv64", tmp_path)
    first, second = tmp_path / "first.bin", tmp_path / "second.bin"
    command("rewrite", path, "--raw", where, "--symbols", names, "--probe", "fbt::vfs_read:entry", "-o", first)
    done = command("rewrite", first, "--probe", "fbt::vfs_write:entry", "-o", second)
    assert done.returncode == 0, done.stderr
    found = command("diff", path, second, "-v").stdout
    assert re.findall(r"(?m)^  0x\w+ (vfs_\w+)\+", found) == ["vfs_read", "vfs_write"]
    assert command("rewrite", first, "--raw", where, "--probe", "fbt::vfs_get:entry", "-o", second).returncode == 0
    wrong = command("rewrite", first, "--raw", "riscv64@0x90000000", "--probe", "fbt::vfs_get:entry", "-o", second)
    assert wrong.stderr.endswith(
        f"was patched when it was read with --raw {where}: leave out --raw riscv64@0x90000000\n"
    )


def test_trampolines_elsewhere_are_a_file_of_their_own(tmp_path: Path) -> None:
    (path, where), out, names = raw(tmp_path, "arm64"), tmp_path / "p.bin", map_of("arm64", tmp_path)
    asked = ("--raw", where, "--symbols", names, "--probe", "fbt:::entry", "--trampoline-base", "0x41000000")
    done = command("rewrite", path, *asked, "-o", out)
    apart = tmp_path / "p.trampolines.bin"
    assert "p.trampolines.bin: has to be loaded at 0x41000000" in done.stderr
    assert out.stat().st_size == path.stat().st_size
    assert command("diff", path, out).returncode == 0
    apart.write_bytes(apart.read_bytes()[:-1] + b"\x01")
    assert "p.trampolines.bin" in command("diff", path, out).stdout
    apart.unlink()
    assert "p.trampolines.bin: cannot be read" in command("diff", path, out).stdout


def test_what_was_changed_since_is_found(tmp_path: Path) -> None:
    (path, where), out, names = raw(tmp_path, "riscv64"), tmp_path / "p.bin", map_of("riscv64", tmp_path)
    command("rewrite", path, "--raw", where, "--symbols", names, "--probe", "fbt::vfs_*:entry", "-o", out)
    patched, manifest = out.read_bytes(), path_beside(out)
    out.write_bytes(patched[:100] + bytes([patched[100] ^ 1]) + patched[101:])
    with pytest.raises(ManifestError, match="changed after it was patched"):
        open_image(out)
    # Between the original's end and the trampolines: the original comes back, but the file is not what was made.
    out.write_bytes(patched[: path.stat().st_size + 9] + b"\x01" + patched[path.stat().st_size + 10 :])
    assert command("diff", path, out).returncode == 1
    out.write_bytes(patched)
    content = manifest.read_bytes()
    for damaged in (content[:-20], content[:30] + b"}" + content[31:], content[:8] + b"\x09" + content[9:]):
        manifest.write_bytes(damaged)
        with pytest.raises(ManifestError, match=r"p\.bin\.manifest: (damaged|is of format)"):
            open_image(out)
    manifest.write_bytes(b"somebody else's")
    assert "no ELF magic" in command("diff", path, out).stderr


def test_options_that_do_not_fit_the_file_are_refused(tmp_path: Path) -> None:
    (path, where), elf = raw(tmp_path, "riscv64"), SAMPLES / "kernel-riscv64.elf"
    assert "leave out --raw riscv64@0x80000000" in command("list_probes", elf, "--raw", where).stderr
    assert "no file of a known kind: --raw riscv64" in command("list_probes", path, "--raw", "riscv64").stderr
    wrong = command("list_probes", path, "--raw", where, "--entry", "0x10")
    assert "it starts at 0x10" in wrong.stderr
