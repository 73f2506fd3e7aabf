"""Which parameters of a test the gate runs, where one image shows the rule and the others take long."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

Value = TypeVar("Value")


def long_where(values: Sequence[Value], is_long: Callable[[Value], bool]) -> list[object]:
    """The values as parameters, some of them marked as long."""
    return [pytest.param(value, marks=pytest.mark.long) if is_long(value) else value for value in values]


def long_after_first(values: Sequence[Value]) -> list[object]:
    """The values as parameters, all but the first marked as long."""
    return long_where(values, lambda value: value is not values[0])
