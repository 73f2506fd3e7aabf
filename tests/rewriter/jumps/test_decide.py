"""Little functions -> how each of their instructions can become a jump; relays against the best that there can be."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinst.rewriter.jumps.decide import Analysis, decide, decide_with
from kinst.rewriter.jumps.methods import Hindrance, JumpMethod
from kinst.rewriter.jumps.padding import Padding
from kinst.rewriter.jumps.relays import relays
from kinst.rewriter.program import instructions_of, open_program
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.arch.arm64 import ARM64
from kinst.targets.arch.riscv64 import RISCV64
from kinst.targets.image import open_image
from kinst.targets.instruction import Verdict
from tests.rewriter.programs import STEP, TEXT, program, small
from tests.writers.elf import Part, Symbol, elf64

A, T, N, P, R, X = (
    JumpMethod.ALONE,
    JumpMethod.TOGETHER,
    JumpMethod.INSIDE,
    JumpMethod.PADDING,
    JumpMethod.RELAY,
    JumpMethod.TRAP,
)
LED_TO, LEAVES, COMPUTED = Hindrance.LED_TO, Hindrance.LEAVES, Hindrance.COMPUTED_JUMP
NOT_MOVABLE = Hindrance.NOT_MOVABLE

BASE = np.uint64(1 << 20)
# The last bytes of a function are followed by int3 up to the next multiple of 0x40.
CASES = {
    "its own bytes": ("mov $1, %eax; ret", [A, P], []),
    "over neighbours": ("push %rbp; mov %rsp, %rbp; push %rbx; mov $1, %eax; ret", [T, N, N, A, P], []),
    "a prefix of neighbours": ("push %rbp; push %rbx; mov $1, %eax; ret", [T, N, N, P], []),
    "a branch to a neighbour": ("push %rbp; a: push %rbx; mov $1, %eax; jmp a", [X, T, N, P], [LED_TO]),
    "a call comes back": ("push %rbp; call *%rax; mov $1, %eax; ret", [X, R, A, P], [LEAVES]),
    "a call at the end": ("push %rbp; call {other}; mov $1, %eax; ret", [T, N, A, P], []),
    "a conditional branch inside": ("test %eax, %eax; je b; push %rbx; b: mov $1, %eax; ret", [T, N, N, A, P], []),
    "its landing": ("test %eax, %eax; b: push %rbx; je b; mov $1, %eax; ret", [R, T, N, N, P], []),
    "a computed jump": ("push %rbp; mov %rsp, %rbp; mov $1, %eax; jmp *%rax", [X, R, A, P], [COMPUTED]),
    "a jump by what is stored somewhere": (
        "push %rbp; mov %rsp, %rbp; mov $1, %eax; jmp *{other}(%rip)",
        [T, N, N, A],
        [],
    ),
    "a jump by a pointer from memory": (
        "push %rbp; mov %rsp, %rbp; mov 8(%rdi), %rax; pop %rbp; test %rax, %rax; je {other}; jmp *%rax",
        [T, N, N, T, N, N, P],
        [],
    ),
    "a jump by a sum": (
        "push %rbp; mov %rsp, %rbp; mov 8(%rdi), %rax; add %rdx, %rax; nop; jmp *%rax",
        [X, R, R, R, X, P],
        [COMPUTED, COMPUTED],
    ),
    "data of a computed address": ("push %rbp; c: push %rbx; mov $c, %rdi; ret", [X, T, N, P], [LED_TO]),
    "lea of it": ("push %rbp; d: push %rbx; lea d(%rip), %rdi; ret", [X, T, N, P], [LED_TO]),
    "what must stay": ("push %rbp; sti; mov $1, %eax; ret", [X, P], [NOT_MOVABLE]),
    "after a jump, and nowhere else": ("mov $1, %eax; pop %rbx; e: mov $2, %eax; jmp e", [A, N, A, P], []),
    "after a jump, and led to": (
        "mov $1, %eax; g: pop %rbx; e: mov $2, %eax; jne g; jmp e",
        [A, X, A, P, N],
        [LED_TO],
    ),
    "over padding": ("pop %rbx; pop %rbp; ret", [P, N, N], []),
}


def methods(folder: Path, code: str) -> tuple[list[int], list[int]]:
    """Of the instructions that can be probed: methods, and hindrances of those that have none."""
    opened = program(folder, small(functions={"f": code, "other": "ret"}))
    found = instructions_of(opened, np.arange(len(opened.functions)))
    sites = np.flatnonzero((found.verdict != Verdict.REFUSE) & (found.address < TEXT + STEP))
    decisions = decide(opened, found, sites)
    return decisions.method.tolist(), decisions.hindrance[decisions.method == JumpMethod.TRAP].tolist()


@pytest.mark.parametrize("name", CASES)
def test_how_an_instruction_becomes_a_jump(name: str, tmp_path: Path) -> None:
    code, expected, hindrances = CASES[name]
    assert methods(tmp_path, code) == (expected, hindrances)


def test_a_jump_by_a_table(tmp_path: Path) -> None:
    """Where it may lead is in the table: to the second of 5 instructions here."""
    code = "push %rbp; push %rbx; push %r12; mov $1, %eax; jmp *{table}(, %rax, 8)"
    opened = program(tmp_path, small(functions={"f": code, "table": ".quad {f}, {f} + 1"}))
    found = instructions_of(opened, np.arange(1))
    assert decide(opened, found, np.arange(5)).method.tolist() == [X, T, N, N, A]


SWITCH = "lea 0x39(%rip), %rdx; movslq (%rdx, %rax, 4), %rax; add %rdx, %rax; j: jmp *%rax; "


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (SWITCH + "push %rbp; push %rbx; push %r12; push %r13; ret", [A, T, N, R, X, X, T, N, N]),
        (SWITCH.replace("add %rdx, %rax", "lea (%rax, %rdx), %rax") + "ret", [A, T, N, N, X]),
        (SWITCH.replace("(%rdx, %rax, 4)", "(%rdx, %rax, 2)") + "ret", [A, R, R, R, P]),
        (SWITCH.replace("add %rdx", "add %rcx") + "ret", [A, R, R, R, P]),
        (SWITCH + "mov $1, %eax; jmp j", [A, R, R, R, A, P]),
    ],
    ids=["add", "lea", "another kind of table", "another sum", "another way to it"],
)
def test_a_jump_by_a_table_of_distances(code: str, expected: list[JumpMethod], tmp_path: Path) -> None:
    """Its second entry is 2 bytes behind the jump; the third leads nowhere."""
    table = ".long {f} - {table}, {f} + 18 - {table}, 0x7fffffff"
    opened = program(tmp_path, small(functions={"f": code, "table": table}))
    found = instructions_of(opened, np.arange(1))
    assert decide(opened, found, np.arange(len(expected))).method.tolist() == expected


def test_only_some_sites(tmp_path: Path) -> None:
    """What is not a site is moved along all the same, and shares the fate of nobody."""
    opened = program(tmp_path, small(functions={"f": CASES["over neighbours"][0], "other": "ret"}))
    found = instructions_of(opened, np.arange(len(opened.functions)))
    assert decide(opened, found, np.array([1])).method.tolist() == [T]
    assert decide(opened, found, np.array([0, 2])).method.tolist() == [T, N]


B = JumpMethod.BEFORE
# A return of one byte; what follows is led to, so that no jump fits from it on.
BEFORE_CASES = {
    "over what leads to it": ("push %rbp; mov $1, %eax; pop %rbx; ret; {x}", [3], [(B, 1, 3)]),
    "over what is not led to": ("mov $1, %eax; a: pop %rbx; ret; mov $3, %eax; jmp a; {x}", [2], [(X, 2, 2)]),
    "from what is led to": ("push %rbp; a: mov $1, %eax; ret; jmp a; {x}", [2], [(B, 1, 2)]),
    "after a branch": ("mov $1, %eax; je b; pop %rbx; pop %rbp; b: nop; ret; {x}", [5], [(X, 5, 5)]),
    "over a branch": ("push %rbp; push %rbp; je b; pop %rbp; ret; b: mov $3, %eax; ret", [4], [(B, 1, 4)]),
    "not over what must stay": ("mov $1, %eax; sti; nop; ret; {x}", [3], [(X, 3, 3)]),
    "sites that it covers": ("mov $1, %eax; pop %rbx; ret; {x}", [1, 2], [(B, 0, 2), (N, 0, 2)]),
    "in the trampoline of one before": ("mov $1, %eax; pop %rbx; pop %rbp; ret; {x}", [0, 3], [(A, 0, 0), (N, 1, 3)]),
    "two returns": (
        "mov $1, %eax; je a; pop %rbx; ret; a: mov $2, %eax; nop; ret; {x}",
        [3, 6],
        [(B, 0, 3), (B, 4, 6)],
    ),
    "with padding after it": ("mov $1, %eax; " * 11 + "jne a; nop; nop; a: leave; ret", [15], [(B, 14, 15)]),
    "a computed jump": ("push %rbp; mov $1, %eax; ret; x: jmp *%rax", [2], [(X, 2, 2)]),
}


@pytest.mark.parametrize("name", BEFORE_CASES)
def test_a_jump_that_begins_before_its_site(name: str, tmp_path: Path) -> None:
    code, sites, expected = BEFORE_CASES[name]
    code = code.replace("{x}", "x: mov $2, %eax; jmp x")
    opened = program(tmp_path, small(functions={"f": code, "other": "ret"}))
    decisions = decide(opened, instructions_of(opened, np.arange(1)), np.array(sites))
    found = zip(decisions.method.tolist(), decisions.first.tolist(), decisions.last.tolist(), strict=True)
    assert [one if one[0] != X else (X, one[1], one[1]) for one in found] == expected


BTI, PACIASP, BLR, RET, NOP = ("5f2403d5", "3f2303d5", "00003fd6", "c0035fd6", "1f2003d5")


@pytest.mark.parametrize(("pads", "method"), [(1, A), (3, X)])
def test_pads_that_hardware_checks_stay(pads: int, method: JumpMethod, tmp_path: Path) -> None:
    """A function that signs its return address may be called by a register, and calls others so. A pad in one
    function of many is assembly's: nobody checks."""
    codes = [BTI + NOP + RET + NOP] * pads + [PACIASP + BLR + NOP + RET] * (100 - pads)
    text = bytes.fromhex("".join(codes))
    symbols = [Symbol(f"f{row}", TEXT + 16 * row, 16) for row in range(100)]
    file = tmp_path / "pads.elf"
    file.write_bytes(elf64(ARM64.elf_machine, TEXT, [Part(".text", TEXT, text, 5)], symbols))
    opened = open_program(open_image(file))
    found = instructions_of(opened, np.arange(100))
    decisions = decide(opened, found, np.arange(len(found))[-4:])
    assert decisions.method.tolist() == [method, method, A, A]
    assert set(decisions.hindrance.tolist()) == {Hindrance.NONE, *([Hindrance.CHECKED] if method == X else [])}


