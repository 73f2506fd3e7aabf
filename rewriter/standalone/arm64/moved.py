"""arm64: instructions at other addresses than their own, with the effects that they have there.

The effects are those of `kinst.runtime.trap.arch.arm64`; encodings are drawn in `kinst.rewriter.arch.arm64`.
"""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from kinst.rewriter.arch.arm64 import IMM14, IMM19, IMM21, IMM26
from kinst.rewriter.arch.patterns import Immediate
from kinst.rewriter.standalone.arm64 import tasks as tasks
from kinst.rewriter.standalone.arm64.fixups import address_fixup, jump_fixup, page_fixup
from kinst.rewriter.standalone.arm64.words import word
from kinst.rewriter.standalone.code.parts import NEXT, TARGET, Fixup, Parts
from kinst.rewriter.standalone.code.trampoline import ImmovableError, Rows, Shape, Shapes
from kinst.rewriter.standalone.code.word_encodings import near
from kinst.targets.arch.arm64 import Kind
from kinst.targets.columns import is_one_of

_LINK: Final = 30
_ZERO: Final = 31
_BR: Final = 0xD61F_0000
_ALWAYS: Final = 14  # conditions 14 and 15 are both "always" (C1.2.4)
_OPPOSITE: Final = 1 << 24  # of cbz and tbz, bit 24; of a condition it is bit 0
# Mnemonic of a literal's load, with the first letter of its register.
_LITERALS: Final = {
    Kind.LDR_LITERAL_W: "ldr w",
    Kind.LDR_LITERAL_X: "ldr x",
    Kind.LDRSW_LITERAL: "ldrsw x",
    Kind.LDR_LITERAL_S: "ldr s",
    Kind.LDR_LITERAL_D: "ldr d",
    Kind.LDR_LITERAL_Q: "ldr q",
}
_LAYOUTS: Final = {
    **dict.fromkeys((Kind.B, Kind.BL), IMM26),
    **dict.fromkeys((Kind.B_COND, Kind.CBZ, Kind.CBNZ, Kind.PRFM_LITERAL, *_LITERALS), IMM19),
    **dict.fromkeys((Kind.TBZ, Kind.TBNZ), IMM14),
    **dict.fromkeys((Kind.ADR, Kind.ADRP), IMM21),
}


def shapes(rows: Rows) -> Shapes:
    """What the displaced code depends on: everything but displacements. Only loads depend on dead registers and a
    stack."""
    code = rows.code.copy()
    words, masks = code.view("<u4")[:, 0], np.zeros(256, np.uint32)
    masks[[*_LAYOUTS]] = [layout.mask for layout in _LAYOUTS.values()]
    words &= ~masks[rows.kind]
    loads, nothing = is_one_of(rows.kind, [*_LITERALS]), np.zeros(len(rows), np.uint8)
    is_own = ~is_one_of(rows.kind, [*_MOVES])
    return Shapes(is_own, code, rows.dead * loads, rows.has_stack & loads, nothing, nothing.astype(np.uint64))


def moved(shape: Shape) -> Parts:
    """The code for any address.

    Raises:
        ImmovableError: there is none.
    """
    return _MOVES[Kind(shape.kind)](shape)


def _word(one: Shape) -> int:
    return int.from_bytes(one.code, "little")


def _b(_one: Shape) -> Parts:
    """Only ``b``: the target may lack a landing pad, which br needs where FEAT_BTI is enabled (D8.4)."""
    return (jump_fixup(TARGET, "its target is out of a jump's reach"),)


def _bl(one: Shape) -> Parts:
    return address_fixup(_LINK, NEXT), *_b(one)


def _blr(one: Shape) -> Parts:
    register = _word(one) >> 5 & 31
    if register == _LINK:
        raise ImmovableError("it jumps through its own link register")
    return address_fixup(_LINK, NEXT), word(_BR | register << 5)


def _branch(layout: Immediate, opposite: int) -> "_Move":
    """The branch if it reaches; else the opposite one over a ``b``."""

    def move(one: Shape) -> Parts:
        bare = _word(one)
        if one.kind == Kind.B_COND and bare & 15 >= _ALWAYS:
            return (Fixup(near(layout), TARGET, bare, _b(one)),)
        over = word((bare ^ opposite) | layout.bits_of(8))
        return (Fixup(near(layout), TARGET, bare, (over, *_b(one))),)

    return move


def _adr(one: Shape) -> Parts:
    """Nothing for xzr, since the result is discarded; in add, register 31 would be sp."""
    register = _word(one) & 31
    return () if register == _ZERO else (address_fixup(register, TARGET),)


def _adrp(one: Shape) -> Parts:
    return (page_fixup(_word(one) & 31, TARGET),)


def _load(one: Shape) -> Parts:
    """If it does not reach: through its own register, or through a free one if that is zero or a vector's."""
    register, load = _word(one) & 31, _LITERALS[Kind(one.kind)]
    is_general = load[-1] in "wx"
    fallback: Parts | str
    try:
        if is_general and register != _ZERO:
            fallback = tasks.load(one, f"{load}{register}", register)
        else:
            fallback = tasks.load(one, f"{load}zr" if is_general else f"{load}{register}", None)
    except ImmovableError as error:
        fallback = str(error)
    return (Fixup(near(IMM19), TARGET, _word(one), fallback),)


def _prefetch(_one: Shape) -> Parts:
    """A hint: leaving it out changes nothing."""
    return ()


_Move = Callable[[Shape], Parts]
_MOVES: Final[Mapping[Kind, _Move]] = {
    Kind.B: _b,
    Kind.BL: _bl,
    Kind.BLR: _blr,
    Kind.B_COND: _branch(IMM19, 1),
    **dict.fromkeys((Kind.CBZ, Kind.CBNZ), _branch(IMM19, _OPPOSITE)),
    **dict.fromkeys((Kind.TBZ, Kind.TBNZ), _branch(IMM14, _OPPOSITE)),
    Kind.ADR: _adr,
    Kind.ADRP: _adrp,
    **dict.fromkeys(_LITERALS, _load),
    Kind.PRFM_LITERAL: _prefetch,
}
