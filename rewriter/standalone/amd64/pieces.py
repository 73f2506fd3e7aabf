"""Assembly with fixups -> parts of a trampoline.

A template is AT&T assembly, one instruction a line. A fixup is a number that differs from site to site: `@name(%rip)`
is an address, `$@name` a constant of 31 bits.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

import numpy as np

from kinst.rewriter.assemble import assemble
from kinst.rewriter.standalone.code.parts import (
    Addresses,
    Encoding,
    Fill,
    Filled,
    Fixup,
    Numbers,
    Parts,
    as_bytes,
    distances,
    joined,
)
from kinst.targets.arch.amd64 import AMD64, GENERAL
from kinst.targets.instruction import Reason

_FIXUP: Final = re.compile(r"@(\w+)(\(%rip\))?")
_MARK: Final = 0x5A_5B_5C_5D  # stands for a fixup while its line is assembled: found again by its bytes
FIELD: Final = 4  # bytes of a displacement
_NARROW: Final = (*(f"e{name[1:]}" for name in GENERAL[:8]), *(f"{name}d" for name in GENERAL[8:]))


def _distance(size: int) -> Fill:
    """The distance to an address from the end of the instruction, which is `operand` bytes after the fixup."""

    def fill(at: Addresses, value: Addresses, operand: Numbers) -> Filled:
        away, bits = distances(at, value) - size - operand, 8 * size
        return as_bytes(away, size), away >> bits - 1 == away >> 63

    return fill


def _number(_at: Addresses, value: Addresses, _operand: Numbers) -> Filled:
    return as_bytes(value.view(np.int64), FIELD), value >> np.uint64(31) == 0


_NEAR: Final = Encoding(1, _distance(1))
_ADDRESS: Final = Encoding(FIELD, _distance(FIELD))
_BRANCH: Final = Encoding(FIELD, _distance(FIELD), follows=True)
_NUMBER: Final = Encoding(FIELD, _number)


def narrow(register: int) -> str:
    """The name of a register's lower half."""
    return _NARROW[register]


def address(value: str, tail: int = 0) -> Fixup:
    """A RIP-relative displacement, followed by `tail` bytes of its instruction."""
    return Fixup(_ADDRESS, value, tail, Reason.OUT_OF_REACH.text)


def jump_to(value: str, opcode: bytes = b"\xe9") -> Parts:
    """jmp rel32, or another branch with this opcode."""
    return opcode, Fixup(_BRANCH, value, 0, Reason.OUT_OF_REACH.text)


def short_jump_to(value: str) -> Parts:
    """jmp rel8."""
    return b"\xeb", Fixup(_NEAR, value, 0, Reason.OUT_OF_REACH.text)


def template(lines: Iterable[str]) -> Parts:
    """The parts of some lines of assembly. keystone takes 50 us for each line that is new."""
    return joined(*map(_assembled, lines))


@cache
def _assembled(line: str) -> Parts:
    fixup = _FIXUP.search(line)
    if fixup is None:
        return (assemble(AMD64, line),)
    name, is_address = fixup[1], bool(fixup[2])
    code = assemble(AMD64, f"{line[: fixup.start()]}{_MARK:#x}{fixup[2] or ''}{line[fixup.end() :]}")
    before, after = code.split(_MARK.to_bytes(FIELD, "little"))
    field = address(name, len(after)) if is_address else Fixup(_NUMBER, name, 0, Reason.OUT_OF_REACH.text)
    return joined((before, field, after))
