"""A probe that fires -> the addresses of the functions that user mode is in, innermost first.

In a program whose file is known, its call frame information, else its code, leads from frame to frame, as for the
kernel's stacks: programs are rarely compiled with frame pointers. In other code frame pointers are followed without any
check, as DTrace does. The registers that user mode had when it entered the kernel come from the system's profile.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from kinst.runtime.clauses.environment import Memory
from kinst.runtime.trap.faults import Fault
from kinst.runtime.trap.trap import Firing
from kinst.runtime.unwinding.unwind import Rule, plain_address
from kinst.runtime.unwinding.user_programs import UserPrograms
from kinst.targets.arch.facts import ArchFacts

_WORD: Final = 8
_STACK: Final = 8 << 20  # bytes above a frame: an address in them is one of the stack, not of code
_MASK: Final = (1 << 64) - 1

UserRegisters = Callable[[Firing], Sequence[int] | None]


class _Frame(NamedTuple):
    """The registers of a function that are known."""

    pc: int
    sp: int
    fp: int


class UserStackWalker:
    """Implements `kinst.runtime.clauses.environment.UserStacks`."""

    def __init__(self, arch: ArchFacts, memory: Memory, registers: UserRegisters, programs: UserPrograms) -> None:
        """`registers` gives those of user mode, in the order of the trap frame; None if there is no user mode."""
        self._arch, self._load, self._registers, self._programs = arch, memory.load, registers, programs
        offset, returns, saved_fp = arch.unwind.frame_record
        self._linked = Rule(arch.frame_pointer, offset, returns, 0, saved_fp, is_certain=True)

    def stack(self, firing: Firing, frames: int) -> tuple[int, ...]:
        """The PC of user mode, and return addresses; at most `frames` in all."""
        regs = self._registers(firing)
        if regs is None or frames < 1 or not regs[self._arch.pc]:
            return ()
        frame: _Frame | None = _Frame(
            *(regs[at] for at in (self._arch.pc, self._arch.stack_pointer, self._arch.frame_pointer))
        )
        found: list[int] = []
        while frame is not None:
            found.append(frame.pc)
            frame = self._caller(frame, None if len(found) > 1 else regs) if len(found) < frames else None
        return tuple(found)

    def caller(self, firing: Firing) -> int:
        """Where user mode's function returns to; 0 if that is not known."""
        found = self.stack(firing, 2)
        return found[1] if len(found) > 1 else 0

    def _caller(self, frame: _Frame, regs: Sequence[int] | None) -> _Frame | None:
        """The frame of the caller. `regs` are all registers, of the innermost frame."""
        rule = self._rule(frame.pc, is_inner=regs is not None)
        if rule is None:
            return None
        arch = self._arch
        known = {arch.stack_pointer: frame.sp, arch.frame_pointer: frame.fp}
        base = known.get(rule.base) if regs is None else regs[rule.base]
        if base is None or (rule.returns is None and regs is None):
            return None
        cfa = base + rule.offset & _MASK
        # As for the kernel's: above the callee's frame. All three ABIs align the stack to at least 8 bytes.
        if cfa < frame.sp or (cfa == frame.sp and regs is None) or cfa % _WORD:
            return None
        try:
            fp = frame.fp if rule.saved_fp is None else self._load(cfa + rule.saved_fp & _MASK, _WORD)
            if rule.returns is not None:
                returned = self._load(cfa + rule.returns & _MASK, _WORD)
            else:
                returned = 0 if regs is None else regs[rule.register]
        except Fault:
            return None
        pc = plain_address(arch, returned)
        return _Frame(pc, cfa, fp) if pc and not 0 <= pc - cfa < _STACK else None

    def _rule(self, pc: int, *, is_inner: bool) -> Rule | None:
        """The unwind rule of the code at an address; None: it has no caller."""
        found = self._programs.find(pc if is_inner else pc - 1)
        if found is None:
            return self._linked
        program, link = found
        return program.unwinder.rule_at(link) if is_inner else program.unwinder.rule_in_call(link + 1)
