"""A run that is counted -> what ran, and the debug information of its images, for all that is written of it."""

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from kinst.runtime.coverage.document import Coverage, CoveredImage
from kinst.runtime.coverage.output_form import CoverageForm
from kinst.runtime.tracing.guests.built import Counting
from kinst.runtime.tracing.tracing import Tracing
from kinst.targets.debuginfo.debugfile import find_debug
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.errors import ImageError, KinstError
from kinst.targets.image import Image, open_image


class RunCoverage:
    """Of one run."""

    def __init__(
        self,
        counting: Counting,
        original: Image,
        tracing: Tracing,
        form: CoverageForm,
        warn: Callable[[str], None],
        *,
        has_page: bool,
    ) -> None:
        """
        Args:
            counting: what counts.
            original: the image.
            tracing: the run.
            form: of the file.
            warn: called with what is left out of it.
            has_page: whether there is a page that shows lines, whatever the form.

        Raises:
            KinstError: the image has no debug information, and the form needs it.
        """
        self._counting, self._form, self._warn = counting, form, warn
        self._debug: dict[str, DebugSections] = {}
        needs_lines = form is CoverageForm.LCOV
        with suppress(*() if needs_lines else (ImageError,)):
            if needs_lines or has_page or form is CoverageForm.HTML:
                self._debug[str(original.path)] = _debug_of(tracing, original)

    @cached_property
    def coverage(self) -> Coverage:
        """What ran, when it is over. Raises KinstError: an image cannot be read any more."""
        return self._counting.coverage()

    def lines_of(self, image: CoveredImage) -> DebugSections | None:
        """The debug information of an image; None: it has none, which is told. Raises KinstError: as None, for a page,
        which says so itself."""
        found = self._debug.get(image.path)
        if found is None:
            try:
                return find_debug(open_image(Path(image.path)))
            except KinstError as error:
                if self._form is not CoverageForm.LCOV:
                    raise
                self._warn(f"--coverage: {image.module} is left out: {str(error).splitlines()[0]}")
        return found


def _debug_of(tracing: Tracing, original: Image) -> DebugSections:
    try:
        return find_debug(original, tracing.request.debug_file)
    except ImageError as error:
        raise ImageError(f"{error}\n  --coverage FILE.drcov and FILE.json need none") from None
