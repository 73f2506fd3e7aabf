"""The header of a line number program -> the files that DW_AT_decl_file and DW_AT_call_file mean (DWARF 5, 6.2.4).

Its lists are read here, a name when it is asked for: 0.08 ms a unit of GNU Mach, and 3 ms with pyelftools. The lines of
code are read by `line_rows`.
"""

import re
from posixpath import normpath
from typing import Final

from kinst.targets.debuginfo.dwarf.forms import DAMAGE, Sizes, read_form
from kinst.targets.debuginfo.dwarf.numbers import At, Form, LineContent
from kinst.targets.debuginfo.dwarf.units import Entry, UnitEntries
from kinst.targets.debuginfo.inlined import SourceLine
from kinst.targets.errors import ImageError
from kinst.targets.leb128 import leb
from kinst.targets.values import dataclass
from kinst.targets.visible import text_of

_PATH, _DIRECTORY = LineContent.PATH, LineContent.DIRECTORY_INDEX
_MOST: Final = 1 << 20  # files of a unit; more is damage
_USUAL: Final = re.compile(rb"(?s)(.{4})([\x80-\xff]*+[\x00-\x7f])")

_Value = tuple[int, int | bytes]  # form, and what stands there
# A name and the number of its directory; or the bytes of both as gas writes them, decoded when the file is asked for.
_Row = tuple[_Value, int] | tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class _Table:
    directories: list[_Row]
    files: list[_Row]


class LineFiles:
    """The files of one unit. A file is its directory, as the debug information has it, and its name."""

    def __init__(self, entries: UnitEntries) -> None:
        """Nothing is read yet."""
        self._entries = entries
        self._table: _Table | None = None
        self._names: dict[int, str] = {}

    def line(self, entry: Entry, file: At, line: At) -> SourceLine:
        """A place in the source, by its attributes for file and line."""
        number = entry.number(file)
        return SourceLine("" if number is None else self._name(number), entry.number(line) or 0)

    def path(self, index: int) -> str:
        """A file, from the root where the unit says where it was compiled. Raises ImageError: it is damaged."""
        found = self._name(index)
        if not found or found.startswith("/"):
            return found
        folder = text_of(self._entries.text(self._entries.root, At.COMP_DIR) or b"")
        # The first directory is that one itself, which may be relative (-ffile-prefix-map).
        return normpath(f"{folder}/{found}" if folder and not found.startswith(f"{folder}/") else found)

    def _name(self, index: int) -> str:
        """DWARF 5 counts files from 0; before, from 1, and 0 is no file."""
        found = self._names.get(index)
        if found is None:
            try:
                found = self._names[index] = self._read(index)
            except ImageError:
                raise
            except DAMAGE:
                raise self._entries.damaged(ImageError("its list of files is damaged")) from None
        return found

    def _read(self, index: int) -> str:
        if self._table is None:
            self._table = _table(self._entries)
        files, directories = self._table.files, self._table.directories
        if not 0 <= index < len(files):
            return ""
        name, number = _plain(files[index])
        text = self._text(name)
        if text.startswith("/") or not text or not number < len(directories):
            return text
        directory = self._text(_plain(directories[number])[0])
        return f"{directory}/{text}" if directory else text

    def _text(self, value: _Value) -> str:
        as_entry = Entry(self._entries.unit.offset, 0, self._entries.root.declaration, {At.NAME: value})
        return text_of(self._entries.text(as_entry, At.NAME) or b"")


def _plain(row: _Row) -> tuple[_Value, int]:
    name, directory = row
    if isinstance(name, bytes) and isinstance(directory, bytes):
        return (Form.LINE_STRP, int.from_bytes(name, "little")), leb(directory, 0)[0]
    return row  # type: ignore[return-value]  # mypy does not see that the two go together


def _table(entries: UnitEntries) -> _Table:
    offset = entries.root.number(At.STMT_LIST)
    section = entries.units.sections.get("line")
    if offset is None or not len(section):
        return _Table([], [])
    header = bytes(section[offset : offset + 32])
    start, wide = (12, 8) if header[:4] == b"\xff" * 4 else (4, 4)
    version = int.from_bytes(header[start : start + 2], "little")
    at = start + 2 + (2 if version >= 5 else 0)
    end = offset + at + wide + int.from_bytes(header[at : at + wide], "little")
    if end > len(section) or not 2 <= version <= 5:
        raise entries.damaged(ImageError(f"the line number program at {offset:#x} of .debug_line is damaged"))
    data = bytes(section[offset:end])
    at += wide + (5 if version >= 4 else 4)  # minimum_instruction_length ... line_range
    at += data[at]  # opcode_base, which counts itself, and standard_opcode_lengths
    if version < 5:
        return _old(entries, data, at)
    sizes = Sizes(version, entries.unit.sizes.address, wide)
    directories, at = _rows(data, at, sizes)
    return _Table(directories, _rows(data, at, sizes)[0])


def _old(entries: UnitEntries, data: bytes, at: int) -> _Table:
    """Directories, each ended by a NUL, and an empty one; then files: name, directory, time, size; an empty name."""
    compilation = entries.text(entries.root, At.COMP_DIR) or b""
    directories: list[_Row] = [((Form.STRING, compilation), 0)]
    files: list[_Row] = [((Form.STRING, b""), 0)]
    while data[at]:
        end = data.index(b"\0", at)
        directories.append(((Form.STRING, data[at:end]), 0))
        at = end + 1
    at += 1
    while data[at]:
        end = data.index(b"\0", at)
        directory, after = leb(data, end + 1)
        files.append(((Form.STRING, data[at:end]), directory))
        at = leb(data, leb(data, after)[1])[1]
    return _Table(directories, files)


def _rows(data: bytes, at: int, sizes: Sizes) -> tuple[list[_Row], int]:
    """How an entry is made (count (1); content and form of each part), how many entries there are, and the entries."""
    parts, at = [], at + 1
    for _ in range(data[at - 1]):
        content, at = leb(data, at)
        form, at = leb(data, at)
        parts.append((content, form))
    count, at = leb(data, at)
    if count > _MOST:
        raise ValueError(count)
    if parts == [(_PATH, Form.LINE_STRP), (_DIRECTORY, Form.UDATA)] and sizes.offset == 4:
        usual: list[tuple[bytes, bytes]] = _USUAL.findall(data, at)[:count]
        return list(usual), at + sum(4 + len(directory) for _, directory in usual)
    rows: list[_Row] = []
    for _ in range(count):
        row: dict[int, _Value] = {}
        for content, form in parts:
            form, value, at = read_form(data, at, form, sizes)
            row[content] = form, value
        number = row.get(_DIRECTORY, (0, 0))[1]
        rows.append((row.get(_PATH, (Form.STRING, b"")), number if isinstance(number, int) else 0))
    return rows, at
