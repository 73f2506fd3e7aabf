"""Division as C does it, for compiled clauses: Python's own rounds down and knows no width."""

from typing import NoReturn

from kinst.runtime.trap.faults import Fault, FaultKind


def divide_by_zero() -> NoReturn:
    """Abort the clause."""
    raise Fault(FaultKind.DIVZERO)


def quotient(left: int, right: int) -> int:
    """left / right, toward zero; of the least number and -1 it does not fit 64 bits."""
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
