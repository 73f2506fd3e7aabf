"""``python -m tests.targets.debuginfo.all_copies IMAGE...``: a seeded draw of inline functions of a large image against
llvm-dwarfdump's whole dump (minutes an image, so not among the tests).

The names are drawn from the dump, half of them at random and half by the number of copies, so that the largest is among
them. Ranges, entry and place of the call of each copy must be equal.
"""

import random
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from os.path import normpath
from pathlib import Path

from kinst.targets.debuginfo.elf_file import open_elf
from kinst.targets.debuginfo.inline_search import InlineSearch
from tests.images import real_image
from tests.targets.debuginfo.dumped import DumpedEntry, parsed

SEED = 4
DRAWN = 200
_QUOTED = re.compile(r'"(.*)"')
_WANTED = ("abstract_origin", "low_pc", "high_pc", "ranges", "entry_pc", "call_file", "call_line")

Key = tuple[tuple[tuple[int, int], ...], int, int]  # ranges, entry, line of the call


def copies_by_name(path: Path) -> dict[str, list[tuple[Key, str]]]:
    """What the dump says: copies that have code, and the files of their calls."""
    found: dict[str, list[tuple[Key, str]]] = defaultdict(list)
    with subprocess.Popen(
        ["llvm-dwarfdump", "--debug-info", str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        for entry in parsed(_copies_only(process.stdout)):
            name, ranges = _QUOTED.search(entry.values.get("abstract_origin", "")), entry.ranges()
            if name is not None and ranges:
                found[name[1]].append((_key(entry), _file(entry)))
    return found


def _copies_only(lines: Iterator[str]) -> Iterator[str]:
    is_copy = False
    for line in lines:
        if line.startswith("0x"):
            is_copy = "DW_TAG_inlined_subroutine" in line
        if is_copy:
            yield line


def _key(entry: DumpedEntry) -> Key:
    ranges = entry.ranges()
    at = entry.number("entry_pc")
    return ranges, ranges[0][0] if at is None else at, entry.number("call_line") or 0


def _file(entry: DumpedEntry) -> str:
    found = _QUOTED.search(entry.values.get("call_file", ""))
    return found[1] if found is not None else ""


def check(path: Path) -> None:
    """Compares a draw; says what was compared, or fails."""
    expected = copies_by_name(path)
    choose, by_size = random.Random(SEED), Counter({name: len(those) for name, those in expected.items()})
    names = dict.fromkeys(choose.sample(sorted(expected), DRAWN // 2))
    names |= dict.fromkeys(name for name, _ in by_size.most_common(DRAWN // 2))
    search, compared, started = InlineSearch(open_elf(path)), 0, time.process_time()
    for name in names:
        found = [copy for function in search.find(name) for copy in function.copies]
        ours = sorted(((copy.ranges, copy.entry, copy.call.line), copy.call.file) for copy in found)
        theirs = sorted(expected[name])
        assert [key for key, _ in ours] == [key for key, _ in theirs], name
        for (_, mine), (_, other) in zip(ours, theirs, strict=True):
            assert normpath(other).endswith(normpath(mine)), (name, mine, other)
        compared += len(ours)
    spent = (time.process_time() - started) / len(names)
    most, count = by_size.most_common(1)[0]
    print(
        f"{path}: {len(names)} of {len(expected)} inline functions, {compared} of {by_size.total()} copies are equal; "
        f"most copies: {most} ({count}); {spent:.2f} s of processor time a function",
        flush=True,
    )


if __name__ == "__main__":
    for argument in sys.argv[1:] or ["linux-amd64", "linux-arm64", "linux-riscv64"]:
        check(Path(argument) if "/" in argument else real_image(argument))
