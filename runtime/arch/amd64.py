"""amd64: a displaced instruction -> its effect on the trap frame. `rewriter.arch.amd64_opcodes` says what is emulated.

Each kind has a builder that takes the instruction apart once and returns a closure, since a closure call per hit is the
cheapest that Python has. Closures touch memory before registers, so that a fault leaves the frame as it was.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kinst.runtime.arch.amd64_operands import (
    MASK32,
    MASK64,
    Operands,
    Regs,
    effective_address,
    linear_address,
    operands,
)
from kinst.runtime.arch.emulator import Emulation, Frame
from kinst.targets.arch.amd64 import AMD64, RBP, RCX, RFLAGS, RIP, RSP, Kind
from kinst.targets.arch.facts import ArchFacts

Builder = Callable[[Operands], Emulation]

# RFLAGS (SDM volume 1, 3.4.3).
CF, PF, AF, ZF, SF, OF = 1 << 0, 1 << 2, 1 << 4, 1 << 6, 1 << 7, 1 << 11
_ARITHMETIC = CF | PF | AF | ZF | SF | OF
_KEPT = MASK64 ^ _ARITHMETIC
_PARITY = bytes(PF if byte.bit_count() % 2 == 0 else 0 for byte in range(256))

# SDM volume 1, appendix B: the flags that the even conditions test; the odd ones are their opposites. 12 (l) and 14
# (le) also ask whether SF and OF differ.
_TESTED = (OF, CF, ZF, CF | ZF, SF, PF, 0, ZF)
_LESS = 6


@dataclass(frozen=True, slots=True)
class Amd64Emulator:
    """`kinst.runtime.arch.emulator.Emulator` for amd64."""

    facts: ArchFacts

    def emulation(self, kind: int, instruction: bytes) -> Emulation:
        """The effect of `instruction`, whose bytes are given exactly; ValueError if `kind` is not emulated."""
        builder = _BUILDERS.get(Kind(kind))
        if builder is None:
            raise ValueError(f"{Kind(kind).name}: not an emulated kind")
        return builder(operands(instruction))


EMULATOR = Amd64Emulator(AMD64)


def _jump(of: Operands) -> Emulation:
    step = of.size + of.immediate(len(of.body))

    def run(frame: Frame) -> None:
        regs = frame.regs
        regs[RIP] = (regs[RIP] + step) & MASK64

    return Emulation(run, ())


def _branch(of: Operands) -> Emulation:
    """Jcc: the condition is in the low four bits of either form's opcode."""
    condition = of.opcode & 15
    tested = _TESTED[condition >> 1]
    if_set, if_clear = of.size + of.immediate(len(of.body)), of.size
    if condition & 1:
        if_set, if_clear = if_clear, if_set

    def run(frame: Frame) -> None:
        regs = frame.regs
        regs[RIP] = regs[RIP] + (if_set if regs[RFLAGS] & tested else if_clear) & MASK64

    def run_signed(frame: Frame) -> None:
        regs = frame.regs
        flags = regs[RFLAGS]
        less = flags & tested or (flags >> 7 ^ flags >> 11) & 1
        regs[RIP] = regs[RIP] + (if_set if less else if_clear) & MASK64

    return Emulation(run_signed if condition >> 1 >= _LESS else run, ())


def _loop(of: Operands) -> Emulation:
    """e0 loopne, e1 loope, e2 loop: the count goes down, no flag changes."""
    size, taken = of.size, of.size + of.immediate(1)
    mask = MASK32 if of.address32 else MASK64
    wanted = {0xE0: (0,), 0xE1: (ZF,), 0xE2: (0, ZF)}[of.opcode]

    def run(frame: Frame) -> None:
        regs = frame.regs
        count = regs[RCX] - 1 & mask
        regs[RCX] = count
        regs[RIP] = (regs[RIP] + (taken if count and regs[RFLAGS] & ZF in wanted else size)) & MASK64

    return Emulation(run, (RCX,))


