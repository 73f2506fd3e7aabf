"""kinst::f:entry and kinst::f:return -> sites in inlined copies, fbt's probes, and a message for every way to go
wrong. Copies are made by hand: what finds them in debug information has tests of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest

from kinst.rewriter.naming.control_flow import ControlFlows
from kinst.rewriter.naming.inline_exits import common, exits
from kinst.rewriter.naming.resolve import Outcome, resolve
from kinst.rewriter.naming.sites import Decoded, decoded
from kinst.rewriter.planning.plan import manifest_of
from kinst.rewriter.program import Program, instructions_of
from kinst.targets.debuginfo.inlined import InlinedCopy, InlineFunction, Matching, SourceLine
from kinst.targets.errors import ProbeError
from kinst.targets.instruction import Reason
from kinst.targets.manifest.inlined_names import InlinedName
from kinst.targets.probe import parse_probe_name
from tests.rewriter.programs import STEP, TEXT, program, small

# The offset of each instruction stands before it.
CALLERS = {
    # 0 nop, 1 test, 4 je 10, 6 nop, 7 jmp 12, 9 nop, 10 nop, 11 nop, 12 nop, 13 ret
    "branches": "nop; test %rax, %rax; je . + 6; nop; jmp . + 5; nop; nop; nop; nop; ret",
    # 0 mov (hoisted), 3 push, 4 mov, 7 pop, 8 jne 3, 10 ret
    "loop": "mov %rdi, %rax; push %rbp; mov %rsp, %rbp; pop %rbp; jne . - 5; ret",
    # 0 nop, 1 call, 6 nop, 7 ret
    "calls": "nop; call {branches}; nop; ret",
    # 0 nop, 1 jmp branches, 6 nop
    "tail": "nop; jmp {branches}; nop",
    # 0 jmp *%rax, 2 ud2
    "switch": "jmp *%rax; ud2",
    "dtrace_probe": "nop; ret",
    "dtrace_foo": "nop; nop; ret",
    "own": "nop; ret",
    "critical": "nop; ret",
    "own.constprop.0": "nop; ret",
}
ROWS = list(CALLERS)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A small image of the functions above."""
    return program(tmp_path_factory.mktemp("kernel"), small(functions=CALLERS))


def at(function: str, offset: int) -> int:
    return TEXT + STEP * ROWS.index(function) + offset


def copy(function: str, *ranges: tuple[int, int], entry: int | None = None) -> InlinedCopy:
    """A copy in a function, by offsets."""
    absolute = tuple((at(function, low), at(function, high)) for low, high in ranges)
    start = absolute[0][0] if entry is None else at(function, entry)
    return InlinedCopy(absolute, start, function, at(function, 0), SourceLine("x.c", 7))


def inline(name: str, *copies: InlinedCopy, is_out_of_line: bool = False) -> InlineFunction:
    return InlineFunction(name, SourceLine("x.h", 3), copies, is_out_of_line)


@dataclass(frozen=True)
class Known:
    """Debug information that a test wrote."""

    functions: Sequence[InlineFunction]
    damage: tuple[str, ...] = ()
    remembered: tuple[InlinedName, ...] = ()

    def find_matching(self, pattern: str) -> Matching:
        return Matching(tuple(one for name in self.names(pattern) for one in self.find(name)), self.damage)

    def find(self, name: str) -> list[InlineFunction]:
        return [one for one in self.functions if one.name == name]

    def names(self, pattern: str) -> list[str]:
        return sorted({one.name for one in self.functions if fnmatchcase(one.name, pattern)})


def outcome(kernel: Program, spec: str, *functions: InlineFunction) -> Outcome:
    return resolve(kernel, [parse_probe_name(spec)], inlines=Known(functions)).outcomes[0]


def probes(kernel: Program, spec: str, *functions: InlineFunction) -> list[str]:
    """What a name comes to, without the module."""
    resolution = resolve(kernel, [parse_probe_name(spec)], inlines=Known(functions))
    error = resolution.outcomes[0].error
    if error is not None:
        raise error
    manifest, _ = manifest_of(resolution)
    names = (manifest.probe_fields(row) for row in range(len(manifest.probes)))
    return [":".join((provider, function, name)) for provider, _, function, name in names]


def code_of(kernel: Program) -> Decoded:
    return decoded(kernel.functions, instructions_of(kernel, np.arange(len(kernel.functions))))


