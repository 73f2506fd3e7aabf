"""Coverage -> the bytes of a file in one of its formats."""

from collections.abc import Iterator
from typing import assert_never

from kinst.runtime.coverage.document import Coverage
from kinst.runtime.coverage.drcov import drcov
from kinst.runtime.coverage.json_format import json_lines
from kinst.runtime.coverage.lcov import LinesOf, lcov_lines
from kinst.runtime.coverage.output_form import CoverageForm


def coverage_bytes(coverage: Coverage, form: CoverageForm, lines_of: LinesOf) -> Iterator[bytes]:
    """The pieces of the file. `lines_of` finds the lines of an image's source, for lcov. Raises KinstError."""
    match form:
        case CoverageForm.DRCOV:
            yield from drcov(coverage)
        case CoverageForm.JSON:
            yield from _encoded(json_lines(coverage))
        case CoverageForm.LCOV:
            yield from _encoded(lcov_lines(coverage, lines_of))
        case CoverageForm.HTML:
            from kinst.runtime.coverage.page import coverage_page  # few runs have one

            yield from _encoded(coverage_page(coverage, lines_of))
        case _:
            assert_never(form)


def _encoded(lines: Iterator[str]) -> Iterator[bytes]:
    for line in lines:
        yield f"{line}\n".encode("utf-8", "backslashreplace")