def _count_zero(of: Operands) -> Emulation:
    size, taken = of.size, of.size + of.immediate(1)
    mask = MASK32 if of.address32 else MASK64

    def run(frame: Frame) -> None:
        regs = frame.regs
        regs[RIP] = (regs[RIP] + (size if regs[RCX] & mask else taken)) & MASK64

    return Emulation(run, ())


def _call(of: Operands) -> Emulation:
    size, step = of.size, of.size + of.immediate(4)

    def run(frame: Frame) -> None:
        regs = frame.regs
        rip, top = regs[RIP], regs[RSP] - 8 & MASK64
        frame.store(top, 8, rip + size & MASK64)
        regs[RSP] = top
        regs[RIP] = rip + step & MASK64

    return Emulation(run, (RSP,))


def _destination(of: Operands) -> Callable[[Frame, Regs], int]:
    """Where an indirect branch goes: a register's value, or 8 bytes of memory."""
    if of.is_register:
        register = of.rm
        return lambda frame, regs: regs[register]
    address = linear_address(of)
    return lambda frame, regs: frame.load(address(regs), 8)


def _call_indirect(of: Operands) -> Emulation:
    """The destination is read before anything is pushed: call *%rsp and call *8(%rsp) use the old rsp."""
    destination, size = _destination(of), of.size

    def run(frame: Frame) -> None:
        regs = frame.regs
        target, top = destination(frame, regs), regs[RSP] - 8 & MASK64
        frame.store(top, 8, regs[RIP] + size & MASK64)
        regs[RSP] = top
        regs[RIP] = target

    return Emulation(run, (RSP,))


def _jump_indirect(of: Operands) -> Emulation:
    destination = _destination(of)

    def run(frame: Frame) -> None:
        regs = frame.regs
        regs[RIP] = destination(frame, regs)

    return Emulation(run, ())


def _return(of: Operands) -> Emulation:
    """c3, or c2 with the bytes of arguments to drop (unsigned)."""
    popped = 8 + int.from_bytes(of.body, "little")

    def run(frame: Frame) -> None:
        regs = frame.regs
        top = regs[RSP]
        regs[RIP] = frame.load(top, 8)
        regs[RSP] = top + popped & MASK64

    return Emulation(run, (RSP,))


def _push(of: Operands) -> Emulation:
    """push %rsp stores the old value."""
    size, register = of.size, of.low_register

    def run(frame: Frame) -> None:
        regs = frame.regs
        top = regs[RSP] - 8 & MASK64
        frame.store(top, 8, regs[register])
        regs[RSP] = top
        regs[RIP] = regs[RIP] + size & MASK64

    return Emulation(run, (RSP,))


def _pop(of: Operands) -> Emulation:
    """pop %rsp ends with the value loaded: the register is written last."""
    size, register = of.size, of.low_register

    def run(frame: Frame) -> None:
        regs = frame.regs
        top = regs[RSP]
        value = frame.load(top, 8)
        regs[RSP] = top + 8 & MASK64
        regs[register] = value
        regs[RIP] = regs[RIP] + size & MASK64

    return Emulation(run, (RSP,) if register == RSP else (RSP, register))


def _leave(of: Operands) -> Emulation:
    size = of.size

    def run(frame: Frame) -> None:
        regs = frame.regs
        top = regs[RBP]
        regs[RBP] = frame.load(top, 8)
        regs[RSP] = top + 8 & MASK64
        regs[RIP] = regs[RIP] + size & MASK64

    return Emulation(run, (RSP, RBP))


def _nop(of: Operands) -> Emulation:
    size = of.size

    def run(frame: Frame) -> None:
        regs = frame.regs
        regs[RIP] = regs[RIP] + size & MASK64

    return Emulation(run, ())


def _lea(of: Operands) -> Emulation:
    """The offset alone: a segment prefix means nothing here."""
    size, register, mask, address = of.size, of.reg, of.mask, effective_address(of)

    def run(frame: Frame) -> None:
        regs = frame.regs
        regs[register] = address(regs) & mask
        regs[RIP] = regs[RIP] + size & MASK64

    return Emulation(run, (register,))


