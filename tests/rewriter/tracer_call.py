"""Instructions -> which of them are reached only from the call of the kernel's tracer: more is dead there than code
shows."""

from kinst.targets.instruction import Flow, Instructions, Reason


def is_after_tracer_call(found: Instructions, row: int) -> bool:
    """Whether control comes to a row only from the tracer's call at the start of its function."""
    while found.reason[row - 1] != Reason.TRACER_CALL:
        is_same = found.function[row - 1] == found.function[row]
        is_entered = bool((found.target == found.address[row]).any())
        if is_entered or not is_same or found.flow[row - 1] not in (Flow.NEXT, Flow.BRANCH):
            return False
        row -= 1
    return True
