"""An outline must tell LIEF the same as the file it was made from, but for where its notes are."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import lief
import numpy as np
import pytest

from kinst.targets.elf.header import read_tables
from kinst.targets.elf.outline import outline
from kinst.targets.image import open_image
from tests.images import real_image

_SAMPLES: Final = Path(__file__).parents[3] / "samples"


def _tables(binary: lief.ELF.Binary) -> tuple[Sequence[object], ...]:
    segments = [
        (row.type, row.flags, row.virtual_address, row.physical_size, row.virtual_size, row.alignment)
        for row in binary.segments
    ]
    offsets = [row.file_offset for row in binary.segments if row.type != lief.ELF.Segment.TYPE.NOTE]
    sections = [
        (row.name, row.type, row.flags, row.virtual_address, row.size, row.link, row.information, row.entry_size)
        for row in binary.sections
    ]
    return segments, offsets, sections, [(note.original_type, bytes(note.description)) for note in binary.notes]


@pytest.mark.parametrize("name", ["gnumach", "opensbi-1.6", "u-boot-arm64", "amd64", "arm64", "riscv64"])
def test_it_has_the_tables_of_the_file(name: str) -> None:
    path = _SAMPLES / f"kernel-{name}.elf" if name in ("amd64", "arm64", "riscv64") else real_image(name)
    data = np.frombuffer(path.read_bytes(), np.uint8)
    small = outline(data, read_tables(data)).data
    assert len(small) < len(data) // 8
    found, expected = lief.ELF.parse(small), lief.ELF.parse(str(path))
    assert found is not None
    assert expected is not None
    assert _tables(found) == _tables(expected)
    offsets = [row.file_offset for row in expected.sections]
    assert [row.offset for row in open_image(path).sections] == offsets
