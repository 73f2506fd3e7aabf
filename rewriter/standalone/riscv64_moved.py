"""riscv64: instructions at other addresses than their own, with the effects that they had there.

What it does is that of `kinst.runtime.trap.arch.riscv64`; diagrams are those of `kinst.rewriter.arch.riscv64`.
"""

from collections.abc import Callable, Mapping
from typing import Final

from kinst.rewriter.arch.patterns import Immediate, distance
from kinst.rewriter.arch.riscv64 import IMM_B, IMM_CB, IMM_U
from kinst.rewriter.standalone.riscv64_words import address_of, any_jump, word
from kinst.rewriter.standalone.trampoline import Covered, ImmovableError
from kinst.targets.arch.riscv64 import RA, Kind

_RD: Final = 31 << 7
_JALR: Final = 0x67


def moved(one: Covered, before: Covered | None, at: int) -> bytes:
    """The code at an address. `before` is the instruction before it, if that is in the trampoline, too.

    Raises:
        ImmovableError: there is none.
    """
    move = _MOVES.get(Kind(one.kind))
    return one.code if move is None else move(one, before, at)


def _word(one: Covered) -> int:
    return int.from_bytes(one.code, "little")


def _go(one: Covered, at: int, link: int = 0) -> bytes:
    """To its target: a register that is dead before it is needed by what is there only after it has been written."""
    code = any_jump(at, one.target, one.dead & ~(1 << link))
    if code is None:
        raise ImmovableError("it goes farther than a jump reaches, and no register is dead there to go by")
    return code


def _linked(one: Covered, register: int, at: int) -> bytes:
    """The address behind it in the register, which may be zero."""
    return address_of(register, at, one.address + len(one.code)) if register else b""


def _auipc(one: Covered, before: Covered | None, at: int) -> bytes:
    return address_of(_word(one) >> 7 & 31, at, one.address + IMM_U.of(_word(one)))


def _jal(one: Covered, before: Covered | None, at: int) -> bytes:
    register = _word(one) >> 7 & 31
    code = _linked(one, register, at)
    return code + _go(one, at + len(code), register)


def _c_j(one: Covered, before: Covered | None, at: int) -> bytes:
    return _go(one, at)


def _jalr(one: Covered, before: Covered | None, at: int) -> bytes:
    register, base = _word(one) >> 7 & 31, _word(one) >> 15 & 31
    if not register:
        return one.code
    code = _linked(one, register, at)
    if register != base:
        return code + word(_word(one) & ~_RD)
    if before is None or before.kind != Kind.AUIPC or _word(before) >> 7 & 31 != base:
        raise ImmovableError("it goes by the register in which it leaves where it was")
    return code + _go(one, at + len(code), register)


def _c_jalr(one: Covered, before: Covered | None, at: int) -> bytes:
    base = _word(one) >> 7 & 31
    if base == RA:
        raise ImmovableError("it goes by the register in which it leaves where it was")
    return _linked(one, RA, at) + word(_JALR | base << 15)


def _branch(layout: Immediate, opposite: int) -> "_Move":
    """A branch if it reaches; else the opposite one over a jump."""

    def move(one: Covered, before: Covered | None, at: int) -> bytes:
        size, bare, near = len(one.code), _word(one) & ~layout.mask, layout.placed(distance(at, one.target))
        if near is not None:
            return (bare | near).to_bytes(size, "little")
        far = _go(one, at + size)
        over = layout.placed(size + len(far))
        assert over is not None
        return ((bare ^ opposite) | over).to_bytes(size, "little") + far

    return move


_Move = Callable[[Covered, Covered | None, int], bytes]
_MOVES: Final[Mapping[Kind, _Move]] = {
    Kind.AUIPC: _auipc,
    Kind.JAL: _jal,
    Kind.JALR: _jalr,
    Kind.C_J: _c_j,
    Kind.C_JALR: _c_jalr,
    **dict.fromkeys((Kind.BEQ, Kind.BNE, Kind.BLT, Kind.BGE, Kind.BLTU, Kind.BGEU), _branch(IMM_B, 1 << 12)),
    **dict.fromkeys((Kind.C_BEQZ, Kind.C_BNEZ), _branch(IMM_CB, 1 << 13)),
}
