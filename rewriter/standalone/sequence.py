"""A group of instructions -> their trampoline: what is the same on machines whose instructions are words."""

from collections.abc import Callable, Sequence
from typing import Final

from kinst.rewriter.standalone.trampoline import Covered, ImmovableError
from kinst.targets.instruction import Flow

_FALLS: Final = (Flow.NEXT, Flow.BRANCH)
_DIRECT: Final = (Flow.JUMP, Flow.BRANCH, Flow.CALL)


def sequence(
    group: Sequence[Covered],
    address: int,
    do: Callable[[Covered, int], bytes],
    move: Callable[[Covered, Covered | None, int], bytes],
    leave: Callable[[int, int], bytes],
) -> bytes:
    """The code at `address`.

    Args:
        group: the instructions.
        address: of the code.
        do: makes the code of an instruction's task at an address.
        move: makes that of an instruction, which follows another one of the group, at an address.
        leave: makes a jump at an address to another one.

    Raises:
        ImmovableError: one of these does, or an instruction leads into the group.
    """
    _check(group)
    code, before = b"", None
    for one in group:
        if one.task is not None:
            code += do(one, address + len(code))
        code += move(one, before, address + len(code))
        before = one
    last = group[-1]
    if last.flow in _FALLS:
        code += leave(address + len(code), last.address + len(last.code))
    return code


def _check(group: Sequence[Covered]) -> None:
    """Where the first one was is a jump to the trampoline: all may lead there. The others are not where they were."""
    inside = range(group[0].address + 1, group[-1].address + len(group[-1].code))
    if any(one.flow in _DIRECT and one.target in inside for one in group):
        raise ImmovableError("a jump of the same trampoline leads to it")
    if any(one.flow not in _FALLS for one in group[:-1]):
        raise ImmovableError("control leaves before it: what comes back would find a jump")