def _move(of: Operands) -> Emulation:
    """89 stores reg into r/m, 8b loads it from there."""
    size, mask = of.size, of.mask
    target, source = (of.rm, of.reg) if of.opcode == 0x89 else (of.reg, of.rm)

    def run(frame: Frame) -> None:
        regs = frame.regs
        regs[target] = regs[source] & mask
        regs[RIP] = regs[RIP] + size & MASK64

    return Emulation(run, (target,))


def _move_immediate(of: Operands) -> Emulation:
    """b8-bf: as many bytes as the operand has; c7: 4 bytes, sign-extended."""
    size = of.size
    target = of.rm if of.opcode == 0xC7 else of.low_register
    value = of.immediate(8 if of.wide and of.opcode != 0xC7 else 4) & of.mask

    def run(frame: Frame) -> None:
        regs = frame.regs
        regs[target] = value
        regs[RIP] = regs[RIP] + size & MASK64

    return Emulation(run, (target,))


def _clear(of: Operands) -> Emulation:
    """xor leaves AF undefined; processors and QEMU clear it, as sub does."""
    size, register = of.size, of.rm

    def run(frame: Frame) -> None:
        regs = frame.regs
        regs[register] = 0
        regs[RFLAGS] = regs[RFLAGS] & _KEPT | ZF | PF
        regs[RIP] = regs[RIP] + size & MASK64

    return Emulation(run, (register, RFLAGS))


def _test(of: Operands) -> Emulation:
    """AF as in `_clear`."""
    size, mask, first, second = of.size, of.mask, of.reg, of.rm
    to_sign = 63 - 7 if of.wide else 31 - 7

    def run(frame: Frame) -> None:
        regs = frame.regs
        result = regs[first] & regs[second] & mask
        flags = regs[RFLAGS] & _KEPT | _PARITY[result & 255] | result >> to_sign & SF
        regs[RFLAGS] = flags if result else flags | ZF
        regs[RIP] = regs[RIP] + size & MASK64

    return Emulation(run, (RFLAGS,))


def _adjust(of: Operands) -> Emulation:
    """81 and 83 with /0 add, /5 sub. Overflow: both operands of the addition differ in sign from the result."""
    size, mask, register = of.size, of.mask, of.rm
    operand = of.immediate(1 if of.opcode == 0x83 else 4) & mask
    to_sign = 63 if of.wide else 31
    subtract = (of.body[0] >> 3 & 7) == 5

    def run(frame: Frame) -> None:
        regs = frame.regs
        old = regs[register] & mask
        total = old - operand if subtract else old + operand
        result = total & mask
        overflow = (old ^ result) & ((old if subtract else result) ^ operand)
        flags = regs[RFLAGS] & _KEPT | _PARITY[result & 255] | (old ^ operand ^ result) & AF
        flags |= (overflow >> to_sign & 1) << 11 | (result >> to_sign) << 7 | (total != result)
        regs[RFLAGS] = flags if result else flags | ZF
        regs[register] = result
        regs[RIP] = regs[RIP] + size & MASK64

    return Emulation(run, (register, RFLAGS))


_BUILDERS: dict[Kind, Builder] = {
    Kind.JUMP: _jump,
    Kind.BRANCH: _branch,
    Kind.LOOP: _loop,
    Kind.COUNT_ZERO: _count_zero,
    Kind.CALL: _call,
    Kind.CALL_INDIRECT: _call_indirect,
    Kind.JUMP_INDIRECT: _jump_indirect,
    Kind.RETURN: _return,
    Kind.LEA: _lea,
    Kind.PUSH: _push,
    Kind.POP: _pop,
    Kind.LEAVE: _leave,
    Kind.NOP: _nop,
    Kind.MOVE: _move,
    Kind.MOVE_IMMEDIATE: _move_immediate,
    Kind.CLEAR: _clear,
    Kind.TEST: _test,
    Kind.ADJUST: _adjust,
}
