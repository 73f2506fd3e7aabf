"""Division as in C, for compiled clauses: Python's division rounds down and has no width."""

from typing import NoReturn

from kinst.runtime.trap.faults import Fault, FaultKind


def divide_by_zero() -> NoReturn:
    """Abort the clause. Raises Fault DIVZERO."""
    raise Fault(FaultKind.DIVZERO)


def quotient(left: int, right: int) -> int:
    """left / right, rounded toward zero. INT64_MIN / -1 is 2**63, which the caller wraps: in C it is undefined, and
    traps on amd64."""
    if not right:
        divide_by_zero()
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def remainder(left: int, right: int) -> int:
    """left % right, with the sign of `left`."""
    if not right:
        divide_by_zero()
    found = abs(left) % abs(right)
    return -found if left < 0 else found
