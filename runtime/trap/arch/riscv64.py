"""riscv64: kind and bytes of a displaced instruction -> its effect on a trap frame.

Each function below turns the fields of one instruction into a closure that decodes nothing. The bit diagrams and
displacement layouts are those of `kinst.rewriter.arch.riscv64`.
"""

import operator
from collections.abc import Callable, MutableSequence

from kinst.rewriter.arch.riscv64 import IMM_B, IMM_CB, IMM_CI, IMM_CJ, IMM_I, IMM_J, IMM_S, IMM_U
from kinst.runtime.trap.arch.emulator import Emulation
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.riscv64 import PC, RA, RISCV64, SP, Kind

_MASK = (1 << 64) - 1
_SIGN = 1 << 63

Run = Callable[[TrapFrame], None]
Builder = Callable[[int], Emulation]


def _write(regs: MutableSequence[int], number: int, value: int) -> None:
    """Write a register; x0 ignores it. Reading x0 needs no function, since its place in the frame is always 0."""
    if number:
        regs[number] = value & _MASK


def _writes(number: int) -> tuple[int, ...]:
    return (number,) if number else ()


def _rd(word: int) -> int:
    return word >> 7 & 31


def _rs1(word: int) -> int:
    return word >> 15 & 31


def _rs2(word: int) -> int:
    return word >> 20 & 31


def _jump(displacement: int, link: int, size: int) -> Emulation:
    """jal, c.j: the link is the address after the instruction."""

    def run(frame: TrapFrame) -> None:
        regs, pc = frame.regs, frame.regs[PC]
        _write(regs, link, pc + size)
        regs[PC] = (pc + displacement) & _MASK

    return Emulation(run, _writes(link))


def _jump_register(base: int, displacement: int, link: int, size: int) -> Emulation:
    """jalr, c.jr, c.jalr: the base is read before the link is written (``jalr ra, 0(ra)``); bit 0 is cleared."""

    def run(frame: TrapFrame) -> None:
        regs, pc = frame.regs, frame.regs[PC]
        target = (regs[base] + displacement) & _MASK & ~1
        _write(regs, link, pc + size)
        regs[PC] = target

    return Emulation(run, _writes(link))


def _branch(
    compare: Callable[[int, int], bool], bias: int, rs1: int, rs2: int, displacement: int, size: int
) -> Emulation:
    """Conditional branches. `bias` is the sign bit for signed comparisons: flipping it in both operands maps their
    order to the unsigned one."""

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        taken = compare(regs[rs1] ^ bias, regs[rs2] ^ bias)
        regs[PC] = (regs[PC] + (displacement if taken else size)) & _MASK

    return Emulation(run, ())


def _add(rd: int, rs1: int, immediate: int, size: int) -> Emulation:
    """addi, mv, li, lui and their compressed forms: a register (x0 reads as 0) plus a constant."""

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        _write(regs, rd, regs[rs1] + immediate)
        regs[PC] = (regs[PC] + size) & _MASK

    return Emulation(run, _writes(rd))


def _auipc(word: int) -> Emulation:
    rd, displacement = _rd(word), IMM_U.of(word)

    def run(frame: TrapFrame) -> None:
        regs, pc = frame.regs, frame.regs[PC]
        _write(regs, rd, pc + displacement)
        regs[PC] = (pc + 4) & _MASK

    return Emulation(run, _writes(rd))


def _store(rs2: int, displacement: int, size: int) -> Emulation:
    """sd rs2, imm(sp) and c.sdsp."""
    # The base is sp in both: prologues save registers there, and other stores run in trampolines.

    def run(frame: TrapFrame) -> None:
        regs = frame.regs
        frame.store((regs[SP] + displacement) & _MASK, 8, regs[rs2])
        regs[PC] = (regs[PC] + size) & _MASK

    return Emulation(run, ())


def _conditional(compare: Callable[[int, int], bool], bias: int = 0) -> Builder:
    return lambda word: _branch(compare, bias, _rs1(word), _rs2(word), IMM_B.of(word), 4)


