"""riscv64: the effects of instructions on the stack. Chapters are of The RISC-V Instruction Set Manual, volume I.

 31      20 19 15 14  12 11 7 6       0
|  imm12   | rs1 | funct3 | rd | opcode |    addi 0010011/000, ld 0000011/011
| imm | rs2| rs1 |  011   |imm | 0100011 |   sd
"""

from dataclasses import replace
from typing import Final

from kinst.runtime.unwinding.unwind import FrameState
from kinst.targets.arch.riscv64 import FP, RA, SP

_ADDI, _LUI, _OP, _LOAD, _STORE = 0x13, 0x37, 0x33, 0x03, 0x23
_T0: Final = 5  # the alternate link register, by which prologues call -msave-restore's routines


class Riscv64Stack:
    """The stack of riscv64; implements `kinst.runtime.unwinding.unwind.StackEffects`."""

    stack_restore = b""  # not needed: code that switches stacks has a frame record, which leads back

    def step(self, instruction: bytes, frame: FrameState) -> FrameState:
        """The frame after an instruction that is not a call."""
        word = int.from_bytes(instruction, "little")
        if len(instruction) == 2:
            expanded = _expand(word)
            return frame if expanded is None else _step(expanded, frame)
        return _step(word, frame)

    def call_sizes(self, before: bytes) -> tuple[int, ...]:
        """jal and jalr that write x1 or x5, which 2.5.1 takes for calls in its hints; c.jalr, which always writes
        x1."""
        word, half = int.from_bytes(before[-4:], "little"), int.from_bytes(before[-2:], "little")
        if half & 0xF07F == 0x9002 and half >> 7 & 31:  # c.jalr
            return (2,)
        is_jump = word & 0x7F == 0x6F or word & 0x707F == 0x67
        return (4,) if len(before) >= 4 and is_jump and (word >> 7 & 31) in (RA, _T0) else ()


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 & 1 else value


def _step(word: int, frame: FrameState) -> FrameState:
    rd, rs1, rs2 = word >> 7 & 31, word >> 15 & 31, word >> 20 & 31
    immediate = _signed(word >> 20, 12)
    match word & 0x7F, word >> 12 & 7:
        case (0x13, 0):
            return _add(rd, rs1, immediate, frame)
        case (0x1B, 0):  # addiw
            return _constant(rd, rs1, immediate, frame)
        case (0x37, _):  # lui
            return replace(frame, constant=(rd, _signed(word >> 12, 20) << 12)) if rd != SP else frame.moved(None)
        case (0x33, 0) if rd == rs1 == SP:  # add sp, sp, rs2; sub
            return _add_register(rs2, -1 if word >> 30 & 1 else 1, frame)
        case (0x03, 3) if rs1 == SP and rd in (RA, FP):
            return frame.loaded_return(immediate) if rd == RA else frame.loaded_fp(immediate)
        case (0x23, 3) if rs1 == SP and rs2 in (RA, FP):
            at = _signed(word >> 25 << 5 | word >> 7 & 31, 12)
            return frame.stored_return(at) if rs2 == RA else frame.stored_fp(at)
        case (0x13 | 0x33 | 0x03 | 0x17 | 0x3B, _):
            return _overwritten(rd, frame)
        case _:
            return frame


def _add(rd: int, rs1: int, immediate: int, frame: FrameState) -> FrameState:
    match rd, rs1:
        case (2, 2):
            return frame.moved(immediate)
        case (8, 2):
            return frame.with_fp(immediate)
        case (2, 8):
            return frame.sp_from_fp(immediate)
        case _:
            return _constant(rd, rs1, immediate, frame)


def _constant(rd: int, rs1: int, immediate: int, frame: FrameState) -> FrameState:
    """li: addi or addiw from x0, or with the low part after lui."""
    if rs1 == 0 and rd not in (SP, FP):
        return replace(frame, constant=(rd, immediate))
    if frame.constant is not None and rd == rs1 == frame.constant[0]:
        return replace(frame, constant=(rd, frame.constant[1] + immediate))
    return _overwritten(rd, frame)


def _add_register(register: int, sign: int, frame: FrameState) -> FrameState:
    known = frame.constant is not None and frame.constant[0] == register
    return frame.moved(sign * frame.constant[1] if known and frame.constant is not None else None)


def _overwritten(rd: int, frame: FrameState) -> FrameState:
    """The frame after a register was computed: its value is no longer known."""
    if rd == SP:
        return frame.moved(None)
    if rd == FP:
        return replace(frame, fp=None)
    if frame.constant is not None and frame.constant[0] == rd:
        return replace(frame, constant=None)
    return frame


def _expand(half: int) -> int | None:
    """The 4-byte encoding of the compressed instructions that may matter ("C" 27.8); None for all others.

    quadrant 0: 000 c.addi4spn   1: 000 c.addi, 010 c.li, 011 c.addi16sp, c.lui   2: 011 c.ldsp, 100 c.mv, c.add,
    111 c.sdsp
    """
    rd = half >> 7 & 31
    match half & 3, half >> 13:
        case (0, 0):
            amount = half >> 7 & 0x30 | half >> 1 & 0x3C0 | half >> 4 & 4 | half >> 2 & 8
            return _encode(_ADDI, 0, 8 + (half >> 2 & 7), SP, amount)
        case (1, funct3):
            return _expand_immediate(half, rd, funct3)
        case (2, 3):
            return _encode(_LOAD, 3, rd, SP, half >> 7 & 0x20 | half >> 2 & 0x18 | half << 4 & 0x1C0)
        case (2, 4):
            return _expand_move(half, rd)
        case (2, 7):
            at = half >> 7 & 0x38 | half >> 1 & 0x1C0
            return _STORE | (at & 31) << 7 | 3 << 12 | SP << 15 | (half >> 2 & 31) << 20 | at >> 5 << 25
        case _:
            return None


def _expand_immediate(half: int, rd: int, funct3: int) -> int | None:
    short = _signed(half >> 7 & 32 | half >> 2 & 31, 6)
    match funct3:
        case 0:
            return _encode(_ADDI, 0, rd, rd, short)
        case 2:
            return _encode(_ADDI, 0, rd, 0, short)
        case 3 if rd == SP:
            amount = half >> 3 & 0x200 | half >> 2 & 0x10 | half << 1 & 0x40 | half << 4 & 0x180 | half << 3 & 0x20
            return _encode(_ADDI, 0, SP, SP, _signed(amount, 10))
        case 3:
            return _LUI | rd << 7 | (short & 0xFFFFF) << 12
        case _:
            return None


def _expand_move(half: int, rd: int) -> int | None:
    source = half >> 2 & 31
    if not source:  # c.jr, c.jalr
        return None
    if half >> 12 & 1:
        return _OP | rd << 7 | rd << 15 | source << 20
    return _encode(_ADDI, 0, rd, source, 0)


def _encode(opcode: int, funct3: int, rd: int, rs1: int, immediate: int) -> int:
    return opcode | rd << 7 | funct3 << 12 | rs1 << 15 | (immediate & 0xFFF) << 20


STACK = Riscv64Stack()
