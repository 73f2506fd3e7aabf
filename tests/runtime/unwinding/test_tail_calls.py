"""Tail calls of a compiled program: what may enter itself again, and which one entered a function."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from kinst.rewriter.rewriting import Source, open_source
from kinst.runtime.unwinding.call_instructions import CallInstructions
from kinst.runtime.unwinding.tail_calls import TailCalls
from kinst.targets.debuginfo.call_sites import CallingFunction, CallSites
from tests.system.test_entry_values import built


@dataclass(frozen=True)
class Program:
    """The program of tests/system/entry_values.c."""

    tails: TailCalls
    sites: CallSites
    addresses: dict[str, int]

    def __getitem__(self, name: str) -> CallingFunction:
        found = self.sites.function_at(self.addresses[name])
        assert found is not None and found.start == self.addresses[name]
        return found


def program(folder: Path, machine: str) -> Program:
    opened = open_source(Source(built(folder, machine, "gcc", 5)))
    functions, sites = opened.program.functions, opened.inlines().call_sites
    addresses = dict(zip(functions.names, functions.address.tolist(), strict=True))
    return Program(TailCalls(sites, CallInstructions(lambda: opened.program)), sites, addresses)


@pytest.mark.parametrize("machine", ["amd64", "arm64", "riscv64"])
def test_tail_calls_of_a_program(machine: str, tmp_path: Path) -> None:
    found = program(tmp_path, machine)
    again = {name for name in found.addresses if name[0] != "_" and found.tails.may_reenter(found[name])}
    assert again == {"ping", "pong"}
    for first, name, maker in (
        ("tail", "holder", "tail"),
        ("tail_twice", "holder", "tail"),
        ("tail_twice", "tail", "tail_twice"),
    ):
        last = found.tails.last(found[first], found[name])
        assert last is not None and last.function == found[maker] and last.site.is_tail
    assert found.tails.last(found["saved"], found["holder"]) is None
    assert found.tails.last(found["pong"], found["tail"]) is None


def test_where_functions_are_entered(tmp_path: Path) -> None:
    found = program(tmp_path, "amd64")
    assert found.tails.entered(found.addresses["tail"]) == found["tail"]
    assert found.tails.entered(found.addresses["tail"] + 1) is None
    assert found.tails.entered(0x1000) is None


def test_room_for_patches_belongs_to_the_function(tmp_path: Path) -> None:
    """Debug information that begins behind it, as GCC's for riscv64 kernels does."""
    found = program(tmp_path, "amd64")
    start = found.addresses["tail"]

    class Behind(CallSites):
        def function_at(self, address: int) -> CallingFunction | None:
            function = super().function_at(address)
            if function is None or function.start != start:
                return function
            return replaced if address >= start + 5 else None

    sites = Behind(found.sites._units.sections)
    plain = found["tail"]
    replaced = CallingFunction(
        start + 5,
        ((start + 5, plain.ranges[0][1]),),
        plain.unit,
        plain.offset,
        plain.has_all_tail_calls,
        plain.frame_bases,
    )
    tails = TailCalls(sites, found.tails._instructions)
    assert tails.entered(start) is replaced
    assert tails.entered(start + 5) is replaced
    assert tails.entered(start + 1) is None
