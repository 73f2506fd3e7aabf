"""amd64: a displaced instruction -> its effect on the trap frame. `rewriter.arch.amd64_opcodes` says what is emulated.

Each kind has a builder that decodes the instruction once and returns a closure, since calling a closure is the fastest
that Python has. Closures access memory before registers, so that a fault leaves the frame unchanged.
"""

from collections.abc import Callable

from kinst.runtime.trap.arch.amd64_frames import FRAME_BUILDERS
from kinst.runtime.trap.arch.amd64_operands import (
    MASK32,
    MASK64,
    Operands,
    Regs,
    linear_address,
    operands,
)
from kinst.runtime.trap.arch.emulator import Emulation
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.targets.arch.amd64 import AMD64, RCX, RFLAGS, RIP, RSP, Kind
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.values import dataclass

Builder = Callable[[Operands], Emulation]

# RFLAGS (SDM volume 1, 3.4.3).
CF, PF, ZF, SF, OF = 1 << 0, 1 << 2, 1 << 6, 1 << 7, 1 << 11

# SDM volume 1, appendix B: the flags that the even conditions test; the odd ones are their opposites. 12 (l) and 14
# (le) also test whether SF and OF differ.
_TESTED = (OF, CF, ZF, CF | ZF, SF, PF, 0, ZF)
_LESS = 6


@dataclass(frozen=True, slots=True)
class Amd64Emulator:
    """Emulated instructions of amd64; implements `kinst.runtime.trap.arch.emulator.Emulator`."""

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

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        regs[RIP] = (regs[RIP] + step) & MASK64

    return Emulation(run, ())


def _branch(of: Operands) -> Emulation:
    """Jcc: the condition is in the low four bits of either form's opcode."""
    condition = of.opcode & 15
    tested = _TESTED[condition >> 1]
    if_set, if_clear = of.size + of.immediate(len(of.body)), of.size
    if condition & 1:  # its opposite: exchange the outcomes once, instead of negating at every hit
        if_set, if_clear = if_clear, if_set

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        regs[RIP] = regs[RIP] + (if_set if regs[RFLAGS] & tested else if_clear) & MASK64

    def run_signed(frame: TrapFrame) -> None:
        regs = frame.regs
        flags = regs[RFLAGS]
        less = flags & tested or (flags >> 7 ^ flags >> 11) & 1
        regs[RIP] = regs[RIP] + (if_set if less else if_clear) & MASK64

    return Emulation(run_signed if condition >> 1 >= _LESS else run, ())


def _loop(of: Operands) -> Emulation:
    """e0 loopne, e1 loope, e2 loop: they decrement the count and change no flags."""
    size, taken = of.size, of.size + of.immediate(1)
    mask = MASK32 if of.address32 else MASK64
    # The values of ZF under which it loops: 0 for loopne, 1 for loope, either for loop.
    wanted = {0xE0: (0,), 0xE1: (ZF,), 0xE2: (0, ZF)}[of.opcode]

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        # With an address-size prefix it counts in ECX, and a 32-bit result clears the upper half (SDM 1, 3.4.1.1).
        count = regs[RCX] - 1 & mask
        regs[RCX] = count
        regs[RIP] = (regs[RIP] + (taken if count and regs[RFLAGS] & ZF in wanted else size)) & MASK64

    return Emulation(run, (RCX,))


def _count_zero(of: Operands) -> Emulation:
    """e3 jrcxz, or jecxz with an address-size prefix."""
    size, taken = of.size, of.size + of.immediate(1)
    mask = MASK32 if of.address32 else MASK64

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        regs[RIP] = (regs[RIP] + (size if regs[RCX] & mask else taken)) & MASK64

    return Emulation(run, ())


def _call(of: Operands) -> Emulation:
    size, step = of.size, of.size + of.immediate(4)

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        rip, top = regs[RIP], regs[RSP] - 8 & MASK64
        frame.store(top, 8, rip + size & MASK64)  # may fault: the registers are still as they were
        regs[RSP] = top
        regs[RIP] = rip + step & MASK64

    return Emulation(run, (RSP,))


def _destination(of: Operands) -> Callable[[TrapFrame, Regs], int]:
    """A function that gives the target of an indirect branch: a register's value, or 8 bytes of memory."""
    if of.is_register:
        register = of.rm
        return lambda frame, regs: regs[register]
    address = linear_address(of)
    return lambda frame, regs: frame.load(address(regs), 8)


def _call_indirect(of: Operands) -> Emulation:
    """The destination is read before anything is pushed: call *%rsp and call *8(%rsp) use the old rsp."""
    destination, size = _destination(of), of.size

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        target, top = destination(frame, regs), regs[RSP] - 8 & MASK64
        frame.store(top, 8, regs[RIP] + size & MASK64)
        regs[RSP] = top
        regs[RIP] = target

    return Emulation(run, (RSP,))


def _jump_indirect(of: Operands) -> Emulation:
    destination = _destination(of)

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        regs[RIP] = destination(frame, regs)

    return Emulation(run, ())


def _nop(of: Operands) -> Emulation:
    size = of.size

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        regs[RIP] = regs[RIP] + size & MASK64

    return Emulation(run, ())


_BUILDERS: dict[Kind, Builder] = {
    Kind.JUMP: _jump,
    Kind.BRANCH: _branch,
    Kind.LOOP: _loop,
    Kind.COUNT_ZERO: _count_zero,
    Kind.CALL: _call,
    Kind.CALL_INDIRECT: _call_indirect,
    Kind.JUMP_INDIRECT: _jump_indirect,
    Kind.NOP: _nop,
    **FRAME_BUILDERS,
}
