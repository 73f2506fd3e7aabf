"""What the calls of many tasks reached -> a row for each instruction."""

from typing import Any

from kinst.runtime.batch.journal import Journal
from kinst.runtime.batch.pool import Tasks
from kinst.runtime.batch.rows import Row
from kinst.runtime.batch.tasks import Call


def merged(tasks: Tasks, journal: Journal) -> list[Row]:
    """Sums of hits and inputs, and the first of the first inputs; in the order of the code."""
    found: dict[tuple[Any, ...], Row] = {}
    for digest, task in tasks.items():
        if isinstance(task.work, Call):
            for row in journal.answer(digest).coverage:
                key = (task.image.name, task.work.what, row["function"], row["offset"])
                found[key] = _sum(found[key], row) if key in found else row
    return list(found.values())


def _sum(one: Row, other: Row) -> Row:
    if one["inputs"] is None:
        return one
    first = [row["first"] for row in (one, other) if row["first"] is not None]
    return {
        **one,
        "hits": one["hits"] + other["hits"],
        "inputs": one["inputs"] + other["inputs"],
        "first": min(first, default=None),
    }
