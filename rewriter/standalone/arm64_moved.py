"""arm64: instructions at other addresses than their own, with the effects that they had there.

What it does is that of `kinst.runtime.trap.arch.arm64`; diagrams are those of `kinst.rewriter.arch.arm64`.
"""

from collections.abc import Callable, Mapping
from typing import Final

from kinst.rewriter.arch.arm64 import IMM14, IMM19
from kinst.rewriter.arch.patterns import Immediate, distance
from kinst.rewriter.standalone import arm64_tasks as tasks
from kinst.rewriter.standalone.arm64_words import address_of, jump, page_of, word
from kinst.rewriter.standalone.trampoline import Covered, ImmovableError
from kinst.targets.arch.arm64 import Kind

_LINK: Final = 30
_ZERO: Final = 31
_BR: Final = 0xD61F_0000
_ALWAYS: Final = 14  # this condition and the next
_OPPOSITE: Final = 1 << 24  # of cbz and tbz; of a condition it is bit 0
# A literal's load: the mnemonic and the register's first letter.
_LITERALS: Final = {
    Kind.LDR_LITERAL_W: "ldr w",
    Kind.LDR_LITERAL_X: "ldr x",
    Kind.LDRSW_LITERAL: "ldrsw x",
    Kind.LDR_LITERAL_S: "ldr s",
    Kind.LDR_LITERAL_D: "ldr d",
    Kind.LDR_LITERAL_Q: "ldr q",
}


def moved(one: Covered, before: Covered | None, at: int) -> bytes:
    """The code at an address. What is before it does not matter.

    Raises:
        ImmovableError: there is none.
    """
    move = _MOVES.get(Kind(one.kind))
    return one.code if move is None else move(one, at)


def _word(one: Covered) -> int:
    return int.from_bytes(one.code, "little")


def _b(one: Covered, at: int) -> bytes:
    """Where it goes may be no landing pad, to which hardware may not let go by a register."""
    code = jump(at, one.target)
    if code is None:
        raise ImmovableError("it goes farther than a jump reaches")
    return code


def _linked(one: Covered, at: int) -> bytes:
    return address_of(_LINK, at, one.address + len(one.code))


def _bl(one: Covered, at: int) -> bytes:
    code = _linked(one, at)
    return code + _b(one, at + len(code))


def _blr(one: Covered, at: int) -> bytes:
    register = _word(one) >> 5 & 31
    if register == _LINK:
        raise ImmovableError("it goes by the register in which it leaves where it was")
    return _linked(one, at) + word(_BR | register << 5)


def _branch(layout: Immediate, opposite: int) -> "_Move":
    """A branch if it reaches; else the opposite one over a jump."""

    def move(one: Covered, at: int) -> bytes:
        bare, near = _word(one) & ~layout.mask, layout.placed(distance(at, one.target))
        if near is not None:
            return word(bare | near)
        if one.kind == Kind.B_COND and bare & 15 >= _ALWAYS:
            return _b(one, at)
        over = layout.placed(8)
        assert over is not None
        return word((bare ^ opposite) | over) + _b(one, at + 4)

    return move


def _adr(one: Covered, at: int) -> bytes:
    """Nothing if it is forgotten: as the result of add, number 31 would be sp."""
    register = _word(one) & 31
    return b"" if register == _ZERO else address_of(register, at, one.target)


def _adrp(one: Covered, at: int) -> bytes:
    return page_of(_word(one) & 31, at, one.target)


def _load(one: Covered, at: int) -> bytes:
    """By its own register, or one that is free, if it does not reach."""
    near, register = IMM19.placed(distance(at, one.target)), _word(one) & 31
    if near is not None:
        return word(_word(one) & ~IMM19.mask | near)
    load = _LITERALS[Kind(one.kind)]
    is_general = load[-1] in "wx"
    if is_general and register != _ZERO:
        return tasks.load(one, f"{load}{register}", register, at)
    return tasks.load(one, f"{load}zr" if is_general else f"{load}{register}", None, at)


def _prefetch(one: Covered, at: int) -> bytes:
    """A hint, without which all is the same."""
    return b""


_Move = Callable[[Covered, int], bytes]
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
