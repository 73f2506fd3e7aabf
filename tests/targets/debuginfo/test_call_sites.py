"""Calls as debug information has them, against llvm-dwarfdump: GCC's and clang's, DWARF 4 and 5; where units are."""

from bisect import bisect_right
from pathlib import Path

import pytest

from kinst.targets.debuginfo.call_sites import CallingFunction, CallSites
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.debuginfo.dwarf.unit_terms import BaseType
from kinst.targets.debuginfo.dwarf.units import Units
from kinst.targets.elf.file import open_elf
from kinst.targets.errors import ImageError
from tests.gated import long_after_first
from tests.images import real_image
from tests.samples.machines import SAMPLES
from tests.system.test_entry_values import built
from tests.targets.debuginfo.dumped import DumpedEntry, dumped

CALLS, PARAMETERS = ("call_site", "GNU_call_site"), ("call_site_parameter", "GNU_call_site_parameter")
TAILS = ("call_tail_call", "GNU_tail_call")
TARGETS, VALUES = ("call_target", "GNU_call_site_target"), ("call_value", "GNU_call_site_value")
Call = tuple[int | None, bool, bool, int, int]  # address, is it a tail call, has it a target, parameters, values


class Dumped:
    """One function of a dump."""

    def __init__(self, entry: DumpedEntry) -> None:
        self.entry = entry
        self.calls: list[tuple[DumpedEntry, list[DumpedEntry]]] = []

    def found(self) -> list[Call]:
        return sorted(
            (address_of(site), has(site, TAILS), has(site, TARGETS), len(given), sum(has(one, VALUES) for one in given))
            for site, given in self.calls
        )


def has(entry: DumpedEntry, names: tuple[str, ...]) -> bool:
    return any(name in entry.values for name in names)


def address_of(site: DumpedEntry) -> int:
    text = next(site.values[name] for name in ("call_return_pc", "call_pc", "low_pc") if name in site.values)
    return int(text.lstrip("(").split(")")[0], 16)


def functions(path: Path) -> list[Dumped]:
    """A call is made by the function whose code it is in: functions may stand within others."""
    found, calls = list[Dumped](), list[tuple[DumpedEntry, list[DumpedEntry]]]()
    for entry in dumped(path):
        if entry.tag == "subprogram" and entry.ranges():
            found.append(Dumped(entry))
        elif entry.tag in CALLS:
            calls.append((entry, []))
        elif entry.tag in PARAMETERS:
            calls[-1][1].append(entry)
    holders = sorted((low, high, number) for number, one in enumerate(found) for low, high in one.entry.ranges())
    for site, given in calls:
        place = address_of(site) - ("call_return_pc" in site.values or "low_pc" in site.values)
        low, high, number = holders[bisect_right(holders, (place, 1 << 64, 0)) - 1]
        assert low <= place < high
        found[number].calls.append((site, given))
    return found


def ours(sites: CallSites, function: CallingFunction) -> list[Call]:
    calls = sites.calls_of(function)
    every = {id(one): one for one in (*calls.returning.values(), *calls.tails)}.values()
    return sorted(
        (
            one.at if one.returns is None else one.returns,
            one.is_tail,
            bool(one.target),
            len(one.parameters),
            sum(bool(parameter.value) for parameter in one.parameters),
        )
        for one in every
    )


def check(path: Path) -> tuple[int, int]:
    """How many functions and calls agree."""
    sites, count, calls = CallSites(DebugSections(open_elf(path))), 0, 0
    for one in functions(path):
        ranges = one.entry.ranges()
        found = [sites.function_at(address) for low, high in ranges for address in (low, high - 1)]
        assert all(function is found[0] for function in found), hex(ranges[0][0])
        function = found[0]
        assert function is not None and function.offset == one.entry.offset
        assert function.ranges == ranges and function.start == ranges[0][0]
        all_calls = ("call_all_calls", "GNU_all_call_sites", "call_all_tail_calls", "GNU_all_tail_call_sites")
        assert function.has_all_tail_calls == has(one.entry, all_calls)
        assert ours(sites, function) == one.found()
        count, calls = count + 1, calls + len(one.calls)
    return count, calls


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("version", [4, 5])
def test_calls_of_what_compilers_make(compiler: str, version: int, tmp_path: Path) -> None:
    """GCC 12 and clang 14 have .debug_addr only in clang's DWARF 5, and .debug_aranges only in GCC's."""
    path = built(tmp_path, "amd64", compiler, version)
    count, calls = check(path)
    assert count > 18 and calls > 40
    sections = DebugSections(open_elf(path))
    assert bool(len(sections.get("aranges"))) == (compiler == "gcc")
    assert bool(len(sections.get("addr"))) == ((compiler, version) == ("clang", 5))


@pytest.mark.parametrize("name", long_after_first(["kernel-arm64", "gnumach"]))
def test_calls_of_a_kernel(name: str) -> None:
    path = real_image(name) if name == "gnumach" else SAMPLES / f"{name}.elf"
    count, calls = check(path)
    assert count > 90 and calls > 180


class Without(DebugSections):
    """Debug information of which a section was cut."""

    def __init__(self, path: Path, sizes: dict[str, int]) -> None:
        super().__init__(open_elf(path))
        self._sizes = sizes

    def get(self, name: str) -> memoryview:
        return super().get(name)[: self._sizes.get(name)]


@pytest.mark.parametrize("size", [0, 3, 100, 401])
def test_units_that_the_list_of_addresses_lacks_are_found_by_themselves(size: int) -> None:
    path = SAMPLES / "kernel-riscv64.elf"
    whole, cut = CallSites(DebugSections(open_elf(path))), CallSites(Without(path, {"aranges": size}))
    for one in functions(path):
        address = one.entry.ranges()[0][0]
        assert cut.function_at(address) == whole.function_at(address) is not None
    assert cut.function_at(0x1234) is whole.function_at(0x1234) is None


def test_what_expressions_refer_to(tmp_path: Path) -> None:
    path = built(tmp_path, "amd64", "clang", 5)
    types = {one.values["name"].split('"')[1]: one.offset for one in dumped(path) if one.tag == "base_type"}
    terms = CallSites(DebugSections(open_elf(path))).terms(0)
    assert terms.base_type(types["unsigned char"]) == BaseType("unsigned char", 1, is_signed=False)
    assert terms.base_type(types["long"]) == BaseType("long", 8, is_signed=True)
    units = Units(DebugSections(open_elf(path)))
    assert terms.address(0) == units.open(units.all[0]).indexed_address(0) > 0x400000
    with pytest.raises(ImageError, match="takes it for a base type"):
        terms.base_type(units.all[0].first)
    with pytest.raises(ImageError, match=r"beyond the end of \.debug_addr"):
        terms.address(1 << 20)
