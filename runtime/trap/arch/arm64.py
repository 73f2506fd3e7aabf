"""arm64: kind and bytes of a displaced instruction -> its effect on a trap frame.

Each function below turns the fields of one instruction into a closure that decodes nothing. The bit diagrams and
displacement layouts are those of `kinst.rewriter.arch.arm64`.
"""

from collections.abc import Callable, MutableSequence
from functools import partial

from kinst.rewriter.arch.arm64 import IMM14, IMM19, IMM21, IMM21_PAGE, IMM26
from kinst.runtime.trap.arch.emulator import Emulation
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.targets.arch.arm64 import ARM64, PC, PSTATE, SP, Kind
from kinst.targets.arch.facts import ArchFacts

_MASK = (1 << 64) - 1
_MASK32 = (1 << 32) - 1
_LINK = 30
_ZERO = 31  # as a register operand; as a base, or as a result of add and sub, it is sp

Builder = Callable[[int], Emulation]


def _read(regs: MutableSequence[int], number: int) -> int:
    """A register operand: number 31 is xzr."""
    return 0 if number == _ZERO else regs[number]


def _write(regs: MutableSequence[int], number: int, value: int) -> None:
    """Write a register result, which is in range already. xzr ignores it."""
    if number != _ZERO:
        regs[number] = value


def _writes(*numbers: int) -> tuple[int, ...]:
    return tuple(number for number in numbers if number != _ZERO)


def _rd(word: int) -> int:
    return word & 31


def _rn(word: int) -> int:
    return word >> 5 & 31


def _advance(regs: MutableSequence[int]) -> None:
    regs[PC] = (regs[PC] + 4) & _MASK


# Branches. C6.2.25..C6.2.35 B, BL, BLR, BR, CBNZ, CBZ; C6.2.266 RET; C6.2.398 TBNZ, TBZ


def _b(word: int) -> Emulation:
    displacement = IMM26.of(word)

    def run(frame: TrapFrame) -> None:
        frame.regs[PC] = (frame.regs[PC] + displacement) & _MASK

    return Emulation(run, ())


def _bl(word: int) -> Emulation:
    displacement = IMM26.of(word)

    def run(frame: TrapFrame) -> None:
        regs, pc = frame.regs, frame.regs[PC]
        regs[_LINK] = (pc + 4) & _MASK
        regs[PC] = (pc + displacement) & _MASK

    return Emulation(run, (_LINK,))


def _b_register(word: int) -> Emulation:
    """br and ret. br also sets PSTATE.BTYPE, but only landing pads test it, and all of them accept 0."""
    number = _rn(word)

    def run(frame: TrapFrame) -> None:
        frame.regs[PC] = _read(frame.regs, number)

    return Emulation(run, ())


def _blr(word: int) -> Emulation:
    """The target is read before the link is written: ``blr x30``."""
    number = _rn(word)

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        target = _read(regs, number)
        regs[_LINK] = (regs[PC] + 4) & _MASK
        regs[PC] = target

    return Emulation(run, (_LINK,))


# C1.2.4 Condition code: bits 3..1 choose one of these over NZCV (as a number 0..15), bit 0 inverts it, except for 1111.
_CONDITIONS: tuple[Callable[[int], bool], ...] = (
    lambda nzcv: bool(nzcv & 4),  # eq: Z
    lambda nzcv: bool(nzcv & 2),  # cs: C
    lambda nzcv: bool(nzcv & 8),  # mi: N
    lambda nzcv: bool(nzcv & 1),  # vs: V
    lambda nzcv: nzcv & 6 == 2,  # hi: C and not Z
    lambda nzcv: nzcv >> 3 == nzcv & 1,  # ge: N = V
    lambda nzcv: nzcv >> 3 == nzcv & 1 and not nzcv & 4,  # gt: N = V and not Z
    lambda nzcv: True,  # al
)


def condition_table(condition: int) -> tuple[bool, ...]:
    """Whether `condition` (0 to 15) holds, for each value of NZCV."""
    inverted = bool(condition & 1) and condition != 15
    return tuple(_CONDITIONS[condition >> 1](nzcv) != inverted for nzcv in range(16))


def _b_cond(word: int) -> Emulation:
    displacement, holds = IMM19.of(word), condition_table(word & 15)

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        taken = holds[regs[PSTATE] >> 28 & 15]
        regs[PC] = (regs[PC] + (displacement if taken else 4)) & _MASK

    return Emulation(run, ())


def _test_and_branch(number: int, mask: int, displacement: int, *, when_zero: bool) -> Emulation:
    """cbz, cbnz, tbz, tbnz: all test whether the bits under `mask` are zero."""

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        taken = (_read(regs, number) & mask == 0) is when_zero
        regs[PC] = (regs[PC] + (displacement if taken else 4)) & _MASK

    return Emulation(run, ())


def _compare_zero(word: int, *, when_zero: bool) -> Emulation:
    mask = _MASK if word >> 31 else _MASK32
    return _test_and_branch(_rd(word), mask, IMM19.of(word), when_zero=when_zero)


def _test_bit(word: int, *, when_zero: bool) -> Emulation:
    """The bit number is b5:b40, 0 to 63."""
    bit = (word >> 31) << 5 | (word >> 19 & 31)
    return _test_and_branch(_rd(word), 1 << bit, IMM14.of(word), when_zero=when_zero)


# PC-relative addresses and literals. C6.2.11 ADR, ADRP; C6.2.193 LDR (literal); C7.2.191 LDR (literal, SIMD&FP)


def _adr(word: int, *, page: bool) -> Emulation:
    number = _rd(word)
    displacement, base_mask = (IMM21_PAGE.of(word), _MASK & ~0xFFF) if page else (IMM21.of(word), _MASK)

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        _write(regs, number, ((regs[PC] & base_mask) + displacement) & _MASK)
        _advance(regs)

    return Emulation(run, _writes(number))


