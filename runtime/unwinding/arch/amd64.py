"""amd64: the effects of instructions on the stack. Opcodes are of the Intel SDM, volume 2, appendix A.

In 64-bit mode push and pop have operands of 8 bytes, whatever REX.W says. Where a function here cannot compute what rsp
or rbp becomes, it makes it unknown: a wrong frame would be worse than none.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from kinst.runtime.unwinding.unwind import FrameState
from kinst.targets.arch.amd64 import RBP, RSP

_WORD: Final = 8
_PUSHES: Final = frozenset({0x68, 0x6A, 0x9C})  # imm32, imm8, flags
_PREFIXES: Final = frozenset({0x66, 0xF2, 0xF3, 0x2E, 0x36, 0x3E, 0x26, 0x64, 0x65})
_REX, _REX_W, _REX_R, _REX_B = 0x40, 8, 4, 1


class Amd64Stack:
    """The stack of amd64; implements `kinst.runtime.unwinding.unwind.StackEffects`."""

    # pop rsp. Linux calls handlers of interrupts on a stack of their own (arch/x86/include/asm/irq_stack.h):
    #     mov %rsp, (%tos); mov %tos, %rsp; call handler; pop %rsp
    stack_restore = b"\x5c"

    def step(self, instruction: bytes, frame: FrameState) -> FrameState:
        """The frame after an instruction that is not a call."""
        rex, body = 0, instruction
        while body and body[0] in _PREFIXES:
            body = body[1:]
        if body and body[0] & 0xF0 == _REX:
            rex, body = body[0] & 15, body[1:]
        if not body:
            return frame
        return _one_byte(body, rex, frame)

    def call_sizes(self, before: bytes) -> tuple[int, ...]:
        """e8 with 4 bytes; ff /2 with 0 to 6 more, as its ModRM says; both with or without prefixes."""
        found = [5] if len(before) >= 5 and before[-5] == 0xE8 else []
        found += [size for size in range(2, min(len(before), 7) + 1) if _is_indirect(before[-size:])]
        for size in found:
            # A byte before it may be a prefix or belong to another instruction: both sizes are possible.
            if size < len(before) and (before[-size - 1] in _PREFIXES or before[-size - 1] & 0xF0 == _REX):
                found.append(size + 1)
        return tuple(found)


def _is_indirect(call: bytes) -> bool:
    """ff /2: ModRM, a SIB byte if its rm is 4, a displacement of 1 or 4 bytes."""
    if call[0] != 0xFF or call[1] >> 3 & 7 != 2:
        return False
    mode, rm = call[1] >> 6, call[1] & 7
    if mode == 3:
        return len(call) == 2
    has_sib = rm == 4
    base = call[2] & 7 if has_sib and len(call) > 2 else rm
    displacement = {0: 4 if base == 5 else 0, 1: 1, 2: 4}[mode]
    return len(call) == 2 + has_sib + displacement


def _one_byte(body: bytes, rex: int, frame: FrameState) -> FrameState:
    opcode = body[0]
    register = opcode & 7 | (8 if rex & _REX_B else 0)
    if opcode & 0xF8 == 0x50:
        return _push(register, frame)
    if opcode & 0xF8 == 0x58:
        return _pop(register, frame)
    if opcode in _PUSHES:
        return frame.moved(-_WORD)
    if opcode == 0x9D:  # popf
        return frame.moved(_WORD)
    if opcode == 0xC9:  # leave
        return frame.sp_from_fp(0).loaded_fp(0).moved(_WORD)
    if opcode == 0x0F:
        return _two_bytes(body, frame)
    handler = _WITH_MODRM.get(opcode)
    return frame if handler is None or len(body) < 2 else handler(body, rex, frame)


def _push(register: int, frame: FrameState) -> FrameState:
    frame = frame.moved(-_WORD)
    return frame.stored_fp(0) if register == RBP else frame


def _pop(register: int, frame: FrameState) -> FrameState:
    if register == RSP:
        return replace(frame, stored_sp=None) if frame.stored_sp == RSP else frame.moved(None)
    return (frame.loaded_fp(0) if register == RBP else frame).moved(_WORD)


def _two_bytes(body: bytes, frame: FrameState) -> FrameState:
    """push and pop of fs and gs."""
    match body[1] if len(body) > 1 else 0:
        case 0xA0 | 0xA8:
            return frame.moved(-_WORD)
        case 0xA1 | 0xA9:
            return frame.moved(_WORD)
        case _:
            return frame


def _direct(body: bytes, rex: int) -> tuple[int, int] | None:
    """The registers (reg, rm) of a ModRM byte whose operand is a register (mod 11)."""
    if body[1] >> 6 != 3:
        return None
    return body[1] >> 3 & 7 | (8 if rex & _REX_R else 0), body[1] & 7 | (8 if rex & _REX_B else 0)


def _arithmetic(body: bytes, rex: int, frame: FrameState) -> FrameState:
    """81 and 83: add /0, sub /5 and others with an immediate."""
    registers = _direct(body, rex)
    if registers is None or registers[1] not in (RSP, RBP) or not rex & _REX_W:
        return frame
    amount = int.from_bytes(body[2:], "little", signed=True)  # imm32 or imm8, which is sign-extended
    if registers[1] == RBP:
        return frame if body[1] >> 3 & 7 == 7 else replace(frame, fp=None)
    match body[1] >> 3 & 7:
        case 0:
            return frame.moved(amount)
        case 5:
            return frame.moved(-amount)
        case 7:  # cmp
            return frame
        case _:
            return frame.moved(None)


def _move(body: bytes, rex: int, frame: FrameState) -> FrameState:
    """89 (to rm) and 8b (to reg)."""
    registers = _direct(body, rex)
    # mov %rsp, (%tos): see `stack_restore`.
    if body[0] == 0x89 and body[1] >> 3 & 7 == RSP and not rex & _REX_R and body[1] >> 6 == 0:
        return replace(frame, stored_sp=body[1] & 7 | (8 if rex & _REX_B else 0))
    if registers is None:
        target = body[1] >> 3 & 7 | (8 if rex & _REX_R else 0)
        return _written(target, frame) if body[0] == 0x8B else frame
    source, target = registers if body[0] == 0x89 else registers[::-1]
    match target, source:
        case (5, 4):
            return frame.with_fp(0)
        case (4, 5):
            return frame.sp_from_fp(0)
        case (4, source) if source == frame.stored_sp:
            return replace(frame, stored_sp=RSP)
        case _:
            return _written(target, frame)


def _address(body: bytes, rex: int, frame: FrameState) -> FrameState:
    """8d lea: rsp and rbp, from each other and from themselves. A base of rsp takes a SIB byte, 24 without an index."""
    target, mode = body[1] >> 3 & 7 | (8 if rex & _REX_R else 0), body[1] >> 6
    if target not in (RSP, RBP):
        return frame
    has_sib = body[1] & 7 == RSP
    is_plain = not rex & _REX_B and (not has_sib or (len(body) > 2 and body[2] == 0x24))
    if mode == 3 or not is_plain or (body[1] & 7 not in (RSP, RBP)) or (mode == 0 and not has_sib):
        return _written(target, frame)
    amount = int.from_bytes(body[2 + has_sib :], "little", signed=True)
    match target, body[1] & 7:
        case (4, 4):
            return frame.moved(amount)
        case (4, 5):
            return frame.sp_from_fp(amount)
        case (5, 4):
            return frame.with_fp(amount)
        case _:
            return replace(frame, fp=None)


def _store(body: bytes, rex: int, frame: FrameState) -> FrameState:
    """01, 09, 21, 29, 31: rm is computed from a register."""
    registers = _direct(body, rex)
    return frame if registers is None else _written(registers[1], frame)


def _load(body: bytes, rex: int, frame: FrameState) -> FrameState:
    """03, 0b, 23, 2b, 33, 63: reg is computed."""
    return _written(body[1] >> 3 & 7 | (8 if rex & _REX_R else 0), frame)


def _group5(body: bytes, _rex: int, frame: FrameState) -> FrameState:
    """ff /6: push of memory."""
    return frame.moved(-_WORD) if body[1] >> 3 & 7 == 6 else frame


def _pop_memory(_body: bytes, _rex: int, frame: FrameState) -> FrameState:
    return frame.moved(_WORD)


def _written(register: int, frame: FrameState) -> FrameState:
    """The frame after a register was computed: its value is no longer known."""
    if register == RSP:
        return frame.moved(None)
    return replace(frame, fp=None) if register == RBP else frame


_WITH_MODRM: Final[dict[int, Callable[[bytes, int, FrameState], FrameState]]] = {
    **dict.fromkeys((0x01, 0x09, 0x21, 0x29, 0x31), _store),
    **dict.fromkeys((0x03, 0x0B, 0x23, 0x2B, 0x33, 0x63), _load),
    **dict.fromkeys((0x81, 0x83), _arithmetic),
    **dict.fromkeys((0x89, 0x8B), _move),
    0x8D: _address,
    0x8F: _pop_memory,
    0xFF: _group5,
}


STACK = Amd64Stack()
