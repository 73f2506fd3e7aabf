"""An answer that comes from disk or from another process -> the same, checked: it is not trusted.

After that, values have the types of their columns, and numbers fit 64 bits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kinst.runtime.batch.rows import COLUMNS, COVERAGE, Answer, Outcome, Row

_OUTCOMES: Final = frozenset(one.value for one in Outcome)
_WORD: Final = range(-(1 << 63), 1 << 63)
_LARGEST: Final = 1e18
_ALWAYS: Final = ("image", "function", "offset", "instruction")  # what each row about an instruction has


def checked(rows: Any, coverage: Any, seconds: Any, megabytes: Any) -> Answer:
    """The parts of an answer -> the answer. Raises ValueError: they are not valid."""
    answer = Answer(
        tuple(_row(row, COLUMNS) for row in _several(rows)),
        tuple(_covered(row) for row in _several(coverage)),
        float(_value("seconds", seconds, float)),
        int(_value("megabytes", megabytes, int)),
    )
    wrong = [row.get("outcome") for row in answer.rows if row.get("outcome") not in _OUTCOMES]
    if wrong or answer.seconds < 0 or answer.megabytes < 0:
        raise ValueError(f"outcome {wrong!r:.60}, {answer.seconds} s, {answer.megabytes} MB")
    return answer


def checked_answer(answer: Any) -> Answer:
    """An answer from another process, checked. Raises ValueError."""
    if not isinstance(answer, Answer):
        raise ValueError(f"no answer: {type(answer).__name__}")
    for name, content in (("report", answer.report), ("covered", answer.covered)):
        if not isinstance(content, bytes):
            raise ValueError(f"{name}: {content!r:.60}")
    found = checked(answer.rows, answer.coverage, answer.seconds, answer.megabytes)
    return replace(found, report=answer.report, covered=answer.covered)


def _several(value: Any) -> Sequence[Any]:
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"no list: {value!r:.60}")
    return value


def _row(row: Any, columns: Mapping[str, tuple[type, str]]) -> Row:
    if not isinstance(row, dict) or not row.keys() <= columns.keys():
        raise ValueError(f"no row: {row!r:.60}")
    return {name: value if value is None else _value(name, value, columns[name][0]) for name, value in row.items()}


def _covered(row: Any) -> Row:
    """A row about an instruction: it is counted, and then all is known of it; or it is not."""
    found = _row(row, COVERAGE)
    counts = [found.get(name) for name in ("hits", "inputs")]
    is_right = counts == [None, None] or (None not in counts and (not counts[1] or found.get("first") is not None))
    if not is_right or any(found.get(name) is None for name in _ALWAYS):
        raise ValueError(f"no row of coverage: {row!r:.60}")
    return {name: found.get(name) for name in COVERAGE}


def _value(name: str, value: Any, kind: type) -> Any:
    if kind is float:
        is_right = type(value) in (int, float) and -_LARGEST < value < _LARGEST  # and so not infinite, nor nan
    else:
        is_right = type(value) is kind and (kind is not int or value in _WORD)
    if not is_right:
        raise ValueError(f"{name}: {value!r:.60}")
    return value.encode(errors="backslashreplace").decode() if kind is str else value
