"""Instructions -> which of them control comes to from the room for the kernel's tracer only: more is dead there than
code shows."""

from kinst.targets.instruction import Flow, Instructions, Reason


def is_behind_room(found: Instructions, row: int) -> bool:
    """Whether control comes to a row from a function's room alone."""
    while found.reason[row - 1] != Reason.TRACER_CALL:
        is_same = found.function[row - 1] == found.function[row]
        is_entered = bool((found.target == found.address[row]).any())
        if is_entered or not is_same or found.flow[row - 1] not in (Flow.NEXT, Flow.BRANCH):
            return False
        row -= 1
    return True
