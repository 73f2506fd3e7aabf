"""The formats of coverage, and the file of a run."""

from enum import Enum
from pathlib import Path
from typing import Final

from kinst.runtime.coverage.document import DEFAULT_GRANULARITY, CoverageRequest, Granularity
from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass


class CoverageForm(Enum):
    """A format."""

    LCOV = "lcov"
    DRCOV = "drcov"
    JSON = "json"
    HTML = "html"


_ENDINGS: Final = {
    ".info": CoverageForm.LCOV,
    ".drcov": CoverageForm.DRCOV,
    ".json": CoverageForm.JSON,
    ".html": CoverageForm.HTML,
}


@dataclass(frozen=True, slots=True)
class CoverageOutput:
    """The file of --coverage."""

    path: Path
    form: CoverageForm
    granularity: Granularity

    @property
    def request(self) -> CoverageRequest:
        """What is to be counted for it."""
        return CoverageRequest(self.granularity, self.form is CoverageForm.JSON)


def coverage_file(path: Path) -> CoverageOutput:
    """The file of a run, with what its name says. Raises UsageError: that is nothing."""
    return CoverageOutput(path, form_of(path), DEFAULT_GRANULARITY)


def form_of(path: Path) -> CoverageForm:
    """The format that a file's name ends with. Raises UsageError: with none of them."""
    found = _ENDINGS.get(path.suffix.lower())
    if found is None:
        endings = ", ".join(_ENDINGS)
        raise UsageError(f"--coverage {path}: a name that ends with one of {endings}, or give --coverage-format")
    return found