@pytest.mark.parametrize(
    ("distance", "covers", "hindrance"),
    [
        (0x1000, 2, Hindrance.NONE),
        (0xF_F000, 2, Hindrance.NONE),
        (0x10_0000, 3, Hindrance.NONE),
        (0x7FFF_F000, 3, Hindrance.NONE),
        (0x8000_0000, 1, Hindrance.OUT_OF_REACH),
    ],
)
def test_a_jump_that_goes_far_covers_more(distance: int, covers: int, hindrance: Hindrance, tmp_path: Path) -> None:
    """Two instructions of 2 bytes, and one of 4: jal covers the first two, auipc and jalr all."""
    start, text = 0x8000_0000, bytes.fromhex("05050506930212008280")
    file = tmp_path / "far.elf"
    part = Part(".text", start, text, 5)
    file.write_bytes(elf64(RISCV64.elf_machine, start, [part], [Symbol("f", start, len(text))]))
    opened = open_program(open_image(file))
    found = instructions_of(opened, np.arange(1))
    decisions = decide(opened, found, np.arange(1), [(start + distance, start + distance + 0x1000)])
    assert (int(decisions.last[0]) + 1, int(decisions.hindrance[0])) == (covers, hindrance)


@pytest.mark.parametrize(
    ("distance", "leaps", "first"),
    [(0x1000, [], 3), (0x10_0000, [], 2), (0x10_0000, [0, 3], 0), (0x10_0000, [3], None)],
)
def test_a_jump_before_its_site_that_goes_far(
    distance: int, leaps: list[int], first: int | None, tmp_path: Path
) -> None:
    """Three instructions of 2 bytes, one of 4, a return of 2, and a function. jal has enough with the last two; auipc
    and jalr have with three, and need a register there."""
    start, text = 0x8000_0000, bytes.fromhex("0505050505059302120082808280")
    file = tmp_path / "far.elf"
    symbols = [Symbol("f", start, len(text) - 2), Symbol("g", start + len(text) - 2, 2)]
    file.write_bytes(elf64(RISCV64.elf_machine, start, [Part(".text", start, text, 5)], symbols))
    opened = open_program(open_image(file))
    found = instructions_of(opened, np.arange(2))
    may = np.isin(np.arange(len(found)), leaps) if leaps else None
    area = start + len(text) + distance
    decisions = decide_with(Analysis.of(opened, found), np.array([4]), [(area, area + 0x1000)], may)
    expected = (JumpMethod.TRAP, 4) if first is None else (B, first)
    assert (decisions.method[0], decisions.first[0]) == expected