def ways_out(kernel: Program, found: InlinedCopy) -> dict[int, tuple[tuple[int, int], ...]]:
    """Offsets of the ways out, each with offsets that are not."""
    code = code_of(kernel)
    start = found.caller_address
    return {
        int(code.instructions.address[one.row]) - start: tuple((low - start, high - start) for low, high in one.staying)
        for one in exits(ControlFlows(code), [ROWS.index(found.caller)], found)
    }


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(copy("branches", (0, 1)), {0: ()}, id="one instruction: falls out"),
        pytest.param(copy("branches", (0, 6)), {4: ()}, id="a branch at the end leaves either way"),
        pytest.param(copy("branches", (0, 9)), {4: ((6, 7),), 7: ()}, id="a branch that leaves sometimes, and a jump"),
        pytest.param(copy("branches", (0, 7), (10, 12)), {6: (), 11: ()}, id="both arms, the jump is the caller's"),
        pytest.param(copy("branches", (0, 6), (6, 9)), {4: ((6, 7),), 7: ()}, id="ranges that touch are one"),
        pytest.param(copy("branches", (6, 9), (0, 6), entry=0), {4: ((6, 7),), 7: ()}, id="in any order"),
        pytest.param(copy("branches", (0, 14)), {13: ()}, id="a return"),
        pytest.param(copy("calls", (0, 6)), {1: ()}, id="falls out behind a call"),
        pytest.param(copy("calls", (0, 7)), {6: ()}, id="a call comes back"),
        pytest.param(copy("tail", (0, 6)), {1: ()}, id="a tail call"),
        pytest.param(copy("switch", (0, 2)), {0: ((0, 2),)}, id="a computed jump leaves if it does"),
        pytest.param(copy("switch", (0, 4)), {0: ((0, 4),)}, id="ud2 goes nowhere"),
        pytest.param(copy("branches", (0, 1), (4, 9)), {4: ((6, 7),), 7: ()}, id="the caller's instruction between"),
        pytest.param(copy("loop", (0, 3), (4, 8), entry=4), {7: ()}, id="moved to before the entry"),
        pytest.param(copy("loop", (3, 8)), {7: ()}, id="entered again in a loop"),
        pytest.param(copy("loop", (3, 4), (7, 8)), {7: ()}, id="in pieces in a loop"),
        pytest.param(copy("loop", (0, 3), (4, 7), entry=7), {4: ()}, id="all of it moved to before the entry"),
        pytest.param(copy("loop", (4, 7), (8, 10), entry=3), {8: ()}, id="the entry is not in a range: from 3 anew"),
    ],
)  # fmt: skip
def test_ways_out(kernel: Program, found: InlinedCopy, expected: dict[int, tuple[tuple[int, int], ...]]) -> None:
    assert ways_out(kernel, found) == expected


def test_every_copy_in_every_caller_is_entered_and_left(kernel: Program) -> None:
    """As kinst probes at offsets into the callers."""
    found = inline("critical_enter", copy("branches", (0, 4)), copy("calls", (6, 7)), copy("branches", (10, 12)))

    entered, left = (probes(kernel, f"kinst::critical_enter:{name}", found) for name in ("entry", "return"))

    assert entered == ["kinst:branches:0", "kinst:branches:10", "kinst:calls:6"]
    assert left == ["kinst:branches:1", "kinst:branches:11", "kinst:calls:6"]


def test_copies_at_one_address_are_one_site(kernel: Program) -> None:
    """Nested inlining: outer and inner begin together; the inner leaves where the outer only branches."""
    outer, inner = copy("branches", (0, 9)), copy("branches", (0, 6))
    left = outcome(kernel, "kinst::f:return", inline("f", outer, inner, outer)).expansion
    entered = outcome(kernel, "kinst::f:entry", inline("f", outer, inner)).expansion

    assert left is not None and entered is not None
    sites = {site.address - at("branches", 0): (len(site.copies), site.staying) for site in left.sites}
    assert sites == {4: (2, ()), 7: (1, ())}
    assert len(entered.sites) == 1


def test_not_inline_is_fbt_and_both_is_both(kernel: Program) -> None:
    both = inline("own", copy("calls", (0, 1)), is_out_of_line=True)

    assert probes(kernel, "kinst::own:entry") == ["fbt:own:entry"]
    assert probes(kernel, "kinst::own:return") == ["fbt:own:return"]
    assert probes(kernel, "kinst::own:entry", both) == ["kinst:calls:0", "fbt:own:entry"]


