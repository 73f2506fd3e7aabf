"""Assembly with holes -> parts of a trampoline.

A template is AT&T assembly, an instruction a line. A hole is a number that differs from site to site: `@name(%rip)` is
an address, `$@name` a constant of 31 bits.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

import numpy as np

from kinst.rewriter.assemble import assemble
from kinst.rewriter.standalone.code.parts import (
    Addresses,
    Fill,
    Filled,
    Form,
    Hole,
    Numbers,
    Parts,
    as_bytes,
    distances,
    joined,
)
from kinst.targets.arch.amd64 import AMD64, GENERAL
from kinst.targets.instruction import Reason

_HOLE: Final = re.compile(r"@(\w+)(\(%rip\))?")
_MARK: Final = 0x5A_5B_5C_5D  # stands in a hole while it is assembled: found again by its bytes
FIELD: Final = 4  # bytes of a displacement
_NARROW: Final = (*(f"e{name[1:]}" for name in GENERAL[:8]), *(f"{name}d" for name in GENERAL[8:]))


def _distance(size: int) -> Fill:
    """How far it is to an address from the end of the instruction, which is `operand` bytes behind the hole."""

    def fill(at: Addresses, value: Addresses, operand: Numbers) -> Filled:
        away, bits = distances(at, value) - size - operand, 8 * size
        return as_bytes(away, size), away >> bits - 1 == away >> 63

    return fill


def _number(_at: Addresses, value: Addresses, _operand: Numbers) -> Filled:
    return as_bytes(value.view(np.int64), FIELD), value >> np.uint64(31) == 0


_NEAR: Final = Form(1, _distance(1))
_ADDRESS: Final = Form(FIELD, _distance(FIELD))
_BRANCH: Final = Form(FIELD, _distance(FIELD), follows=True)
_NUMBER: Final = Form(FIELD, _number)


def narrow(register: int) -> str:
    """The name of a register's lower half."""
    return _NARROW[register]


def address(value: str, behind: int = 0) -> Hole:
    """A displacement from RIP, with so many bytes of its instruction behind it."""
    return Hole(_ADDRESS, value, behind, Reason.OUT_OF_REACH.text)


def jump_to(value: str, opcode: bytes = b"\xe9") -> Parts:
    """jmp rel32, or whichever branch has this opcode."""
    return opcode, Hole(_BRANCH, value, 0, Reason.OUT_OF_REACH.text)


def short_jump_to(value: str) -> Parts:
    """jmp rel8."""
    return b"\xeb", Hole(_NEAR, value, 0, Reason.OUT_OF_REACH.text)


def template(lines: Iterable[str]) -> Parts:
    """The parts of some lines of assembly. Each line that is new takes keystone 50 us."""
    return joined(*map(_assembled, lines))


@cache
def _assembled(line: str) -> Parts:
    hole = _HOLE.search(line)
    if hole is None:
        return (assemble(AMD64, line),)
    name, is_address = hole[1], bool(hole[2])
    code = assemble(AMD64, f"{line[: hole.start()]}{_MARK:#x}{hole[2] or ''}{line[hole.end() :]}")
    before, behind = code.split(_MARK.to_bytes(FIELD, "little"))
    field = address(name, len(behind)) if is_address else Hole(_NUMBER, name, 0, Reason.OUT_OF_REACH.text)
    return joined((before, field, behind))
