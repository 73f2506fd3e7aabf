"""A group of instructions -> their trampoline: what is the same on machines whose instructions are words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from kinst.rewriter.standalone.trampoline import Count, Covered, ImmovableError, Record
from kinst.targets.instruction import Flow

_FALLS: Final = (Flow.NEXT, Flow.BRANCH)
_DIRECT: Final = (Flow.JUMP, Flow.BRANCH, Flow.CALL)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a machine makes for an address: the code of a task; that of an instruction, which may follow another one of
    its group; and a jump from there to another address, by one of the dead registers if it takes one, None if it does
    not reach."""

    count: Callable[[Covered, Count, int], bytes]
    record: Callable[[Covered, Record, int], bytes]
    move: Callable[[Covered, Covered | None, int], bytes]
    jump: Callable[[int, int, int], bytes | None]

    def leave(self, at: int, target: int, dead: int) -> bytes:
        """The jump.

        Raises:
            ImmovableError: it does not reach.
        """
        code = self.jump(at, target, dead)
        if code is None:
            raise ImmovableError("a jump does not reach from there to its trampoline and back")
        return code


def sequence(parts: Parts, group: Sequence[Covered], address: int) -> bytes:
    """The code of a group for an address.

    Raises:
        ImmovableError: part of it cannot be made, or an instruction leads into the group.
    """
    _check(group)
    code, before = b"", None
    for one in group:
        code += _task(parts, one, address + len(code))
        code += parts.move(one, before, address + len(code))
        before = one
    last = group[-1]
    if last.flow in _FALLS:
        code += parts.leave(address + len(code), last.address + len(last.code), last.dead_behind)
    return code


def _task(parts: Parts, one: Covered, at: int) -> bytes:
    match one.task:
        case Count() as task:
            return parts.count(one, task, at)
        case Record() as task:
            return parts.record(one, task, at)
        case None:
            return b""
        case other:
            assert_never(other)


def _check(group: Sequence[Covered]) -> None:
    """Where the first one was is a jump to the trampoline: all may lead there. The others are not where they were."""
    inside = range(group[0].address + 1, group[-1].address + len(group[-1].code))
    if any(one.flow in _DIRECT and one.target in inside for one in group):
        raise ImmovableError("a jump of the same trampoline leads to it")
    if any(one.flow not in _FALLS for one in group[:-1]):
        raise ImmovableError("control leaves before it: what comes back would find a jump")
