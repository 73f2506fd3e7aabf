"""Inlined copies of all inline functions of GNU Mach against llvm-dwarfdump's dump."""

import subprocess
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from kinst.targets.debuginfo.elf_file import open_elf
from kinst.targets.debuginfo.inline_search import InlineSearch, exists, find_inlines
from tests.images import real_image
from tests.targets.debuginfo.dumped import DumpedCopy, DumpedEntry, copies, dumped


@cache
def dump() -> tuple[DumpedEntry, ...]:
    return tuple(dumped(real_image("gnumach"), "--debug-info"))


def by_name() -> dict[str, list[DumpedCopy]]:
    """Copies by the name of what they are copies of."""
    names = {entry.offset: entry.values["name"].rstrip(")\n").strip('("') for entry in dump() if "name" in entry.values}
    found = defaultdict(list)
    for copy in copies(dump()):
        found[names[copy.function]].append(copy)
    return found


def test_every_copy_of_every_function() -> None:
    search, expected = InlineSearch(open_elf(real_image("gnumach"))), by_name()

    assert sum(map(len, expected.values())) > 1500
    for name, those in expected.items():
        found = [copy for function in search.find(name) for copy in function.copies]
        assert sorted(copy.ranges for copy in found) == sorted(copy.ranges for copy in those), name
        assert sorted(copy.entry for copy in found) == sorted(copy.starts for copy in those)


def test_where_calls_stand() -> None:
    search = InlineSearch(open_elf(real_image("gnumach")))

    for name, those in by_name().items():
        found = {copy.ranges: copy for function in search.find(name) for copy in function.copies}
        for copy in those:
            call = found[copy.ranges].call
            if sum(other.ranges == copy.ranges for other in those) == 1:
                assert call.line == copy.call_line
                assert copy.call_file.endswith(call.file)


def test_names_are_what_says_inline() -> None:
    expected = {
        entry.values["name"].rstrip(")\n").strip('("')
        for entry in dump()
        if entry.tag == "subprogram" and "name" in entry.values and "_inlined" in entry.values.get("inline", "")
    }

    found = InlineSearch(open_elf(real_image("gnumach"))).names("*")

    assert set(found) >= expected


@pytest.mark.parametrize("pattern", ["vm_page_w*", "*"])
def test_a_glob_finds_what_its_names_find(pattern: str) -> None:
    search = InlineSearch(open_elf(real_image("gnumach")))

    found = search.find_matching(pattern)

    assert found.damage == ()
    assert list(found.found) == [one for name in search.names(pattern) for one in search.find(name)]


def test_callers_are_the_symbols_around(tmp_path: Path) -> None:
    elf = open_elf(real_image("gnumach"))
    listing = subprocess.run(["nm", "-S", str(elf.path)], capture_output=True, text=True, check=True).stdout
    functions = [line.split() for line in listing.splitlines() if line.split()[-2] in "tTwW" and len(line.split()) == 4]
    bounds = [(int(address, 16), int(size, 16), name) for address, size, _, name in functions]

    for name in list(by_name())[:40]:
        for function in find_inlines(elf, name):
            for copy in function.copies:
                around = {one for low, size, one in bounds if low <= copy.ranges[0][0] < low + size}
                assert copy.caller in (around or {""})


def test_exists_tells_functions_from_other_names() -> None:
    elf = open_elf(real_image("gnumach"))

    assert exists(elf, "vm_fault")
    assert not exists(elf, "task_t")
    assert not exists(elf, "no_such_function")
    assert find_inlines(elf, "vm_fault") == ()
