"""A patched file that is not what was planned is found before it gets its name."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

from kinst.rewriter.naming.resolve import resolve
from kinst.rewriter.planning.layout import Layout, lay_out
from kinst.rewriter.planning.plan import Plan, make_plan
from kinst.rewriter.rewriting import Source, open_source
from kinst.rewriter.shell.progress import Done, Progress
from kinst.rewriter.writing.second_look import DefectError, check_written
from kinst.rewriter.writing.write import write_image
from kinst.targets.elf.header import PROGRAM_HEADER, SECTION_HEADER, SHT_NOTE, Tables, read_tables
from kinst.targets.image import open_image
from kinst.targets.probe import parse_probe_name
from tests.rewriter.programs import small

SAMPLES = Path(__file__).parent.parent.parent / "samples"
E_ENTRY, E_FLAGS = 24, 48


@cache
def planned(path: Path) -> Plan:
    program = open_source(Source(path)).program
    return make_plan(resolve(program, [parse_probe_name("fbt:::entry")]))


def in_segment(tables: Tables, index: int, field: str) -> int:
    """The file offset of a field of a program header."""
    offsets = PROGRAM_HEADER.fields
    assert offsets is not None
    return tables.header.phoff + index % len(tables.segments) * PROGRAM_HEADER.itemsize + offsets[field][1]


def in_section(tables: Tables, index: int, field: str) -> int:
    """The file offset of a field of a section header."""
    offsets = SECTION_HEADER.fields
    assert offsets is not None
    return tables.header.shoff + index % len(tables.sections) * SECTION_HEADER.itemsize + offsets[field][1]


def in_note(tables: Tables) -> int:
    """The file offset of a description."""
    return int(tables.sections["offset"][tables.sections["kind"] == SHT_NOTE][0]) + 16


def in_name(tables: Tables, index: int) -> int:
    """The file offset of a section's name."""
    row = tables.sections[index]
    return int(tables.sections["offset"][tables.header.shstrndx]) + int(row["name"]) + 1


WRONG: dict[str, tuple[Callable[[Tables], int], str]] = {
    "entry": (lambda _: E_ENTRY, "the entry in its ELF header is"),
    "flags": (lambda _: E_FLAGS, "the flags in its ELF header is"),
    "old segment": (lambda tables: in_segment(tables, 1, "load_address"), "not those of the original and one more"),
    "new segment": (lambda tables: in_segment(tables, -1, "address"), "no segment of .* bytes, planned at"),
    "its size": (lambda tables: in_segment(tables, -1, "size"), "no segment of .* bytes, planned at"),
    "past the end": (lambda tables: in_segment(tables, 1, "file_size") + 4, "truncated: segment 1 ends"),
    "old section": (lambda tables: in_section(tables, 2, "address"), "not those of the original and some more"),
    "new section": (lambda tables: in_section(tables, -3, "size"), r"no section \.kinst\.text of"),
    "manifest": (lambda tables: in_section(tables, -2, "offset"), r"no section \.kinst\.manifest of"),
    "old name": (lambda tables: in_name(tables, 1), "not called as those of the original"),
    "new name": (lambda tables: in_name(tables, -3), r"no section \.kinst\.text of"),
    "note": (in_note, "it has other notes"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("machine", ["amd64", "arm64", "riscv64"])
def test_one_wrong_bit_is_found(machine: str, wrong: str, tmp_path: Path) -> None:
    plan = planned(SAMPLES / f"kernel-{machine}.elf")
    out, (place, message) = tmp_path / "p.elf", WRONG[wrong]
    layout = written(plan, out)
    with out.open("r+b") as file:
        at = place(read_tables(open_image(out).data))
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))
        with pytest.raises(DefectError, match=message):
            check_written(plan, layout, file)


def written(plan: Plan, out: Path) -> Layout:
    """Write the image; what was planned for it."""
    return lay_out(plan, write_image(plan, out).original_sha256)


def test_an_image_of_which_the_disk_makes_something_else_gets_no_name(tmp_path: Path) -> None:
    """Somebody changes the file while it is written: a segment that the rewriter copied is elsewhere then."""
    path, out = small(spare_header=True).write(tmp_path), tmp_path / "p.elf"
    place = in_segment(read_tables(open_image(path).data), 0, "load_address")
    with pytest.raises(DefectError, match=r"small\.elf: the patched image .* bug of kinst-rewrite, please report it$"):
        write_image(planned(path), out, progress=changing(tmp_path, place))
    assert [one.name for one in tmp_path.iterdir()] == ["small.elf"]


def _is_in(descriptor: Path, folder: Path) -> bool:
    with suppress(OSError):  # the one that lists them
        return descriptor.readlink().is_relative_to(folder)
    return False


def changing(folder: Path, offset: int) -> Progress:
    """A progress that changes a byte of the file in the making when the original is copied."""

    @contextmanager
    def stage(name: str, _total: int) -> Iterator[Done]:
        yield lambda _amount: None
        if name == "writing":
            opened = (one for one in Path("/proc/self/fd").iterdir() if _is_in(one, folder))
            (partial,) = (one for one in opened if one.readlink().name.endswith((".partial", " (deleted)")))
            with partial.open("r+b") as file:
                file.seek(offset)
                file.write(b"\xff")

    return stage
