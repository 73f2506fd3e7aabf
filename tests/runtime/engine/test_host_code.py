"""The host's machine code is what its sources say: keystone assembles them again, and GNU as agrees with it."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from kinst.runtime.engine.host.fields import Half, Word, layout
from kinst.runtime.engine.host.routine import Routine
from tests.host_code import FOLDER, HOSTS, NameFault, assembled, instructions, sources

# What a function must leave as it was; x18 is the platform's, and x29 with x30 are kept where functions are called.
KEPT: Final = {
    "x86_64": re.compile(r"\b(?:[re]?b[xp]|bp?l|r1[2-5][dwb]?)\b"),
    "aarch64": re.compile(r"\b[xw](?:1[89]|2\d)\b(?!, x30)"),
}
PREFIXES: Final = {"x86_64": "x86_64-linux-gnu-", "aarch64": "aarch64-linux-gnu-"}
SOURCES: Final = pytest.mark.parametrize(
    ("routine", "host"), sources(), ids=lambda one: one.name if isinstance(one, Routine) else one
)


@layout
class Shelf(ctypes.Structure):
    __slots__ = ()
    low: Word
    high: Word
    left: Half
    right: Half


SHELVES: Final = Routine("shelves", {"shelf": Shelf}, {"HASH": 0x0123_4567_89AB_CDEF})


def test_every_source_was_assembled_and_nothing_else() -> None:
    names = {f"{routine.name}.{host}" for routine, host in sources()}
    assert {path.stem for path in FOLDER.glob("*.s")} == names
    assert {path.name for path in (FOLDER / "assembled").iterdir()} == {f"{name}.bin" for name in names}


@SOURCES
def test_what_is_run_is_what_the_source_says(routine: Routine, host: str) -> None:
    assert routine.code(host) == assembled(routine, host), "run `poe host-code`"


@pytest.mark.parametrize("host", HOSTS)
def test_another_assembler_says_the_same(host: str, tmp_path: Path) -> None:
    """keystone 0.9.2 has bugs; GNU as has others."""
    if shutil.which(f"{PREFIXES[host]}as") is None:
        pytest.skip(f"{PREFIXES[host]}as is not installed")
    syntax = ".intel_syntax noprefix\n" if host == "x86_64" else ""
    for routine in [routine for routine, its_host in sources() if its_host == host]:
        text = "\n".join(instructions(routine, (FOLDER / f"{routine.name}.{host}.s").read_text()))
        source, linked, code = (tmp_path / f"{routine.name}.{suffix}" for suffix in ("s", "o", "bin"))
        source.write_text(f"{syntax}{text}\n")
        subprocess.run([f"{PREFIXES[host]}as", "-o", linked, source], check=True)
        subprocess.run([f"{PREFIXES[host]}objcopy", "-O", "binary", "-j", ".text", linked, code], check=True)
        assert code.read_bytes() == routine.code(host), routine.name


@SOURCES
def test_registers_of_the_caller_are_not_touched(routine: Routine, host: str) -> None:
    lines = instructions(routine, (FOLDER / f"{routine.name}.{host}.s").read_text())
    assert [line for line in lines if KEPT[host].search(line)] == []


def test_names_are_offsets_sizes_and_numbers() -> None:
    text = """
    // shelf.low in a comment
    ldp x0, x1, [x2, #shelf.(low, high)]    // both
    b.eq there
there:
    add x0, x0, #sizeof(shelf)
    ldr w0, [x2, #shelf.right]
    movk x0, #HASH.1, lsl #16
    mov rax, HASH
    """
    assert instructions(SHELVES, text) == [
        "ldp x0, x1, [x2, #0x0]",
        "b.eq there",
        "there:",
        "add x0, x0, #0x18",
        "ldr w0, [x2, #0x14]",
        "movk x0, #0x89ab, lsl #16",
        "mov rax, 0x123456789abcdef",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("ldr x0, [x1, #shelf.middle]", "shelves: shelf has no field middle"),
        ("ldr x0, [x1, #chest.low]", "shelves: there is no layout chest"),
        ("add x0, x0, #sizeof(chest)", "shelves: there is no layout chest"),
        ("mov rax, HASHED", "shelves: there is no constant HASHED"),
        ("ldp x0, x1, [x2, #shelf.(low, left)]", "shelves: shelf.left is not right behind shelf.low"),
        ("ldp x0, x1, [x2, #shelf.(high, left)]", "shelves: shelf.left has not the size of shelf.high"),
    ],
)
def test_what_a_source_cannot_name_is_refused(text: str, fault: str) -> None:
    with pytest.raises(NameFault) as raised:
        instructions(SHELVES, text)
    assert str(raised.value).startswith(fault)


def test_a_misspelt_field_is_an_error() -> None:
    with pytest.raises(AttributeError):
        Shelf().middle = 1
