"""Assembly with holes -> pieces of a trampoline: bytes, and distances that are known once it has its place.

A template is AT&T assembly, an instruction a line. A hole is a number that differs from site to site: `@name(%rip)` is
an address, `$@name` a constant of 32 bits, which the processor sign-extends where it needs 64.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Final

from kinst.rewriter.assemble import assemble
from kinst.rewriter.standalone.trampoline import ImmovableError
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.instruction import Reason

_HOLE: Final = re.compile(r"@(\w+)(\(%rip\))?")
_MARK: Final = 0x5A_5B_5C_5D  # stands in a hole while it is assembled: found again by its bytes
FIELD: Final = bytes(4)  # a distance before it is known
NONE: Final[Mapping[int, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Distance:
    """Four bytes, at the offset `at`: how far it is from the offset `end` to the link address `target`.

    Where a branch leads may be moved, too; what an operand or a return address names is where it was.
    """

    at: int
    end: int
    target: int
    is_branch: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """Some instructions of a trampoline. Offsets count from their first byte."""

    code: bytes
    distances: tuple[Distance, ...] = ()

    def placed(self, address: int, copies: Mapping[int, int] = NONE) -> bytes:
        """The code for a link address. `copies`: where branches lead that led to an address.

        Raises:
            ImmovableError: something is out of reach.
        """
        code = bytearray(self.code)
        for one in self.distances:
            target = copies.get(one.target, one.target) if one.is_branch else one.target
            code[one.at : one.at + 4] = signed_bytes(target - address - one.end, 4)
        return bytes(code)


def joined(pieces: Iterable[Piece]) -> Piece:
    """Pieces behind one another."""
    code, distances = bytearray(), list[Distance]()
    for piece in pieces:
        start = len(code)
        code += piece.code
        distances += [replace(one, at=start + one.at, end=start + one.end) for one in piece.distances]
    return Piece(bytes(code), tuple(distances))


def signed_bytes(distance: int, size: int) -> bytes:
    """A distance between two addresses, modulo 2**64, in so many bytes.

    Raises:
        ImmovableError: it does not fit.
    """
    signed = (distance + (1 << 63)) % (1 << 64) - (1 << 63)
    if signed >> 8 * size - 1 not in (0, -1):
        raise ImmovableError(Reason.OUT_OF_REACH.text)
    return signed.to_bytes(size, "little", signed=True)


@dataclass(frozen=True, slots=True)
class _Hole:
    name: str
    at: int
    end: int  # of its instruction
    is_address: bool


@dataclass(frozen=True, slots=True)
class Template:
    """Instructions with holes."""

    code: bytes
    holes: tuple[_Hole, ...]

    def piece(self, **numbers: int) -> Piece:
        """The instructions with a number for each hole: a link address or a constant."""
        code, distances = bytearray(self.code), []
        for hole in self.holes:
            if hole.is_address:
                distances.append(Distance(hole.at, hole.end, numbers[hole.name]))
            else:
                code[hole.at : hole.at + 4] = (numbers[hole.name] & 0xFFFF_FFFF).to_bytes(4, "little")
        return Piece(bytes(code), tuple(distances))


def template(lines: Iterable[str]) -> Template:
    """The template of some lines of assembly. Each line that is new takes keystone 50 us."""
    code, holes = b"", list[_Hole]()
    for line in lines:
        start = len(code)
        part, hole = _assembled(line)
        code += part
        if hole is not None:
            holes.append(_Hole(hole.name, start + hole.at, len(code), hole.is_address))
    return Template(code, tuple(holes))


@cache
def _assembled(line: str) -> tuple[bytes, _Hole | None]:
    hole = _HOLE.search(line)
    if hole is None:
        return assemble(AMD64, line), None
    address = hole[2] or ""
    code = assemble(AMD64, f"{line[: hole.start()]}{_MARK:#x}{address}{line[hole.end() :]}")
    return code, _Hole(hole[1], code.index(_MARK.to_bytes(4, "little")), len(code), bool(address))


def jump_to(target: int, opcode: bytes = b"\xe9") -> Piece:
    """jmp rel32, or whichever branch has this opcode."""
    start = len(opcode)
    return Piece(opcode + FIELD, (Distance(start, start + 4, target, is_branch=True),))
