"""Intel HEX and S-records: read as binutils write them, patched in place, and what binutils read of them then."""

import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from kinst.targets.arch.registry import arch_by_name
from kinst.targets.errors import ImageError, PlacementError
from kinst.targets.image import open_image
from kinst.targets.packed.memory import Span, elf_of_memory, memory_of
from kinst.targets.packed.reading import Reading
from kinst.targets.packed.unpacking import Unpacked, unpacked
from tests.commands.in_process import command, kinst_run
from tests.targets.packed.test_raw import SAMPLES, map_of
from tests.writers.flat_images import flat_image

RISCV64 = Reading("riscv64")
SAMPLE = SAMPLES / "kernel-riscv64.elf"
HEX_LINES = (
    ":020000040800F2",
    ":10FFF800000102030405060708090A0B0C0D0E0F81",
    ":040000050800FFF8F8",
    ":00000001FF",
)
S_LINES = ("S0030000FC", "S1131000000102030405060708090A0B0C0D0E0F64", "S206001020AABB64", "S5030002FA", "S9031000EC")


def objcopy(*words: object) -> None:
    if shutil.which("objcopy") is None:
        pytest.skip("no objcopy")
    subprocess.run(["objcopy", *map(str, words)], check=True)


def read(text: str, reading: Reading = RISCV64) -> Unpacked:
    return unpacked(np.frombuffer(text.encode(), np.uint8), reading)


def memory(found: Unpacked) -> list[tuple[int, bytes]]:
    return [(span.address, span.data.tobytes()) for span in memory_of(found.data)]


def with_more(found: Unpacked, address: int, data: bytes) -> bytes:
    """The file of an image with more memory."""
    assert found.rebuild is not None
    spans = [*memory_of(found.data), Span(address, np.frombuffer(data, np.uint8))]
    return found.rebuild(elf_of_memory(arch_by_name("riscv64"), spans, spans[0].address))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_lines_become_memory(newline: str) -> None:
    first = bytes(range(16))
    found = read(newline.join(HEX_LINES) + newline)
    assert (found.packing, memory(found)) == ("Intel HEX", [(0x0800_FFF8, first)])
    found = read(newline.join(S_LINES))
    assert (found.packing, memory(found)) == ("S-records", [(0x1000, first), (0x1020, b"\xaa\xbb")])
    assert int.from_bytes(found.data[24:32].tobytes(), "little") == 0x1000


@pytest.mark.parametrize(("form", "words"), [("ihex", ()), ("srec", ()), ("srec", ("--srec-forceS3",))])
def test_binutils_files_are_read_and_written(form: str, words: tuple[str, ...], tmp_path: Path) -> None:
    data = random.Random(27).randbytes(70_001)
    plain, lines, back = tmp_path / "a.bin", tmp_path / "a.lines", tmp_path / "back.bin"
    plain.write_bytes(data)
    start = 0x8000_F00F if form == "ihex" or words else 0xF00F
    objcopy("-I", "binary", "-O", form, *words, "--change-addresses", hex(start), plain, lines)
    found = read(lines.read_bytes().decode())
    assert memory(found) == [(start, data)]
    assert found.rebuild is not None
    assert found.rebuild(found.data) == lines.read_bytes()
    more = start + 0x1_2340
    lines.write_bytes(with_more(found, more, b"trampolines" * 5000))
    objcopy("-I", form, "-O", "binary", "--gap-fill", "0", lines, back)
    assert back.read_bytes() == data.ljust(more - start, b"\0") + b"trampolines" * 5000


def test_only_what_changes_is_written() -> None:
    for lines in (HEX_LINES, tuple(line.lower().replace("s", "S") for line in S_LINES)):
        text = "\r\n".join(lines) + "\r\n"
        found = read(text)
        elf = found.data.copy()
        memory_of(elf)[0].data[3] ^= 0xFF
        assert found.rebuild is not None
        new = found.rebuild(elf).decode().split("\r\n")
        assert [number for number, (a, b) in enumerate(zip(new, [*lines, ""], strict=True)) if a != b] == [1]
        assert new[1].upper() == new[1] or lines is not HEX_LINES
        assert memory(read("\r\n".join(new)))[0][1] == bytes([0, 1, 2, 0xFC, *range(4, 16)])


def test_lines_of_a_segment_keep_their_own_addresses() -> None:
    found = read("\n".join((":020000021001EB", ":0400080001020304EA", ":00000001FF")))
    assert memory(found) == [(0x1_0018, bytes([1, 2, 3, 4]))]
    elf = found.data.copy()
    memory_of(elf)[0].data[:] = 0
    assert found.rebuild is not None
    assert found.rebuild(elf).decode().split("\n")[1] == ":0400080000000000F4"


def test_new_lines_are_counted() -> None:
    new = with_more(read("\n".join(S_LINES)), 0x123450, bytes(33)).decode().split("\n")
    assert [line[:2] for line in new] == ["S0", "S1", "S2", "S2", "S2", "S2", "S5", "S9"]
    assert new[6] == "S5030005F7"
    with pytest.raises(PlacementError, match="S-records have no addresses such as 0x100000000"):
        with_more(read("\n".join(S_LINES)), 1 << 32, b"\1")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (":020000040800F2\n:0400\n", "Intel HEX: line 2 is none: ':0400'"),
        (":020000040800F3\n", "Intel HEX: damaged: line 1 has another sum"),
        (":020000040800F2\n\n:zz\n", "Intel HEX: line 3 is none: ':zz'"),
        ("S1131000000102030405060708090A0B0C0D0E0F65", "S-records: damaged: line 1"),
        ("S0030000FC\nS4030000FC", "S-records: line 2 is none"),
        ("S0030000FC\n", "nothing in it that would be loaded"),
        ("S1051000AABB85\nS1051001AABB84\n", "two contents for the memory at 0x1001"),
    ],
)
def test_damaged_lines_are_refused(text: str, why: str) -> None:
    with pytest.raises(ImageError, match=why):
        read(text)


def test_the_machine_has_to_be_named() -> None:
    with pytest.raises(ImageError, match="Intel HEX: does not say for which machine it is: name that, as with --raw"):
        read("\n".join(HEX_LINES), Reading())


@pytest.mark.parametrize("form", ["ihex", "srec"])
def test_a_kernel_of_lines_runs_is_patched_and_restored(form: str, tmp_path: Path) -> None:
    data, start, _ = flat_image(SAMPLE)
    plain, path, out, back = (tmp_path / name for name in ("kernel.bin", "kernel.hex", "p.hex", "back.hex"))
    plain.write_bytes(data)
    objcopy("-I", "binary", "-O", form, "--change-addresses", hex(start), plain, path)
    program, names = "fbt::vfs_*:entry { @[probefunc] = count(); }", map_of("riscv64", tmp_path)
    said = kinst_run(SAMPLE, "-qn", program, "--clock", "icount").stdout
    found = kinst_run(path, "--raw", "riscv64", "--symbols", names, "-qn", program, "--clock", "icount")
    assert (found.stdout, found.returncode) == (said, 0)
    command("rewrite", path, "--raw", "riscv64", "--symbols", names, "--probe", "fbt::vfs_*:entry", "-o", out)
    assert command("diff", path, out).stdout.endswith("every difference is explained\n")
    assert kinst_run(out, "-qn", program, "--clock", "icount").stdout == said
    command("rewrite", out, "--restore", "-o", back)
    assert back.read_bytes() == path.read_bytes()
    assert open_image(out).module == "p"
