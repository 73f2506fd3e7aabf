"""arm64: the effects of instructions on the stack. Sections are of the Arm ARM (DDI 0487), C4.1.

add, sub (immediate):   sf op S 100010 sh imm12 Rn Rd
load/store pair:        opc 101 V 0 type L imm7 Rt2 Rn Rt      type: 1 post-index, 2 offset, 3 pre-index
load/store register:    size 111 V 00 opc 0 imm9 type Rn Rt    type: 1 post-index, 3 pre-index
                        size 111 V 01 opc imm12 Rn Rt
"""

from dataclasses import replace
from typing import Final

from kinst.runtime.unwinding.unwind import FrameState

_FP, _LR = 29, 30
_WORD: Final = 8
_POST, _OFFSET, _PRE = 1, 2, 3


class Arm64Stack:
    """The stack of arm64; implements `kinst.runtime.unwinding.unwind.StackEffects`."""

    stack_restore = b""  # not needed: code that switches stacks has a frame record, which leads back

    def step(self, instruction: bytes, frame: FrameState) -> FrameState:
        """The frame after an instruction that is not a call."""
        word = int.from_bytes(instruction, "little")
        if word & 0xBF000000 == 0x91000000 & 0xBF000000 and word >> 31:
            return _add(word, frame)
        if word & 0x3A000000 == 0x28000000:
            return _pair(word, frame)
        if word & 0x3A000000 == 0x38000000:
            return _single(word, frame)
        if word & 0xBFE0FFFF == 0x8B2063FF:  # add, sub sp, sp, xm
            return _add_register(word, frame)
        return _other(word, frame)

    def call_sizes(self, before: bytes) -> tuple[int, ...]:
        """bl; blr; blraa, blrab and those with a zero modifier."""
        word = int.from_bytes(before[-4:], "little")
        is_register = word & 0xFFFFFC1F == 0xD63F0000 or word & 0xFEFFF800 == 0xD63F0800
        return (4,) if len(before) >= 4 and (word >> 26 == 0x25 or is_register) else ()


def _add(word: int, frame: FrameState) -> FrameState:
    """add and sub of an immediate; mov to and from sp is an add of 0."""
    amount = (word >> 10 & 0xFFF) << (12 if word >> 22 & 1 else 0)
    amount = -amount if word >> 30 & 1 else amount
    match word & 31, word >> 5 & 31:
        case (31, 31):
            return frame.moved(amount)
        case (29, 31):
            return frame.with_fp(amount)
        case (31, 29):
            return frame.sp_from_fp(amount)
        case (31, _):
            return frame.moved(None)
        case (29, _):
            return replace(frame, fp=None)
        case _:
            return frame


def _pair(word: int, frame: FrameState) -> FrameState:
    """ldp and stp by sp. imm7 is scaled by the size of one register."""
    if word >> 5 & 31 != 31:
        return frame
    is_vector, kind, is_load, opcode = word >> 26 & 1, word >> 23 & 3, word >> 22 & 1, word >> 30
    scale = 4 << opcode if is_vector else _WORD if opcode == 2 else 4
    amount = _signed(word >> 15 & 0x7F, 7) * scale
    if kind == _PRE:
        frame = frame.moved(amount)
    at = amount if kind in (0, _OFFSET) else 0
    if not is_vector and scale == _WORD:
        for place, register in ((at, word & 31), (at + _WORD, word >> 10 & 31)):
            frame = _access(register, place, is_load, frame)
    return frame.moved(amount) if kind == _POST else frame


def _single(word: int, frame: FrameState) -> FrameState:
    """ldr and str by sp. imm12 is scaled and unsigned, imm9 is neither."""
    if word >> 5 & 31 != 31:
        return frame
    is_word, is_load = word & 0xFC000000 == 0xF8000000, word >> 22 & 1
    if word >> 24 & 1:  # an unsigned offset
        return _access(word & 31, (word >> 10 & 0xFFF) * _WORD, is_load, frame) if is_word else frame
    kind, amount = word >> 10 & 3, _signed(word >> 12 & 0x1FF, 9)
    if word >> 21 & 1:  # a register offset, an atomic
        return frame
    if kind == _PRE:
        frame = frame.moved(amount)
    if is_word:
        frame = _access(word & 31, amount if kind == 0 else 0, is_load, frame)
    return frame.moved(amount) if kind == _POST else frame


def _access(register: int, at: int, is_load: int, frame: FrameState) -> FrameState:
    if register == _LR:
        return frame.loaded_return(at) if is_load else frame.stored_return(at)
    if register == _FP:
        return frame.loaded_fp(at) if is_load else frame.stored_fp(at)
    return frame


def _add_register(word: int, frame: FrameState) -> FrameState:
    register = word >> 16 & 31
    if frame.constant is None or frame.constant[0] != register:
        return frame.moved(None)
    return frame.moved(-frame.constant[1] if word >> 30 & 1 else frame.constant[1])


def _other(word: int, frame: FrameState) -> FrameState:
    """movz and movk, which give the size of large frames, and all other instructions that can write sp."""
    shift = 16 * (word >> 21 & 3)
    if word & 0xFF800000 == 0xD2800000:
        return replace(frame, constant=(word & 31, (word >> 5 & 0xFFFF) << shift))
    if word & 0xFF800000 == 0xF2800000 and frame.constant is not None and frame.constant[0] == word & 31:
        value = frame.constant[1] & ~(0xFFFF << shift) | (word >> 5 & 0xFFFF) << shift
        return replace(frame, constant=(word & 31, value))
    if word & 0xFF80001F == 0x9200001F or word & 0xFFE0001F in (0x8B20001F, 0xCB20001F):  # and; add, sub to sp
        return frame.moved(None)
    return frame


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 & 1 else value


STACK = Arm64Stack()
