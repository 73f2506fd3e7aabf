"""Which spans end when a function returns."""

import pytest

from kinst.runtime.consumer.spans import SpanStack


@pytest.mark.parametrize(
    ("entered", "left", "ended", "rest"),
    [
        ("", "a", 0, 0),
        ("a", "a", 1, 0),
        ("ab", "b", 1, 1),
        ("abc", "a", 3, 0),  # the returns of b and c were not seen
        ("ab", "c", 0, 2),  # the entry of c was not
        ("aa", "a", 1, 1),  # the innermost call of a recursive function
        ("aba", "b", 2, 1),
    ],
)
def test_a_return_ends_its_own_span_and_those_within(entered: str, left: str, ended: int, rest: int) -> None:
    stack = SpanStack()
    for function in entered:
        stack.enter(function)
    assert stack.leave(left) == ended
    assert len(stack) == rest
