"""Inlined copies of all inline functions of GNU Mach against llvm-dwarfdump's dump."""

import pytest

from kinst.targets.debuginfo.inline_search import InlineSearch
from kinst.targets.elf.file import open_elf
from tests.gated import long_after_first
from tests.images import real_image
from tests.targets.debuginfo.all_copies import Comparison
from tests.targets.debuginfo.dumped import dumped
from tests.targets.debuginfo.whole_dump import copy_counts


def test_every_copy_of_every_function() -> None:
    """Ranges, entries, calls and callers."""
    image = real_image("gnumach")
    search, counts = InlineSearch(open_elf(image)), copy_counts(image)
    comparison = Comparison(image, counts.keys())
    for name in counts:
        comparison.compare(name, search.find(name))
    comparison.end()
    assert not comparison.differences
    assert comparison.compared == counts.total() > 1500


def test_names_are_what_says_inline() -> None:
    expected = {
        entry.values["name"].rstrip(")\n").strip('("')
        for entry in dumped(real_image("gnumach"), "--debug-info")
        if entry.tag == "subprogram" and "name" in entry.values and "_inlined" in entry.values.get("inline", "")
    }

    found = InlineSearch(open_elf(real_image("gnumach"))).names("*")

    assert set(found) >= expected


@pytest.mark.parametrize("pattern", long_after_first(["vm_page_w*", "*"]))
def test_a_glob_finds_what_its_names_find(pattern: str) -> None:
    search = InlineSearch(open_elf(real_image("gnumach")))

    found = search.find_matching(pattern)

    assert found.damage == ()
    assert list(found.found) == [one for name in search.names(pattern) for one in search.find(name)]


def test_exists_tells_functions_from_other_names() -> None:
    elf = open_elf(real_image("gnumach"))

    assert InlineSearch(elf).exists("vm_fault")
    assert not InlineSearch(elf).exists("task_t")
    assert not InlineSearch(elf).exists("no_such_function")
    assert InlineSearch(elf).find("vm_fault") == ()
