"""What clauses do to the CPU at a hit: registers that they write, and where it goes on in place of the instruction.

Registers are written at once, so that the clauses that run after this one see them, and so does the displaced
instruction. Where the CPU goes on takes effect when all clauses have run: until then stacks and arguments are those of
the site. Of several the last one counts.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kinst.runtime.paging.walker import PageFault
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.targets.arch.facts import ArchFacts

_WORD: Final = (1 << 64) - 1
_RETURN_SIZE: Final = 8


class Interventions:
    """Those of the hit that is being handled. One object serves all hits of a machine."""

    __slots__ = ("_arch", "_frame", "_is_open", "_leaving", "_size", "_writer", "_writers", "_written")

    def __init__(self, arch: ArchFacts, frame: TrapFrame, writer: Callable[[Sequence[int]], Callable[[], int]]) -> None:
        """`writer` gives a function that writes registers of the frame to the CPU."""
        self._arch, self._frame, self._writer = arch, frame, writer
        self._writers: dict[tuple[int, ...], Callable[[], int]] = {}
        self._is_open = False
        self._size: int | None = None
        self._written: set[int] = set()
        self._leaving: tuple[int, Mapping[int, int]] | None = None  # where to, and registers by index

    @property
    def is_open(self) -> bool:
        """Whether a hit is being handled: else nothing that is written would reach the CPU."""
        return self._is_open

    def begin(self, size: int | None) -> None:
        """A hit begins, of an instruction of `size` bytes; None: no instruction is displaced, so the CPU stays."""
        self._is_open, self._size, self._leaving = True, size, None
        self._written.clear()

    def end(self, site: int) -> bool:
        """The clauses of the hit at `site` have run: write registers to the CPU. Returns whether it goes on elsewhere,
        at the PC in the frame, which the caller writes."""
        self._is_open = False
        regs, pc = self._frame.regs, self._arch.pc
        if self._leaving is not None:
            regs[pc], values = self._leaving
            for index, value in values.items():
                regs[index] = value
            self._written.update(values)
        if written := tuple(sorted(self._written - {pc})):
            self._write(written)
        return self._leaving is not None or regs[pc] != site

    def abandon(self) -> None:
        """An action raised: nothing is written any more."""
        self._is_open = False

    def _write(self, indexes: tuple[int, ...]) -> None:
        write = self._writers.get(indexes)
        if write is None:
            write = self._writers[indexes] = self._writer(indexes)
        write()

    # -- what clauses ask for -----------------------------------------------------------------------------------------

    def write(self, index: int, value: int) -> None:
        """Write a register: its bits that a program may write. A jump if it is the PC. Raises Fault: ILLOP."""
        arch, regs = self._arch, self._frame.regs
        bits = arch.writable_bits.get(index, 0)
        if not bits:
            raise Fault(FaultKind.ILLOP, index, f"{arch.registers[index]} cannot be written")
        if index == arch.pc:
            self._jump(value & _WORD)
        regs[index] = regs[index] & ~bits | value & bits
        self._written.add(index)

    def _jump(self, target: int) -> None:
        name = self._arch.registers[self._arch.pc]
        if self._size is None:
            raise Fault(FaultKind.ILLOP, target, f"{name} cannot be written where a tail call has returned")
        # Unicorn's translator expects what the CPU checks: arm64's PC alignment (D1.4.7), riscv64's IALIGN.
        if target % self._arch.instruction_alignment:
            raise Fault(FaultKind.ILLOP, target, f"{name} = {target:#x}: no instruction begins there")
        self._leaving = None

    def override(self, value: int | None) -> None:
        """Return from the function that begins at the site; None: with whatever its result's register has. Raises
        Fault: BADADDR if the return address cannot be read, ILLOP if no instruction is displaced."""
        arch, regs = self._arch, self._frame.regs
        self._require_instruction("override()")
        values = {} if value is None else {arch.return_value: value & _WORD}
        if arch.link_register is not None:
            self._leaving = regs[arch.link_register], values
            return
        stack = regs[arch.stack_pointer]
        try:
            target = self._frame.load(stack, _RETURN_SIZE)
        except PageFault:
            raise Fault(FaultKind.BADADDR, stack) from None
        self._leaving = target, {**values, arch.stack_pointer: stack + arch.pushed_return & _WORD}

    def skip(self) -> None:
        """Go on behind the probed instruction. Raises Fault: ILLOP if none is displaced."""
        size = self._require_instruction("skip()")
        self._leaving = self._frame.regs[self._arch.pc] + size & _WORD, {}

    def _require_instruction(self, action: str) -> int:
        if self._size is None:
            raise Fault(FaultKind.ILLOP, text=f"{action}: a tail call has returned, and no instruction is probed")
        return self._size
