"""What ran in the boots of a batch: a file of each, and all of them added up, as JSON and as a page."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from kinst.rewriter.shell.fresh_file import replaced_file
from kinst.runtime.coverage.command import lines_of
from kinst.runtime.coverage.document import Coverage
from kinst.runtime.coverage.json_format import read_coverage
from kinst.runtime.coverage.merging import merged
from kinst.runtime.coverage.output_form import CoverageForm
from kinst.runtime.coverage.writing import coverage_bytes
from kinst.targets.values import dataclass

FOLDER: Final = "coverage"  # beside the table
_SUMS: Final = {CoverageForm.JSON: "all.json", CoverageForm.HTML: "all.html"}


@dataclass(frozen=True, slots=True)
class RanInAll:
    """What the boots of a batch ran together."""

    runs: int
    ran: int  # functions that ran in one of them
    functions: int
    page: Path


def renamed(content: bytes, before: Path | str, after: Path | str) -> bytes:
    """A file of coverage, in which an image has another path."""
    return content.replace(_path(before), _path(after))


def _path(path: Path | str) -> bytes:
    return f'"path": {json.dumps(str(path))}'.encode()


def add_up(files: Iterable[Path], folder: Path) -> RanInAll | None:
    """Write the sums of the files; None: there is none of them. Raises KinstError: one cannot be read."""
    found: Coverage | None = None
    for path in files:
        one = read_coverage(path)
        found = one if found is None else merged(found, one, has_others=True)
    if found is None:
        return None
    for form, name in _SUMS.items():
        with replaced_file(folder / name) as file:
            file.writelines(coverage_bytes(found, form, lines_of))
    functions = [one for image in found.images for one in image.functions]
    ran = sum(one.rank > 0 for one in functions)
    return RanInAll(found.runs, ran, len(functions), folder / _SUMS[CoverageForm.HTML])


def page_lines(found: RanInAll | None) -> Iterator[str]:
    """What the page of the batch says of it. The folder and its files have names of ours."""
    if found is None:
        return
    yield "<h2>Code that ran</h2>"
    count = f"{found.ran:,} of {found.functions:,} functions, in {found.runs:,} boots"
    yield f'<p>{count}: <a href="{FOLDER}/{found.page.name}">functions and source</a></p>'