def _compressed_conditional(compare: Callable[[int, int], bool]) -> Builder:
    """c.beqz and c.bnez compare rs1', one of x8 to x15, with x0."""
    return lambda word: _branch(compare, 0, 8 + (word >> 7 & 7), 0, IMM_CB.of(word), 2)


def _addi16sp(word: int) -> Emulation:
    """C 26.5.2: ``011 | imm9 | 00010 | imm4|6|8:7|5 | 01``."""
    pieces = ((6, 1, 4), (2, 1, 5), (5, 1, 6), (3, 2, 7))
    immediate = sum((word >> low & ((1 << width) - 1)) << shift for low, width, shift in pieces)
    return _add(SP, SP, immediate - ((word >> 12 & 1) << 9), 2)


def _addi4spn(word: int) -> Emulation:
    """C 26.5.2: ``000 | imm5:4|9:6|2|3 | rd' | 00``, unsigned; rd' is one of x8 to x15."""
    pieces = ((6, 1, 2), (5, 1, 3), (11, 2, 4), (7, 4, 6))
    immediate = sum((word >> low & ((1 << width) - 1)) << shift for low, width, shift in pieces)
    return _add(8 + (word >> 2 & 7), SP, immediate, 2)


def _sdsp(word: int) -> Emulation:
    """C 26.3.1: ``111 | imm5:3|8:6 | rs2 | 10``, unsigned."""
    return _store(word >> 2 & 31, (word >> 10 & 7) << 3 | (word >> 7 & 7) << 6, 2)


_BUILDERS: dict[Kind, Builder] = {
    Kind.JAL: lambda word: _jump(IMM_J.of(word), _rd(word), 4),
    Kind.JALR: lambda word: _jump_register(_rs1(word), IMM_I.of(word), _rd(word), 4),
    Kind.BEQ: _conditional(operator.eq),
    Kind.BNE: _conditional(operator.ne),
    Kind.BLT: _conditional(operator.lt, _SIGN),
    Kind.BGE: _conditional(operator.ge, _SIGN),
    Kind.BLTU: _conditional(operator.lt),
    Kind.BGEU: _conditional(operator.ge),
    Kind.AUIPC: _auipc,
    Kind.ADDI: lambda word: _add(_rd(word), _rs1(word), IMM_I.of(word), 4),
    Kind.LUI: lambda word: _add(_rd(word), 0, IMM_U.of(word), 4),
    Kind.SD_SP: lambda word: _store(_rs2(word), IMM_S.of(word), 4),
    Kind.C_J: lambda word: _jump(IMM_CJ.of(word), 0, 2),
    Kind.C_BEQZ: _compressed_conditional(operator.eq),
    Kind.C_BNEZ: _compressed_conditional(operator.ne),
    Kind.C_JR: lambda word: _jump_register(_rd(word), 0, 0, 2),
    Kind.C_JALR: lambda word: _jump_register(_rd(word), 0, RA, 2),
    Kind.C_NOP: lambda word: _add(0, 0, 0, 2),
    Kind.C_ADDI: lambda word: _add(_rd(word), _rd(word), IMM_CI.of(word), 2),
    Kind.C_LI: lambda word: _add(_rd(word), 0, IMM_CI.of(word), 2),
    Kind.C_LUI: lambda word: _add(_rd(word), 0, IMM_CI.of(word) << 12, 2),
    Kind.C_ADDI16SP: _addi16sp,
    Kind.C_ADDI4SPN: _addi4spn,
    Kind.C_MV: lambda word: _add(_rd(word), word >> 2 & 31, 0, 2),
    Kind.C_SDSP: _sdsp,
}


class Riscv64Emulator:
    """Emulated instructions of RV64GC."""

    @property
    def facts(self) -> ArchFacts:
        """The facts of riscv64."""
        return RISCV64

    def emulation(self, kind: int, instruction: bytes) -> Emulation:
        """The effect of `instruction`; see `Emulator.emulation`."""
        size = 4 if instruction[0] & 3 == 3 else 2
        return _BUILDERS[Kind(kind)](int.from_bytes(instruction[:size], "little"))


EMULATOR = Riscv64Emulator()
