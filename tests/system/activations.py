"""An independent list of returns: a hook of raw Unicorn follows the calls, tail calls and returns of a plain image.

It shares the dissector's flows and the functions' bounds with what it is to check, and nothing of how that finds out:
it knows no return address, no stack pointer and no frame, only where control went.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import unicorn

from kinst.rewriter.naming.select import base_name
from kinst.rewriter.program import Program, instructions_of
from kinst.rewriter.rewriting import Opened, plan_probes
from kinst.runtime.tracing.guests.guest import Guest
from kinst.targets.instruction import Flow
from kinst.targets.probe import parse_probe_names

_CALLS: Final = (Flow.CALL, Flow.INDIRECT_CALL)
_JUMPS: Final = (Flow.JUMP, Flow.BRANCH, Flow.INDIRECT_JUMP)
_INTERRUPTED: Final = -1  # what an interrupt or exception returns to: an exception return says it


@dataclass(frozen=True, slots=True)
class _Step:
    address: int
    end: int
    flow: int
    target: int
    function: int


@dataclass(slots=True)
class _Activation:
    """What a call or an interrupt entered, and the functions that went on to the next."""

    returns_to: int
    interrupted: _Step | None = None  # the last instruction before
    left: list[str] = field(default_factory=list)


class Activations:
    """The returns of a run as (function, value), in their order: a tail call's when the callee has returned."""

    def __init__(self, guest: Guest, program: Program) -> None:
        """Follow a guest that has not started."""
        found = instructions_of(program, np.arange(len(program.functions)))
        start, bias = found.address + np.uint64(guest.loaded.bias), np.uint64(guest.loaded.bias)
        target = np.where(found.target > 0, found.target + bias, 0)
        columns = (start, start + found.size, found.flow, target, found.function)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        self._steps = {row[0]: _Step(*row) for row in rows}
        self._names = program.functions.names
        self._base = [base_name(name) for name in program.functions.names]
        self._stack = [_Activation(0)]
        self._before: _Step | None = None
        self._frame = guest.system.engine.frame
        self._value = guest.system.arch.return_value
        self.returns: list[tuple[str, int]] = []
        self.error: BaseException | None = None  # a hook must not raise: nobody would see it
        guest.system.engine.ql.uc.hook_add(unicorn.UC_HOOK_CODE, self._executed)

    def _executed(self, _uc: object, address: int, _size: int, _data: object) -> None:
        if self.error is not None:
            return
        before, self._before = self._before, self._steps.get(address)
        try:
            if before is not None and address not in (before.address, before.end):
                self._follow(before, address)
            if self._before is not None and self._before.flow == Flow.RETURN:
                self._record([self._names[self._before.function]])
        except BaseException as error:
            self.error = error

    def _follow(self, before: _Step, address: int) -> None:
        if before.flow in _CALLS and before.target in (address, 0):
            self._stack.append(_Activation(before.end))
        elif before.flow in _JUMPS and before.target in (address, 0):
            self._jump(before, address)
        elif before.flow == Flow.RETURN and any(one.returns_to == address for one in self._stack):
            self._return(address)
        elif before.flow != Flow.STOP:
            self._stack.append(_Activation(_INTERRUPTED, before))
        elif any(one.returns_to == _INTERRUPTED for one in self._stack):
            self._resume(address)

    def _jump(self, before: _Step, address: int) -> None:
        after = self._steps.get(address)
        if after is None or self._base[after.function] != self._base[before.function]:
            self._stack[-1].left.append(self._names[before.function])

    def _resume(self, address: int) -> None:
        depth = self._depth(_INTERRUPTED)
        before = self._stack[depth].interrupted
        del self._stack[depth:]
        if before is not None and address not in (before.address, before.end):
            self._follow(before, address)

    def _depth(self, returns_to: int) -> int:
        return max(at for at, one in enumerate(self._stack) if one.returns_to == returns_to)

    def _return(self, address: int) -> None:
        depth = self._depth(address)
        activation = self._stack[depth]
        del self._stack[depth:]
        self._record(activation.left[::-1])

    def _record(self, functions: Sequence[str]) -> None:
        self._frame.read()
        value = self._frame.regs[self._value]
        self.returns += [(name, value) for name in functions]


def with_refused_returns(opened: Opened) -> set[str]:
    """Functions with ways out that cannot be probed."""
    resolution, plan = plan_probes(opened, list(parse_probe_names("fbt:::return")))
    rows = (*resolution.refusals.function.tolist(), *plan.lost.function.tolist())
    return {resolution.program.functions.names[row] for row in rows}
