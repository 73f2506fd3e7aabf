"""Which parameters of a test the gate runs, where one image shows the rule and the others take long."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

Value = TypeVar("Value")
Other = TypeVar("Other")


def long_where(values: Sequence[Value], is_long: Callable[[Value], bool]) -> list[object]:
    """The values as parameters, some of them marked as long."""
    return [pytest.param(value, marks=pytest.mark.long) if is_long(value) else value for value in values]


def taking_turns(values: Sequence[Value], others: Sequence[Other]) -> list[object]:
    """All pairs as parameters: the gate runs each of the `others` with one of the values, another each time."""
    pairs = [
        (value, other, (turn - place) % len(values))
        for turn, other in enumerate(others)
        for place, value in enumerate(values)
    ]
    return [pytest.param(value, other, marks=[pytest.mark.long] * bool(later)) for value, other, later in pairs]


def long_after_first(values: Sequence[Value]) -> list[object]:
    """The values as parameters, all but the first marked as long."""
    return long_where(values, lambda value: value is not values[0])
