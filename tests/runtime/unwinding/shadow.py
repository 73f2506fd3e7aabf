"""An independent stack: calls and returns of a plain image are followed by a hook of raw Unicorn on every instruction.

It shares the dissector's flows with what it is to check, and nothing else: no frame, no memory, no register.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import unicorn

from kinst.rewriter.program import Program, instructions_of
from kinst.runtime.tracing.guests.guest import Guest
from kinst.targets.instruction import Flow

_CALLS = (Flow.CALL, Flow.INDIRECT_CALL)


@dataclass(frozen=True, slots=True)
class Interrupted:
    """An exception or interrupt was taken here: what lies below is not reached by return addresses."""

    address: int


@dataclass(frozen=True, slots=True)
class _Step:
    address: int
    size: int
    flow: int
    target: int


class ShadowStack:
    """Return addresses, outermost first, as of the instruction that is about to run."""

    def __init__(self, guest: Guest, program: Program, every: int, look: Callable[[int, list[int]], None]) -> None:
        """Call `look` with the address and its callers, innermost first, at one instruction in `every`."""
        found = instructions_of(program, np.arange(len(program.functions)))
        columns = (found.address, found.size, found.flow, found.target)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        self._steps = {row[0]: _Step(*row) for row in rows}
        self._entries: list[int | Interrupted] = []
        self._handlers: set[int] = set()
        self._before: _Step | None = None
        self._look = look
        self._every = every
        self._count = 0
        self.error: BaseException | None = None  # a hook must not raise: nobody would see it
        guest.system.engine.ql.uc.hook_add(unicorn.UC_HOOK_CODE, self._executed)

    def _executed(self, _uc: object, address: int, _size: int, _data: object) -> None:
        if self.error is not None:
            return
        try:
            self._follow(address)
            self._count += 1
            if self._count % self._every == 0 and address in self._steps:
                self._look(address, self._callers())
        except BaseException as error:
            self.error = error

    def _callers(self) -> list[int]:
        found = []
        for entry in reversed(self._entries):
            if isinstance(entry, Interrupted):
                break
            found.append(entry)
        return found

    def _follow(self, address: int) -> None:
        before, self._before = self._before, self._steps.get(address)
        if before is None or address in (before.address, before.address + before.size):
            return  # the first; a repeated string instruction; the next
        if self._goes_to(before, address):
            if before.flow in _CALLS:
                self._entries.append(before.address + before.size)
            return
        if before.flow == Flow.RETURN and address in self._entries:
            while self._entries.pop() != address:  # a longjmp leaves several
                pass
        elif before.flow == Flow.STOP:  # an exception return, or the halt before an interrupt
            self._resume()
        else:
            self._interrupt(before, address)

    def _goes_to(self, before: _Step, address: int) -> bool:
        """Whether the instruction's own flow leads there."""
        if before.flow in (Flow.INDIRECT_CALL, Flow.INDIRECT_JUMP):
            return address not in self._handlers
        return before.flow in (Flow.CALL, Flow.JUMP, Flow.BRANCH) and before.target == address

    def _resume(self) -> None:
        if not any(isinstance(entry, Interrupted) for entry in self._entries):
            return
        while not isinstance(self._entries.pop(), Interrupted):
            pass

    def _interrupt(self, before: _Step, address: int) -> None:
        """Before the interrupt the instruction was executed whole: a call has pushed, a return has popped."""
        self._handlers.add(address)
        if before.flow in _CALLS:
            self._entries.append(before.address + before.size)
        elif before.flow == Flow.RETURN and self._entries:
            self._entries.pop()
        self._entries.append(Interrupted(before.address))
