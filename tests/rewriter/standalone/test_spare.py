"""Room inside an image: what is mapped, and there for alignment only."""

from pathlib import Path

import pytest

from kinst.rewriter.standalone.places.spare import data_gaps, unfiled_gap
from kinst.targets.image import Image, open_image
from tests.writers.elf import EM_AARCH64, Part, Symbol, elf64

CODE, DATA = 0x4008_0000, 0x4010_0000
RET = bytes.fromhex("c0035fd6")


def image(folder: Path, *labels: tuple[str, int], code: bytes = RET * 0x480) -> Image:
    """A kernel whose code ends at 0x40081200 and whose .bss begins at 0x40100000, with what follows both."""
    parts = (
        Part(".text", CODE, code, flags=5),
        Part(".rodata", CODE + 0x1_0000, b"text", flags=4),
        Part(".bss", DATA, b"", flags=6, size=0x5000),
        Part(".behind", DATA + 0x1_0000, b"text", flags=4),
    )
    symbols = [Symbol("start", CODE, 4), *(Symbol(name, address, 0) for name, address in labels)]
    path = folder / "kernel.elf"
    path.write_bytes(elf64(EM_AARCH64, CODE, parts, symbols))
    return open_image(path)


def test_code_is_mapped_up_to_its_label(tmp_path: Path) -> None:
    assert unfiled_gap(image(tmp_path, ("_etext", CODE + 0x1_0000))) == (CODE + 0x2000, CODE + 0x1_0000)


@pytest.mark.parametrize("label", ["etext_", "_stext"])
def test_without_the_label_nothing_is_known(label: str, tmp_path: Path) -> None:
    assert unfiled_gap(image(tmp_path, (label, CODE + 0x1_0000))) is None


def test_code_that_is_not_filled_up_has_no_room(tmp_path: Path) -> None:
    assert unfiled_gap(image(tmp_path, ("_etext", CODE + 0x1_0000), code=RET * 0x3FF0)) is None
    assert unfiled_gap(image(tmp_path, ("_etext", CODE + 0x11FC))) is None


@pytest.mark.parametrize("last", ["init_pg_end", "__bss_stop", "early_init_stack"])
def test_memory_is_kept_up_to_its_label(last: str, tmp_path: Path) -> None:
    found = image(tmp_path, (last, DATA + 0x4FF0), ("_end", DATA + 0x1_0000))
    assert data_gaps(found) == ((DATA + 0x4FF0, DATA + 0x1_0000),)


def test_behind_a_label_that_opens_a_range_is_somebodys(tmp_path: Path) -> None:
    assert data_gaps(image(tmp_path, ("init_pg_dir", DATA + 0x4000), ("_end", DATA + 0x1_0000))) == ()
