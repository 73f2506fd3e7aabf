"""riscv64: the forms by which trampolines save registers; and what the psABI says (DWARF, 7)."""

import re
from collections.abc import Iterator
from typing import Final

from kinst.rewriter.frames.motions import Form, FrameFacts, Track
from kinst.targets.arch.riscv64 import GENERAL

_R: Final = r"(\w+)"
_AT: Final = r"(-?(?:0x)?[0-9a-f]+)\(sp\)"
_NAMES: Final = {name: number for number, name in enumerate(GENERAL)} | {"fp": GENERAL.index("s0")}


def _lower(track: Track, match: re.Match[str]) -> None:
    track.lower(-int(match[1], 0))


def _copy(track: Track, match: re.Match[str]) -> None:
    track.registers[_NAMES[match[1]]] = track.value(_NAMES[match[2]])


def _store(track: Track, match: re.Match[str]) -> None:
    track.store(_NAMES[match[1]], int(match[2], 0))


def _load(track: Track, match: re.Match[str]) -> None:
    track.load(_NAMES[match[1]], int(match[2], 0))


def _partly(_text: str) -> Iterator[int]:
    """No instruction writes a part of a register."""
    return iter(())


_FORMS: Final[tuple[Form, ...]] = (
    (re.compile(r"(?:c\.)?addi(?:16sp)? sp, (?:sp, )?(-?(?:0x)?[0-9a-f]+)"), _lower),
    (re.compile(rf"(?:c\.)?mv {_R}, {_R}"), _copy),
    (re.compile(rf"(?:c\.)?sd(?:sp)? {_R}, {_AT}"), _store),
    (re.compile(rf"(?:c\.)?ld(?:sp)? {_R}, {_AT}"), _load),
)

FACTS: Final = FrameFacts(
    pc=None,
    code_factor=2,
    return_register=1,
    at_entry=(0, ()),
    forms=_FORMS,
    partly=_partly,
)