def test_a_clone_is_the_function_under_another_name(tmp_path: Path) -> None:
    code = {name: text for name, text in CALLERS.items() if name != "own"}
    image = program(tmp_path, small(functions=code))

    assert probes(image, "kinst::own:entry", inline("own", is_out_of_line=True)) == ["fbt:own.constprop.0:entry"]


def test_globs_and_modules(kernel: Program) -> None:
    enter, leave = inline("critical_enter", copy("calls", (0, 1))), inline("critical_exit", copy("calls", (6, 7)))

    assert probes(kernel, "kinst::crit*:entry", enter, leave) == [
        "kinst:calls:0",
        "kinst:calls:6",
        "fbt:critical:entry",
    ]
    assert probes(kernel, "kinst:small:critical_enter:entry", enter) == ["kinst:calls:0"]
    with pytest.raises(ProbeError, match="no module 'zfs'"):
        probes(kernel, "kinst:zfs:critical_enter:entry", enter)


def test_a_copy_that_cannot_be_probed_does_not_fail_the_rest(kernel: Program) -> None:
    """Inside an instruction, in no function, in an excluded function; one is left."""
    nowhere = InlinedCopy(((0x10, 0x20),), 0x10, "", 0, SourceLine("", 0))
    copies = copy("branches", (2, 4)), nowhere, copy("dtrace_foo", (0, 1)), copy("calls", (0, 1))

    found = outcome(kernel, "kinst::f:entry", inline("f", *copies))

    assert found.error is None and found.expansion is not None and len(found.choice) == 1
    reasons = [Reason(reason) for reason in found.refusals.reason.tolist()]
    assert reasons == [Reason.NO_FUNCTION, Reason.NO_BOUNDARY, Reason.EXCLUDED_FUNCTION]
    assert found.note().startswith("kinst::f:entry: 4 copies in 3 functions, 3 of 4 refused: 1 ")


@pytest.mark.parametrize(
    ("spec", "functions", "message"),
    [
        ("kinst::f:entry", [inline("f")], r"f (x.h:3) is marked as inline, but has no code"),
        ("kinst::critcal:entry", [], r"no function 'critcal', inlined or not, in small; the nearest are critical"),
        (
            "kinst::block_spit:entry",
            [inline("block_split")],
            "no function 'block_spit', inlined or not, in small; the ",
        ),
        ("kinst::f:", [inline("f", copy("calls", (0, 1)))], "kinst::f:entry and kinst::f:return"),
        ("kinst::f:0", [inline("f", copy("calls", (0, 1)))], "f is inlined: its copies have no offsets"),
        ("kinst::f:entry", [inline("f", copy("branches", (2, 4)))], "no instruction begins here"),
    ],
)
def test_every_way_to_be_wrong_has_its_message(
    kernel: Program, spec: str, functions: list[InlineFunction], message: str
) -> None:
    error = outcome(kernel, spec, *functions).error
    assert error is not None and message in str(error)


def test_without_debug_information_it_is_said_where_it_was_looked_for(kernel: Program) -> None:
    error = resolve(kernel, [parse_probe_name("kinst::own:entry")]).outcomes[0].error
    assert str(error).startswith(f"kinst::own:entry: {kernel.image.path}: no debug information (.debug_info)")
    assert str(error).endswith("give one with --debug-file")


def test_what_a_glob_could_not_read_is_said(kernel: Program) -> None:
    known = Known(
        [inline("f", copy("calls", (0, 6)))], ("x: the unit at 0x7f: damaged", "x: the unit at 0x99: damaged")
    )
    found, missing = (
        resolve(kernel, [parse_probe_name(spec)], inlines=known).outcomes[0]
        for spec in ("kinst::f*:entry", "kinst::g*:entry")
    )
    said = "without 2 damaged units, the first: x: the unit at 0x7f: damaged"
    assert found.note() == f"kinst::f*:entry: 1 copy in 1 function, {said}"
    assert missing.error is not None and str(missing.error).endswith(f", {said}")


def test_ranges_in_common() -> None:
    assert common(((0, 8), (10, 12)), ((4, 11),)) == ((4, 8), (10, 11))
    assert common(((0, 8),), ()) == ()


def test_what_is_said_of_an_expansion(kernel: Program) -> None:
    found = outcome(kernel, "kinst::f:entry", inline("f", copy("calls", (0, 1)))).expansion
    assert found is not None and found.note() == "1 copy in 1 function"
