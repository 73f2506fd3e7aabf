"""Columns of numbers and text -> data frames of pandas and polars. Only this file imports them, and only when a frame
is requested: neither is a dependency."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kinst.targets.errors import UsageError

if TYPE_CHECKING:
    import pandas
    import polars

Cell = int | str | None
Columns = dict[str, Sequence[Cell]]
_INT64: Final = range(-(1 << 63), 1 << 63)
_UINT64: Final = range(1 << 64)


def to_pandas(columns: Columns) -> "pandas.DataFrame":
    """A column of integers is int64, or uint64 if it must be, and nullable where one is missing; others are text."""
    try:
        import pandas
    except ImportError as error:
        raise _missing("pandas", error) from None
    series = {}
    for name, cells in columns.items():
        kind = _integers(cells)
        if kind is None:
            series[name] = pandas.Series([_text(cell) for cell in cells], dtype="string")
        else:
            is_nullable = any(cell is None for cell in cells)
            series[name] = pandas.Series(list(cells), dtype=kind if is_nullable else kind.lower())
    return pandas.DataFrame(series)


def to_polars(columns: Columns) -> "polars.DataFrame":
    """A column of integers is Int64, or UInt64 if it must be; others are String. What is missing is null."""
    try:
        import polars
    except ImportError as error:
        raise _missing("polars", error) from None
    series = []
    for name, cells in columns.items():
        kind = _integers(cells)
        kept = list(cells) if kind else [_text(cell) for cell in cells]
        series.append(polars.Series(name, kept, getattr(polars, kind or "String")))
    return polars.DataFrame(series)


def _integers(cells: Sequence[Cell]) -> str | None:
    """The type that holds all cells, if they are integers."""
    numbers = [cell for cell in cells if cell is not None]
    if not all(isinstance(cell, int) for cell in numbers):
        return None
    if all(number in _INT64 for number in numbers):
        return "Int64"
    return "UInt64" if all(number in _UINT64 for number in numbers) else None


def _text(cell: Cell) -> str | None:
    return None if cell is None else str(cell).encode("utf-8", "backslashreplace").decode()


def _missing(package: str, error: ImportError) -> UsageError:
    extra = "pip install 'kinst-rewrite[notebook]'"
    return UsageError(f"a frame of {package}: needs the Python package {package} ({error}): {extra}")
