"""A run with its output -> the same output, and the file of --coverage, written when the run is over."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from kinst.runtime.clauses.environment import ErrorRecord, Record
from kinst.runtime.consumer.messages import Drop
from kinst.runtime.coverage.document import CoveredImage
from kinst.runtime.coverage.output_form import CoverageForm, CoverageOutput
from kinst.runtime.coverage.writing import coverage_bytes
from kinst.runtime.tracing.outputs import Consumer
from kinst.runtime.tracing.tracing import Tracing
from kinst.targets.debuginfo.debugfile import find_debug
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.errors import ImageError, KinstError
from kinst.targets.image import open_image


class WithCoverage:
    """Implements `outputs.Consumer`."""

    def __init__(
        self,
        consumer: Consumer,
        tracing: Tracing,
        wanted: CoverageOutput,
        file: BinaryIO,
        warn: Callable[[str], None],
    ) -> None:
        """`file` receives what has run. `warn` is called with what is left out. Raises KinstError: the image has no
        debug information, and the format needs it."""
        guest = tracing.guest
        assert guest is not None and guest.covering is not None, "the request has coverage"
        self._consumer, self._covering, self._wanted, self._file = consumer, guest.covering, wanted, file
        self._warn = warn
        self._debug: dict[str, DebugSections] = {}
        needs_lines = wanted.form is CoverageForm.LCOV
        with suppress(*() if needs_lines else (ImageError,)):
            if needs_lines or wanted.form is CoverageForm.HTML:
                self._debug[str(guest.prepared.original.path)] = _debug_of(tracing)

    @property
    def status(self) -> int | None:
        """See `Consumer`."""
        return self._consumer.status

    def consume(self, taken: Sequence[Record | ErrorRecord | bytes]) -> None:
        """See `Consumer`."""
        self._consumer.consume(taken)

    def drops(self, drops: Iterable[Drop]) -> None:
        """See `Consumer`."""
        self._consumer.drops(drops)

    def notices(self, notices: Iterable[str]) -> None:
        """See `Consumer`."""
        self._consumer.notices(notices)

    def flush(self) -> None:
        """See `Consumer`."""
        self._consumer.flush()

    def finish(self, end: Mapping[str, Any] | None) -> None:
        """Finish the output, and write the file."""
        self._consumer.finish(end)  # first: the output must be whole even if the file cannot be written
        for piece in coverage_bytes(self._covering.coverage(), self._wanted.form, self._lines_of):
            self._file.write(piece)
        self._file.flush()

    def _lines_of(self, image: CoveredImage) -> DebugSections | None:
        found = self._debug.get(image.path)
        if found is None:
            try:
                return find_debug(open_image(Path(image.path)))
            except KinstError as error:
                if self._wanted.form is CoverageForm.HTML:  # the page says so
                    raise
                self._warn(f"--coverage: {image.module} is left out: {str(error).splitlines()[0]}")
        return found


def _debug_of(tracing: Tracing) -> DebugSections:
    assert tracing.guest is not None
    image, request = tracing.guest.prepared.original, tracing.request
    try:
        return find_debug(image, request.debug_file)
    except ImageError as error:
        raise ImageError(f"{error}\n  --coverage FILE.drcov and FILE.json need none") from None
