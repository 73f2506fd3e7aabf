"""A boot that does not end well is told of, with what was found until then."""

import json
from pathlib import Path
from typing import Any

from kinst.runtime.batch.running import boot_and_trace
from kinst.runtime.batch.tasks import InputFile, Run
from tests.rewriter.programs import small

SAMPLE = Path(__file__).parents[3] / "samples" / "kernel-arm64.elf"
COUNT = "fbt:::entry { @calls = count(); }"


def booted(path: Path, seconds: float | None) -> dict[str, Any]:
    image = InputFile(path.name, "0" * 64, 0)
    (row,) = boot_and_trace(image, Run(COUNT, COUNT), {image.sha256: path}, seconds).rows
    return row


def test_one_that_takes_too_long() -> None:
    row = booted(SAMPLE, 0)  # over before it has begun: it would take no time at all
    assert (row["outcome"], row["reason"], row["end"]) == ("timeout", "took longer than 80% of 0 s", "wall-timeout")
    assert json.loads(row["aggregations"] or '{"calls": []}').keys() == {"calls"}


def test_one_with_a_report(tmp_path: Path) -> None:
    """It has what was recorded, and that it did not end well; the row is the one without."""
    path = small().write(tmp_path)
    image = InputFile(path.name, "0" * 64, 0)
    plain, told = (
        boot_and_trace(image, Run(COUNT, COUNT, has_report=has_report), {image.sha256: path}, 60)
        for has_report in (False, True)
    )
    assert (plain.rows, plain.report) == (told.rows, b"")
    assert b"fault" in told.report and told.report.rstrip().endswith(b"</html>")


def test_one_whose_guest_stops_for_good(tmp_path: Path) -> None:
    row = booted(small().write(tmp_path), 60)
    assert (row["outcome"], row["end"], row["status"]) == ("done", "fault", 5)
    assert row["reason"].startswith("CPU 0 at ")