def _load_literal(word: int, *, size: int, signed: bool = False) -> Emulation:
    number, displacement = _rd(word), IMM19.of(word)

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        value = frame.load((regs[PC] + displacement) & _MASK, size)
        if signed and value >> (size * 8 - 1):
            value |= _MASK & ~_MASK32
        _write(regs, number, value)
        _advance(regs)

    return Emulation(run, _writes(number))


def _load_vector_literal(word: int, *, size: int) -> Emulation:
    """A load of s, d or q, which clears the bits above. CPACR_EL1.FPEN is not checked: where the guest has SIMD
    disabled, hardware would trap and this loads."""
    number, displacement = _rd(word), IMM19.of(word)

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        frame.set_vector(number, frame.load((regs[PC] + displacement) & _MASK, size))
        _advance(regs)

    return Emulation(run, ())


# Simple instructions that are emulated because one trap is faster than two.


def _nop(word: int) -> Emulation:
    """nop, and prfm of a literal, a hint that may do nothing."""

    def run(frame: TrapFrame) -> None:
        _advance(frame.regs)

    return Emulation(run, ())


def _mov_register(word: int) -> Emulation:
    number, source, mask = _rd(word), word >> 16 & 31, _MASK if word >> 31 else _MASK32

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        _write(regs, number, _read(regs, source) & mask)
        _advance(regs)

    return Emulation(run, _writes(number))


def _mov_wide(word: int, *, inverted: bool) -> Emulation:
    number, mask = _rd(word), _MASK if word >> 31 else _MASK32
    value = (word >> 5 & 0xFFFF) << (word >> 21 & 3) * 16
    value = (~value if inverted else value) & mask

    def run(frame: TrapFrame) -> None:
        _write(frame.regs, number, value)
        _advance(frame.regs)

    return Emulation(run, _writes(number))


def _add_immediate(word: int, *, sign: int) -> Emulation:
    """add and sub: number 31 is sp here, as base and as result."""
    number, base, mask = _rd(word), _rn(word), _MASK if word >> 31 else _MASK32
    addend = sign * (word >> 10 & 0xFFF) << (12 if word >> 22 & 1 else 0)

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        regs[number] = (regs[base] + addend) & mask
        _advance(regs)

    return Emulation(run, (number,))


def _pair_offset(word: int) -> int:
    """imm7, signed, in units of 8 bytes."""
    return ((word >> 15 & 0x7F ^ 0x40) - 0x40) * 8


def _stp_pre(word: int) -> Emulation:
    """``stp xt, xt2, [sp, #imm]!``: one store of 16 bytes, so that a fault leaves nothing half done."""
    first, second, offset = _rd(word), word >> 10 & 31, _pair_offset(word)

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        address = (regs[SP] + offset) & _MASK
        frame.store(address, 16, _read(regs, second) << 64 | _read(regs, first))
        regs[SP] = address
        _advance(regs)

    return Emulation(run, (SP,))


def _ldp_post(word: int) -> Emulation:
    """``ldp xt, xt2, [sp], #imm``."""
    first, second, offset = _rd(word), word >> 10 & 31, _pair_offset(word)

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        value = frame.load(regs[SP], 16)
        _write(regs, first, value & _MASK)
        _write(regs, second, value >> 64)
        regs[SP] = (regs[SP] + offset) & _MASK
        _advance(regs)

    return Emulation(run, (*_writes(first, second), SP))


_BUILDERS: dict[Kind, Builder] = {
    Kind.B: _b,
    Kind.B_COND: _b_cond,
    Kind.BL: _bl,
    Kind.BR: _b_register,
    Kind.BLR: _blr,
    Kind.RET: _b_register,
    Kind.CBZ: partial(_compare_zero, when_zero=True),
    Kind.CBNZ: partial(_compare_zero, when_zero=False),
    Kind.TBZ: partial(_test_bit, when_zero=True),
    Kind.TBNZ: partial(_test_bit, when_zero=False),
    Kind.ADR: partial(_adr, page=False),
    Kind.ADRP: partial(_adr, page=True),
    Kind.LDR_LITERAL_W: partial(_load_literal, size=4),
    Kind.LDR_LITERAL_X: partial(_load_literal, size=8),
    Kind.LDRSW_LITERAL: partial(_load_literal, size=4, signed=True),
    Kind.LDR_LITERAL_S: partial(_load_vector_literal, size=4),
    Kind.LDR_LITERAL_D: partial(_load_vector_literal, size=8),
    Kind.LDR_LITERAL_Q: partial(_load_vector_literal, size=16),
    Kind.PRFM_LITERAL: _nop,
    Kind.NOP: _nop,
    Kind.MOV_REGISTER: _mov_register,
    Kind.MOVZ: partial(_mov_wide, inverted=False),
    Kind.MOVN: partial(_mov_wide, inverted=True),
    Kind.ADD_IMMEDIATE: partial(_add_immediate, sign=1),
    Kind.SUB_IMMEDIATE: partial(_add_immediate, sign=-1),
    Kind.STP_PRE_SP: _stp_pre,
    Kind.LDP_POST_SP: _ldp_post,
}


class Arm64Emulator:
    """Emulated instructions of A64."""

    @property
    def facts(self) -> ArchFacts:
        """The facts of arm64."""
        return ARM64

    def emulation(self, kind: int, instruction: bytes) -> Emulation:
        """The effect of `instruction`; see `Emulator.emulation`."""
        return _BUILDERS[Kind(kind)](int.from_bytes(instruction[:4], "little"))


EMULATOR = Arm64Emulator()
