"""--load with an ELF file: where its segments and its entry come to be; and what is said of others."""

from pathlib import Path

import pytest

from kinst.runtime.commandline.values import placed
from kinst.targets.errors import UsageError
from tests.writers.elf import EM_RISCV, Part, elf64

START = 0x8020_0000


def stage(folder: Path, *, virtual: int = START) -> Path:
    parts = [
        Part(".text", virtual, b"code", 5, load_address=START),
        Part(".data", virtual + 0x1000, b"data", 6, size=0x800, load_address=START + 0x1000),
    ]
    path = folder / "next.elf"
    path.write_bytes(elf64(EM_RISCV, virtual + 2, parts))
    return path


@pytest.mark.parametrize("virtual", [START, 0xFFFF_FFFF_8000_0000])
def test_an_elf_file_goes_to_its_physical_addresses(tmp_path: Path, virtual: int) -> None:
    file = placed(str(stage(tmp_path, virtual=virtual)))
    assert (file.name, file.address, file.entry) == ("next.elf", START, START + 2)
    assert file.content == b"code".ljust(0x1000, b"\0") + b"data".ljust(0x800, b"\0")


def test_it_moves_as_a_whole(tmp_path: Path) -> None:
    file = placed(f"{stage(tmp_path)}@0x90000000")
    assert (file.address, file.entry, len(file.content)) == (0x9000_0000, 0x9000_0002, 0x1800)


def test_other_files_need_an_address(tmp_path: Path) -> None:
    path = tmp_path / "raw@home.bin"
    path.write_bytes(b"\x13\0\0\0")
    assert (placed(f"{path}@0x80200000").content, placed(f"{path}@16").address) == (b"\x13\0\0\0", 16)
    for text in (str(path), str(tmp_path / "nothing.elf"), "@0x10"):
        with pytest.raises(UsageError, match=r"FILE@ADDRESS, for example .*; an ELF file has its address itself"):
            placed(text)


def test_a_damaged_elf_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.elf"
    path.write_bytes(b"\x7fELF\x02\x01\x01")
    with pytest.raises(UsageError, match="--load "):
        placed(str(path))
