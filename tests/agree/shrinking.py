"""A program that fails -> the smallest that still does: parts are dropped one by one, for as long as it fails."""

from collections.abc import Callable
from typing import Final

from tests.agree.program import Program

_TRIES: Final = 100


def shrunk(program: Program, fails: Callable[[Program], bool], tries: int = _TRIES) -> Program:
    """The smallest that was found in so many runs."""
    is_smaller = True
    while is_smaller and tries > 0:
        is_smaller = False
        for smaller in program.smaller():
            tries -= 1
            if tries < 0:
                break
            if fails(smaller):
                program, is_smaller = smaller, True
                break
    return program
