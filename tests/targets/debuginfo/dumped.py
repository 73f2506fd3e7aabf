"""What llvm-dwarfdump says of inlined copies: the reference, parsed from its text."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

_ENTRY = re.compile(r"0x([0-9a-f]+):( +)DW_TAG_(\w+)")
_ATTRIBUTE = re.compile(r"\s+DW_AT_(\w+)\s+\((.*)")
_RANGE = re.compile(r"\[0x([0-9a-f]+), 0x([0-9a-f]+)\)")

Ranges = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class DumpedEntry:
    """An entry: attributes as the tool prints them; all lines of a list of ranges."""

    offset: int
    depth: int  # higher than that of what it is in
    tag: str
    values: dict[str, str] = field(default_factory=dict)

    def number(self, attribute: str) -> int | None:
        text = self.values.get(attribute)
        return None if text is None else int(text.strip("()\n").split()[0], 0)

    def ranges(self) -> Ranges:
        """Without empty ones."""
        found = [(int(low, 16), int(high, 16)) for low, high in _RANGE.findall(self.values.get("ranges", ""))]
        low, high = self.number("low_pc"), self.number("high_pc")
        if low is not None and high is not None and "ranges" not in self.values:
            found.append((low, high))
        return tuple(pair for pair in found if pair[0] < pair[1])


@dataclass(frozen=True, slots=True)
class DumpedCopy:
    """An inlined copy as the dump has it."""

    function: int  # offset of the entry that it is a copy of
    ranges: Ranges
    entry: int | None
    call_file: str
    call_line: int

    @property
    def starts(self) -> int:
        """Where it is entered."""
        return self.ranges[0][0] if self.entry is None else self.entry


def need_dwarfdump() -> None:
    """Skips the test without llvm-dwarfdump; where the gate runs it must be there."""
    if shutil.which("llvm-dwarfdump") is None:
        assert not os.environ.get("KINST_REQUIRE_TOOLS"), "no llvm-dwarfdump"
        pytest.skip("no llvm-dwarfdump")


def dumped(path: Path, *options: str) -> Iterator[DumpedEntry]:
    """All entries of a dump."""
    need_dwarfdump()
    command = ["llvm-dwarfdump", *options, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        yield from parsed(process.stdout)


def parsed(lines: Iterable[str]) -> Iterator[DumpedEntry]:
    """Entries of the tool's text."""
    current, attribute = None, ""
    for line in lines:
        if (entry := _ENTRY.match(line)) is not None:
            if current is not None:
                yield current
            current, attribute = DumpedEntry(int(entry[1], 16), len(entry[2]), entry[3]), ""
        elif current is not None and (found := _ATTRIBUTE.match(line)) is not None:
            attribute = found[1]
            current.values[attribute] = found[2]
        elif current is not None and attribute:
            current.values[attribute] += line
    if current is not None:
        yield current


def copies(entries: Iterable[DumpedEntry]) -> Iterator[DumpedCopy]:
    """The inlined copies that have code."""
    for entry in entries:
        origin = entry.number("abstract_origin")
        if entry.tag != "inlined_subroutine" or origin is None or not entry.ranges():
            continue
        file = entry.values.get("call_file", "").rstrip(")\n").strip('("')
        yield DumpedCopy(origin, entry.ranges(), entry.number("entry_pc"), file, entry.number("call_line") or 0)
