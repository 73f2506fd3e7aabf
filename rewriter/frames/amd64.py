"""amd64: the forms by which trampolines save registers, in AT&T syntax; and what the System V ABI says (3.6.2)."""

import re
from collections.abc import Iterator
from typing import Final

from kinst.rewriter.frames.motions import Form, FrameFacts, Track
from kinst.targets.arch.amd64 import GENERAL, RAX, RSP
from kinst.targets.standalone import WORD

_R: Final = r"%(r\w+)"
_AT: Final = r"(-?(?:0x)?[0-9a-f]+)?\(%rsp\)"
_NARROW: Final = ("a", "c", "d", "b", "sp", "bp", "si", "di")
_IN_RAX: Final = ("lahf", "rdtsc", "cpuid")


def _names() -> Iterator[tuple[str, int]]:
    """All names of the general registers and of their parts."""
    for number, name in enumerate(GENERAL):
        if number >= len(_NARROW):
            yield from ((name + width, number) for width in ("", "d", "w", "b"))
            continue
        short = _NARROW[number]
        word = short + ("x" if len(short) == 1 else "")
        yield from ((one, number) for one in (name, f"e{word}", word, f"{short}l", f"{short}h"))


_NUMBERS: Final = dict(_names())


def _number(text: str | None) -> int:
    return int(text or "0", 0)


def _push(track: Track, match: re.Match[str]) -> None:
    register = _NUMBERS.get(match[1].lstrip("%"))
    track.lower(WORD)
    if register is None:
        track.words[-track.depth] = None
    else:
        track.store(register, 0)


def _pop(track: Track, match: re.Match[str]) -> None:
    track.load(_NUMBERS[match[1]], 0)
    track.lower(-WORD)


def _lower(track: Track, match: re.Match[str]) -> None:
    track.lower(-_number(match[1]))


def _copy(track: Track, match: re.Match[str]) -> None:
    track.registers[_NUMBERS[match[2]]] = track.value(_NUMBERS[match[1]])


def _exchange(track: Track, match: re.Match[str]) -> None:
    register, place = _NUMBERS[match[1] or match[4]], _number(match[2] or match[3])
    before = track.value(register)
    track.load(register, place)
    track.words[place - track.depth] = before


def _store(track: Track, match: re.Match[str]) -> None:
    track.store(_NUMBERS[match[1]], _number(match[2]))


def _load(track: Track, match: re.Match[str]) -> None:
    track.load(_NUMBERS[match[2]], _number(match[1]))


def _partly(text: str) -> Iterator[int]:
    """The last operand, of exchanges both; and rax, which some instructions do not name."""
    what, _, operands = text.partition(" ")
    if what in _IN_RAX:
        yield RAX
    names = re.findall(r"%(\w+)$" if "xchg" not in what and "xadd" not in what else r"%(\w+)(?:,|$)", operands)
    yield from (_NUMBERS[name] for name in names if name in _NUMBERS and _NUMBERS[name] != RSP)


_FORMS: Final[tuple[Form, ...]] = (
    (re.compile(r"pushq? (.+)"), _push),
    (re.compile(rf"popq? {_R}"), _pop),
    (re.compile(rf"leaq? {_AT}, %rsp"), _lower),
    (re.compile(rf"movq? {_R}, {_R}"), _copy),
    (re.compile(rf"movq? {_R}, {_AT}"), _store),
    (re.compile(rf"movq? {_AT}, {_R}"), _load),
    (re.compile(rf"xchgq? (?:{_R}, {_AT}|{_AT}, {_R})"), _exchange),
)

FACTS: Final = FrameFacts(
    pc=16,
    code_factor=1,
    return_register=16,
    at_entry=(WORD, ((16, -WORD),)),
    forms=_FORMS,
    partly=_partly,
)