@given(
    st.lists(st.integers(0, 600), max_size=9, unique=True),
    st.lists(st.tuples(st.integers(0, 600), st.integers(1, 14)), max_size=4),
)
def test_as_many_relays_as_can_be(sites: list[int], runs: list[tuple[int, int]]) -> None:
    """Each within reach and for one site; no other way serves more."""
    lengths = dict(runs)
    starts = sorted(lengths)
    limits = [*starts[1:], 10_000][: len(starts)]
    ends = [min(start + lengths[start], limit) for start, limit in zip(starts, limits, strict=True)]
    room = Padding(np.array(starts, np.uint64) + BASE, np.array(ends, np.uint64) + BASE)
    address = np.array(sorted(sites), np.uint64) + BASE
    found = relays(address, room, np.zeros(0, np.uint64), AMD64.jump)
    places = [
        int(at) for start, end in zip(room.start, room.end, strict=True) for at in range(int(start), int(end) - 4, 5)
    ]
    served = [(int(site), int(place)) for site, place in zip(address, found, strict=True) if place]
    assert len({place for _, place in served}) == len(served)
    assert all(place in places and -126 <= place - site <= 129 for site, place in served)
    assert len(served) == best([int(site) for site in address], places)


def best(sites: list[int], places: list[int]) -> int:
    """The size of a largest matching, by augmenting paths."""
    owner: dict[int, int] = {}

    def augment(site: int, seen: set[int]) -> bool:
        for place in places:
            if -126 <= place - site <= 129 and place not in seen:
                seen.add(place)
                if place not in owner or augment(owner[place], seen):
                    owner[place] = site
                    return True
        return False

    return sum(augment(site, set()) for site in sites)
