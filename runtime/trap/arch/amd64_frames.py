"""amd64's instructions that make and undo stack frames -> their effect. They are emulated on request, or if there can
be no trampoline (`kinst.targets.arch.amd64.EMULABLE`).

As in `amd64`, memory is accessed before registers. A result of 16 bits leaves the rest of its register unchanged; one
of 32 bits clears it (SDM volume 1, 3.4.1.1).
"""

from collections.abc import Callable
from typing import Final

from kinst.runtime.trap.arch.amd64_operands import MASK64, Operands, Regs
from kinst.runtime.trap.arch.emulator import Emulation
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.targets.arch.amd64 import RBP, RFLAGS, RIP, RSP, Kind

_CF, _PF, _AF, _ZF, _SF, _OF = 1 << 0, 1 << 2, 1 << 4, 1 << 6, 1 << 7, 1 << 11
_ARITHMETIC: Final = _CF | _PF | _AF | _ZF | _SF | _OF
_PARITY: Final = tuple(0 if value.bit_count() & 1 else _PF for value in range(256))  # of the low byte: set if even
_RET_IMMEDIATE: Final = 0xC2
_TO_RM: Final = 0x89  # mov from reg to r/m; 8b is the other way


def _put(regs: Regs, register: int, width: int, value: int) -> None:
    """Write a result of 2, 4 or 8 bytes."""
    regs[register] = regs[register] & ~0xFFFF | value if width == 2 else value


def _push(of: Operands) -> Emulation:
    """push; push %rsp stores the value from before."""
    size, width, register = of.size, of.stack_width, of.low

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        top = regs[RSP] - width & MASK64
        frame.store(top, width, regs[register])
        regs[RSP] = top
        regs[RIP] = regs[RIP] + size & MASK64

    return Emulation(run, (RSP,))


def _pop(of: Operands) -> Emulation:
    """pop; after pop %rsp the register has the loaded value, so it is written last."""
    size, width, register = of.size, of.stack_width, of.low

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        value = frame.load(regs[RSP], width)
        regs[RSP] = regs[RSP] + width & MASK64
        _put(regs, register, width, value)
        regs[RIP] = regs[RIP] + size & MASK64

    return Emulation(run, (RSP,) if register == RSP else (RSP, register))


def _move(of: Operands) -> Emulation:
    size, width = of.size, of.width
    source, target = (of.reg, of.rm) if of.opcode == _TO_RM else (of.rm, of.reg)
    mask = (1 << 8 * width) - 1

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        _put(regs, target, width, regs[source] & mask)
        regs[RIP] = regs[RIP] + size & MASK64

    return Emulation(run, (target,))


def _arithmetic(
    of: Operands, result_of: Callable[[int, int], int], carries: Callable[[int, int, int], int]
) -> Emulation:
    """An ALU operation with a number. `carries` gives, for both operands and the result, the bits that were carried or
    borrowed out of each place: CF is that of the highest, AF that of bit 3, and OF says whether the two highest differ
    (SDM volume 1, 3.4.3.1)."""
    # Immediates have at most 4 bytes and are sign-extended (SDM volume 2, 2.2.1.5); opcode bit 1 makes them one byte.
    size, width, register = of.size, of.width, of.rm
    mask, top = (1 << 8 * width) - 1, 8 * width - 1
    number = of.immediate(1 if of.opcode & 2 else min(width, 4)) & mask

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        old = regs[register] & mask
        value = result_of(old, number) & mask
        carried = carries(old, number, value)
        flags = _PARITY[value & 0xFF] | carried >> top & _CF | carried << 1 & _AF
        if not value:
            flags |= _ZF
        if value >> top:
            flags |= _SF
        if (carried >> top ^ carried >> top - 1) & 1:
            flags |= _OF
        _put(regs, register, width, value)
        regs[RFLAGS] = regs[RFLAGS] & ~_ARITHMETIC | flags
        regs[RIP] = regs[RIP] + size & MASK64

    return Emulation(run, (register, RFLAGS))


def _add(of: Operands) -> Emulation:
    return _arithmetic(of, lambda old, number: old + number, lambda a, b, sum_: a & b | (a | b) & ~sum_)


def _subtract(of: Operands) -> Emulation:
    return _arithmetic(of, lambda old, number: old - number, lambda a, b, rest: ~a & b | (~a | b) & rest)


def _leave(of: Operands) -> Emulation:
    """mov %rbp, %rsp; pop %rbp."""
    size, width = of.size, of.stack_width

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        base = regs[RBP]
        value = frame.load(base, width)
        regs[RSP] = base + width & MASK64
        _put(regs, RBP, width, value)
        regs[RIP] = regs[RIP] + size & MASK64

    return Emulation(run, (RSP, RBP))


def _return(of: Operands) -> Emulation:
    """ret. The number of bytes to release is an unsigned word (SDM volume 2, RET), but QEMU's decoder sign-extends it,
    and the same instruction must not do two things in one guest. Real numbers are too small for this to matter."""
    released = 8 + (of.immediate(2) if of.opcode == _RET_IMMEDIATE else 0)

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        top = regs[RSP]
        regs[RIP] = frame.load(top, 8)
        regs[RSP] = top + released & MASK64

    return Emulation(run, (RSP,))


FRAME_BUILDERS: Final[dict[Kind, Callable[[Operands], Emulation]]] = {
    Kind.PUSH: _push,
    Kind.POP: _pop,
    Kind.MOVE: _move,
    Kind.ADD: _add,
    Kind.SUBTRACT: _subtract,
    Kind.LEAVE: _leave,
    Kind.RETURN: _return,
}
