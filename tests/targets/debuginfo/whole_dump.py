"""What llvm-dwarfdump says of all inlined copies of an image, kept in the cache: of a vmlinux it takes a minute.

One line a copy: function, caller, entry, file and line of the call, ranges. The caller is the subprogram around; a
function's own code has none.
"""

import gzip
import hashlib
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.images import CACHE
from tests.targets.debuginfo.dumped import DumpedEntry, Ranges, need_dwarfdump, parsed

_FORMAT = 1  # of what is kept
_QUOTED = re.compile(r'"(.*)"')
# Entries of copies, and of subprograms. Millions of lines are left out before Python sees them.
_FILTER = r"/^0x/ { keep = /DW_TAG_(inlined_subroutine|subprogram)$/ } keep"


@dataclass(frozen=True, slots=True)
class WholeCopy:
    """An inlined copy that has code, or a function's own code."""

    function: str
    caller: str
    entry: int  # DW_AT_entry_pc, else the first range's start
    call_file: str
    call_line: int
    ranges: Ranges

    def line(self) -> str:
        """As it is kept."""
        numbers = " ".join(f"{value:x}" for pair in self.ranges for value in pair)
        return "\t".join((self.function, self.caller, f"{self.entry:x}", self.call_file, str(self.call_line), numbers))

    @classmethod
    def of(cls, line: str) -> "WholeCopy":
        """Of a line."""
        function, caller, entry, file, call_line, numbers = line.rstrip("\n").split("\t")
        values = [int(value, 16) for value in numbers.split(" ")]
        return cls(
            function, caller, int(entry, 16), file, int(call_line), tuple(zip(values[::2], values[1::2], strict=True))
        )


def copy_counts(image: Path) -> Counter[str]:
    """How many copies each function has."""
    with _lines(image) as lines:
        return Counter(function for line in lines for function, caller, _ in [line.split("\t", 2)] if caller)


def whole_copies(image: Path, functions: Set[str]) -> Iterator[WholeCopy]:
    """The copies of some functions."""
    return (one for one in _of(image, functions) if one.caller)


def own_code(image: Path, functions: Set[str]) -> Iterator[WholeCopy]:
    """The code that some functions have of their own."""
    return (one for one in _of(image, functions) if not one.caller)


def _of(image: Path, functions: Set[str]) -> Iterator[WholeCopy]:
    with _lines(image) as lines:
        for line in lines:
            if line.partition("\t")[0] in functions:
                yield WholeCopy.of(line)


@contextmanager
def _lines(image: Path) -> Iterator[Iterator[str]]:
    need_dwarfdump()
    kept = _place(image)
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(f".{os.getpid()}")
        with gzip.open(partial, "wt", compresslevel=1) as out:
            out.writelines(f"{copy.line()}\n" for copy in _copies(_entries(image)))
        partial.rename(kept)
    with gzip.open(kept, "rt") as lines:
        yield lines


def _place(image: Path) -> Path:
    """Another file for another image, another version of the tool and of what is made of its text."""
    version = subprocess.run(["llvm-dwarfdump", "--version"], check=True, capture_output=True).stdout
    status = image.stat()
    key = repr((_FORMAT, version, str(image), status.st_size, status.st_mtime_ns)).encode()
    return CACHE / "dumps" / f"{hashlib.sha256(key).hexdigest()[:16]}.gz"


def _entries(image: Path) -> Iterator[DumpedEntry]:
    dump = ["llvm-dwarfdump", "--debug-info", str(image)]
    with (
        subprocess.Popen(dump, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as first,
        subprocess.Popen(["awk", _FILTER], stdin=first.stdout, stdout=subprocess.PIPE, text=True) as second,
    ):
        assert first.stdout is not None and second.stdout is not None
        first.stdout.close()
        yield from parsed(second.stdout)
    assert first.returncode == second.returncode == 0


def _copies(entries: Iterable[DumpedEntry]) -> Iterator[WholeCopy]:
    around: list[tuple[DumpedEntry, str]] = []  # subprograms with code, each in the one before: GNU C nests functions
    for entry in entries:
        ranges = entry.ranges()
        if not ranges:
            continue
        while around and not _is_in(entry, around[-1][0]):
            around.pop()
        name = _quoted(entry, "abstract_origin") or _quoted(entry, "name")
        caller = around[-1][1] if entry.tag != "subprogram" else ""
        if not caller:
            around.append((entry, name))
        at = entry.number("entry_pc")
        start, line = ranges[0][0] if at is None else at, entry.number("call_line") or 0
        yield WholeCopy(name, caller, start, _quoted(entry, "call_file"), line, ranges)


def _is_in(entry: DumpedEntry, outer: DumpedEntry) -> bool:
    end = outer.number("sibling")
    return entry.depth > outer.depth and (end is None or entry.offset < end)


def _quoted(entry: DumpedEntry, attribute: str) -> str:
    found = _QUOTED.search(entry.values.get(attribute, ""))
    return found[1] if found is not None else ""
