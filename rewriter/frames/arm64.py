"""arm64: the forms by which trampolines save registers; and what DWARF for the AArch64 says (4.1)."""

import re
from collections.abc import Iterator
from typing import Final

from kinst.rewriter.frames.motions import Form, FrameFacts, Track
from kinst.targets.standalone import WORD

_R: Final = r"(x\d+)"
_AT: Final = r"\[sp(?:, #(-?(?:0x)?[0-9a-f]+))?\]"
_NAMES: Final = {"fp": "x29", "lr": "x30"}


def _register(text: str) -> int:
    return int(_NAMES.get(text, text)[1:])


def _number(text: str | None) -> int:
    return int(text or "0", 0)


def _lower(track: Track, match: re.Match[str]) -> None:
    track.lower(_number(match[2]) if match[1] == "sub" else -_number(match[2]))


def _copy(track: Track, match: re.Match[str]) -> None:
    track.registers[_register(match[1])] = track.value(_register(match[2]))


def _store(track: Track, match: re.Match[str]) -> None:
    for row, name in enumerate(filter(None, (match[1], match[2]))):
        track.store(_register(name), _number(match[3]) + row * WORD)


def _load(track: Track, match: re.Match[str]) -> None:
    for row, name in enumerate(filter(None, (match[1], match[2]))):
        track.load(_register(name), _number(match[3]) + row * WORD)


def _partly(_text: str) -> Iterator[int]:
    """Writes of 32 bits clear the upper half."""
    return iter(())


_FORMS: Final[tuple[Form, ...]] = (
    (re.compile(r"(add|sub) sp, sp, #((?:0x)?[0-9a-f]+)"), _lower),
    (re.compile(rf"mov {_R}, {_R}"), _copy),
    (re.compile(rf"st[pr] {_R}(?:, {_R})?, {_AT}"), _store),
    (re.compile(rf"ld[pr] {_R}(?:, {_R})?, {_AT}"), _load),
)

FACTS: Final = FrameFacts(
    pc=None,
    code_factor=4,
    return_register=30,
    at_entry=(0, ()),
    forms=_FORMS,
    partly=_partly,
)
