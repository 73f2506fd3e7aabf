"""riscv64: instructions at other addresses than their own, with the effects that they have there.

The effects are those of `kinst.runtime.trap.arch.riscv64`; encodings are drawn in `kinst.rewriter.arch.riscv64`.
"""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from kinst.rewriter.arch.patterns import Immediate
from kinst.rewriter.arch.riscv64 import IMM_B, IMM_CB, IMM_CJ, IMM_J
from kinst.rewriter.standalone.code.parts import TARGET, Parts
from kinst.rewriter.standalone.code.trampoline import ImmovableError, Rows, Shape, Shapes
from kinst.rewriter.standalone.riscv64.fixups import JUMPS_BY, any_jump, branch, displaced_auipc, linked
from kinst.targets.arch.riscv64 import RA, Kind
from kinst.targets.columns import is_one_of

_RD: Final = 31 << 7
_JALR: Final = 0x67
_NO_WAY: Final = "its target is out of a jump's reach, and no register is dead there to jump through"
_OWN_LINK: Final = "it jumps through its own link register"
_BRANCHES: Final = (Kind.BEQ, Kind.BNE, Kind.BLT, Kind.BGE, Kind.BLTU, Kind.BGEU)
_SHORT_BRANCHES: Final = (Kind.C_BEQZ, Kind.C_BNEZ)
_LAYOUTS: Final = {
    Kind.JAL: IMM_J,
    Kind.C_J: IMM_CJ,
    **dict.fromkeys(_BRANCHES, IMM_B),
    **dict.fromkeys(_SHORT_BRANCHES, IMM_CB),
}


def shapes(rows: Rows) -> Shapes:
    """What the displaced code depends on: everything but displacements, and the dead registers that jumps may use.

    `detail` is 1 if the instruction before it, in the same trampoline, is an auipc of the register that it writes.
    """
    code = rows.code.copy()
    words, masks = code.view("<u4")[:, 0], np.zeros(256, np.uint32)
    masks[[*_LAYOUTS]] = [layout.mask for layout in _LAYOUTS.values()]
    register = words >> 7 & 31
    # `masks` is 0 for kinds without a displacement: the whole word counts.
    words &= ~masks[rows.kind]
    detail = np.zeros(len(rows), np.uint8)
    is_next = (rows.group[1:] == rows.group[:-1]) & (rows.kind[:-1] == Kind.AUIPC) & (register[1:] == register[:-1])
    detail[1:] = is_next & (rows.kind[1:] == Kind.JALR)
    jumps = is_one_of(rows.kind, [*_LAYOUTS, Kind.JALR])
    is_own, nothing = ~is_one_of(rows.kind, [*_MOVES]), np.zeros(len(rows), np.bool_)
    dead = np.where(jumps, rows.dead & np.uint32(JUMPS_BY), np.uint32(0))
    return Shapes(is_own, code, dead, nothing, detail, nothing.astype(np.uint64))


def moved(shape: Shape) -> Parts:
    """The code for any address.

    Raises:
        ImmovableError: there is none.
    """
    return _MOVES[Kind(shape.kind)](shape)


def _word(one: Shape) -> int:
    return int.from_bytes(one.code, "little")


def _go(one: Shape, link: int = 0) -> Parts:
    """A jump to its target. The link register is written before the jump, so it cannot carry the address, dead or
    not."""
    return any_jump(TARGET, one.dead & ~(1 << link), _NO_WAY)


def _auipc(one: Shape) -> Parts:
    return (displaced_auipc(_word(one)),)


def _jal(one: Shape) -> Parts:
    register = _word(one) >> 7 & 31
    return *linked(register), *_go(one, register)


def _c_j(one: Shape) -> Parts:
    return _go(one)


def _jalr(one: Shape) -> Parts:
    register, base = _word(one) >> 7 & 31, _word(one) >> 15 & 31
    if not register:
        return (one.code,)
    if register != base:
        return *linked(register), (_word(one) & ~_RD).to_bytes(4, "little")
    if not one.detail:
        raise ImmovableError(_OWN_LINK)
    return *linked(register), *_go(one, register)


def _c_jalr(one: Shape) -> Parts:
    base = _word(one) >> 7 & 31
    if base == RA:
        raise ImmovableError(_OWN_LINK)
    return *linked(RA), (_JALR | base << 15).to_bytes(4, "little")


def _branch(layout: Immediate, opposite: int) -> "_Move":
    """The branch if it reaches; else the opposite one over a jump."""
    return lambda one: branch(layout, _word(one), opposite, len(one.code), one.dead, _NO_WAY)


_Move = Callable[[Shape], Parts]
_MOVES: Final[Mapping[Kind, _Move]] = {
    Kind.AUIPC: _auipc,
    Kind.JAL: _jal,
    Kind.JALR: _jalr,
    Kind.C_J: _c_j,
    Kind.C_JALR: _c_jalr,
    **dict.fromkeys(_BRANCHES, _branch(IMM_B, 1 << 12)),
    **dict.fromkeys(_SHORT_BRANCHES, _branch(IMM_CB, 1 << 13)),
}
