"""Inlined copies as the reader finds them against those that llvm-dwarfdump prints: ranges, entries, calls, callers.

``python -m tests.targets.debuginfo.all_copies [IMAGE...]`` compares every copy of whole kernels.
"""

import sys
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Set
from os.path import normpath
from pathlib import Path
from subprocess import run

from kinst.targets.debuginfo.inline_search import InlineSearch
from kinst.targets.debuginfo.inlined import InlinedCopy, InlineFunction
from kinst.targets.elf.file import open_elf
from tests.images import real_image
from tests.targets.debuginfo.whole_dump import WholeCopy, copy_counts, whole_copies


class Comparison:
    """The dump of some functions of an image, to compare with what was found; `differences` says what is not equal."""

    def __init__(self, image: Path, functions: Set[str]) -> None:
        self.compared = 0
        self.differences: list[str] = []
        self._expected: dict[str, list[WholeCopy]] = defaultdict(list)
        for copy in whole_copies(image, functions):
            self._expected[copy.function].append(copy)
        self._symbols = _Symbols(image)

    def compare(self, name: str, found: Iterable[InlineFunction]) -> None:
        """All definitions of one name."""
        ours = sorted((copy for one in found for copy in one.copies), key=_ours)
        theirs = sorted(self._expected.pop(name, ()), key=_theirs)
        if [_ours(copy) for copy in ours] != [_theirs(copy) for copy in theirs]:
            self.differences.append(f"{name}: {len(ours)} and {len(theirs)} copies: ranges, entries or calls")
            return
        for mine, other in zip(ours, theirs, strict=True):
            self.compared += 1
            if not self._symbols.agree(mine, other.caller):
                self.differences.append(f"{name} at {mine.ranges[0][0]:#x}: in {mine.caller}, not in {other.caller}")
            if not _is_end(mine.call.file, other.call_file):
                self.differences.append(f"{name}: called in {mine.call.file}, not in {other.call_file}")

    def end(self) -> None:
        """Nothing of the dump may be left."""
        self.differences += [f"{name}: not found" for name in self._expected]


def _is_end(file: str, path: str) -> bool:
    """The tool writes the directory of compilation before names that are relative to it."""
    return path.endswith(file) or normpath(path).endswith(normpath(file))


def _ours(copy: InlinedCopy) -> tuple[object, ...]:
    return copy.ranges, copy.entry, copy.call.line


def _theirs(copy: WholeCopy) -> tuple[object, ...]:
    return copy.ranges, copy.entry, copy.call_line


class _Symbols:
    """The functions that nm lists, to which a subprogram's name is compared."""

    def __init__(self, image: Path) -> None:
        self._names: dict[int, set[str]] = defaultdict(set)  # one address may have several, DWARF knows one
        self._ends: dict[int, int] = {}
        for line in run(["nm", "-S", str(image)], check=True, capture_output=True, text=True).stdout.splitlines():
            words = line.split()
            if len(words) == 4 and words[2] in "tTwW":
                start, size = int(words[0], 16), int(words[1], 16)
                self._names[start].add(words[3])
                self._ends[start] = max(self._ends.get(start, 0), start + size)
        self._starts = sorted(self._ends)

    def agree(self, copy: InlinedCopy, subprogram: str) -> bool:
        """Whether a copy's caller is the subprogram: the suffix of a clone aside, and arm64's prefix of KVM's own
        symbols. One without a symbol (what is left of a weak function that another replaced) is no caller.
        """
        address = copy.ranges[0][0]
        at = bisect_right(self._starts, address) - 1
        if not copy.caller:
            return at < 0 or address >= self._ends[self._starts[at]]
        names = self._names[copy.caller_address]
        sources = {name.partition(".")[0].removeprefix("__kvm_nvhe_") for name in names}
        return copy.caller in names and subprogram in sources and address < self._ends[copy.caller_address]


def check(image: Path) -> None:
    """Compares everything; says what was compared, or fails."""
    counts, started = copy_counts(image), time.process_time()
    everything = InlineSearch(open_elf(image)).find_matching("*")
    assert not everything.damage, everything.damage
    spent = time.process_time() - started
    by_name: dict[str, list[InlineFunction]] = defaultdict(list)
    for one in everything.found:
        by_name[one.name].append(one)
    comparison = Comparison(image, counts.keys())
    for name, found in by_name.items():
        comparison.compare(name, found)
    comparison.end()
    assert not comparison.differences, comparison.differences[:20]
    assert comparison.compared == counts.total()
    sys.stdout.write(
        f"{image}: {comparison.compared} copies of {len(counts)} inline functions are equal; most copies: "
        f"{counts.most_common(1)[0]}; {spent:.0f} s of processor time for all\n"
    )


if __name__ == "__main__":
    for argument in sys.argv[1:] or ["gnumach", "linux-amd64", "linux-arm64", "linux-riscv64"]:
        check(Path(argument) if "/" in argument else real_image(argument))
