"""kinst-run --read of a process's core, as gdb and Linux write it: no physical addresses, and perhaps no code."""

import resource
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest

from kinst.runtime.readout.files import CoreDump
from kinst.targets.elf.core import AT_ENTRY, read_core
from kinst.targets.elf.file import map_file
from kinst.targets.elf.header import ELF_HEADER, PROGRAM_HEADER, PT_NOTE
from kinst.targets.image import open_image
from tests.commands.in_process import command
from tests.runtime.readout.standalone import kinst_run

NT_FILE, NT_AUXV = 0x46494C45, 6
LIBRARY = "int twice(int n) { return n * 2 + 1; } int thrice(int n) { return twice(n) + n; }"
PROGRAM = """
#include <stdlib.h>
int thrice(int);
int main(int count, char **words) {
    int sum = 0;
    for (int n = 0; n < 1000; n++) sum += thrice(n);
    if (count > 1) abort();
    return sum & 1;
}
"""


def compiled(source: str, out: Path, *words: object) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    subprocess.run(["gcc", "-O1", "-o", out, "-xc", "-", "-xnone", *map(str, words)], input=source.encode(), check=True)
    return out


class Writer(Protocol):
    __name__: str

    def __call__(self, program: Path, core: Path) -> Path: ...


@pytest.fixture(scope="module", params=["-pie", "-no-pie"])
def process(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A program and its library, both with counters."""
    folder = tmp_path_factory.mktemp("process")
    library = compiled(LIBRARY, folder / "libtimes.so", "-shared", "-fPIC")
    program = compiled(PROGRAM, folder / "original", library, request.param)
    standalone(library, folder / "alone.so")
    (folder / "alone.so").rename(library)
    return standalone(program, folder / "program"), library


def standalone(image: Path, out: Path) -> Path:
    result = command("rewrite", image, "--standalone", "--probe", "fbt:::entry", "-o", out)
    assert result.returncode == 0, result.stderr
    return out


def by_gdb(program: Path, core: Path) -> Path:
    if shutil.which("gdb") is None:
        pytest.skip("needs gdb")
    words = ("-ex", "run abort", "-ex", f"generate-core-file {core}")
    subprocess.run(["gdb", "-nx", "-batch", *words, program], check=True, capture_output=True)
    return core


def by_linux(program: Path, core: Path) -> Path:
    if Path("/proc/sys/kernel/core_pattern").read_text().strip() != "core":
        pytest.skip("cores of this machine go elsewhere")
    core.mkdir()
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    try:
        run = subprocess.run([program, "abort"], cwd=core, check=False)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)
    assert run.returncode == -6
    return next(core.glob("core*"))


@pytest.mark.parametrize("write", [by_gdb, by_linux])
def test_programs_and_libraries_are_found_wherever_they_were(process: tuple[Path, Path], write: Writer) -> None:
    program, library = process
    core = write(program, program.parent / f"core.{write.__name__}")
    assert "1 fbt:original:main:entry" in kinst_run(program, "--read", core).stdout
    found = kinst_run(library, "--read", core).stdout
    assert "1000 fbt:libtimes.so:twice:entry" in found
    assert "1000 fbt:libtimes.so:thrice:entry" in found


def test_another_program_is_not_found_in_it(process: tuple[Path, Path], tmp_path: Path) -> None:
    program, _ = process
    core = by_gdb(program, tmp_path / "core")
    other = standalone(compiled("int main(void) { return 0; }", tmp_path / "other"), tmp_path / "alone")
    result = kinst_run(other, "--read", core)
    assert result.exit_code != 0
    assert "is not in this memory" in result.stderr


def test_without_a_list_of_files_a_program_is_where_it_begins(process: tuple[Path, Path], tmp_path: Path) -> None:
    program, library = process
    found = read_core(map_file(by_gdb(program, tmp_path / "core")))
    image = open_image(program)
    named = [*CoreDump(tmp_path, found).distances(image)]
    unnamed = replace(found, files=())
    assert [*CoreDump(tmp_path, unnamed).distances(image)] == named[-1:]
    assert len({*named}) == 1
    assert found.auxiliary[AT_ENTRY] - image.entry == named[0]
    assert not [*CoreDump(tmp_path, unnamed).distances(open_image(library))]


def test_damaged_notes_say_nothing() -> None:
    cut = struct.pack("<QQ", 1 << 60, 4096)
    notes = b"".join(struct.pack("<III8s", 5, len(cut), kind, b"CORE") + cut for kind in (NT_FILE, NT_AUXV))
    header = ELF_HEADER.pack(b"\x7fELF\x02\x01\x01".ljust(16, b"\0"), 4, 62, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    row = np.zeros(1, PROGRAM_HEADER)
    row["kind"], row["offset"], row["file_size"] = PT_NOTE, 64 + 56, len(notes)
    found = read_core(np.frombuffer(header + row.tobytes() + notes, np.uint8))
    assert found.files == ()
    assert found.auxiliary == {1 << 60: 4096}
