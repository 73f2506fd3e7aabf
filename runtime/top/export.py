"""Rows of the live view -> a CSV file in the working directory, under a name that is not in use."""

import io
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from kinst.rewriter.shell.fresh_file import fresh_file
from kinst.runtime.consumer.documents.csv_output import csv_writer
from kinst.runtime.top.ranking import RankedRow


def export(rows: Sequence[RankedRow], heading: str) -> Path:
    """Write the rows as they are sorted; `heading` names their values. Returns the file. Raises OSError."""
    text = io.StringIO()
    table = csv_writer(text)
    table.writerow(["key", heading, "per_second_host", "per_second_guest", "share"])
    table.writerows(
        [one.key, one.value, f"{one.rate:.1f}", f"{one.guest_rate:.1f}", f"{one.share:.6f}"] for one in rows
    )
    path = next(path for number in count(1) if not (path := _named(number)).exists())
    with fresh_file(path, 0o644) as file:
        file.write(text.getvalue().encode(errors="backslashreplace"))
    return path


def _named(number: int) -> Path:
    return Path("kinst-top.csv" if number == 1 else f"kinst-top-{number}.csv")
