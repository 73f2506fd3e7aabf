"""A run with its output -> the same output, and files about the run: the page of --report, and that of --coverage."""

from collections.abc import Callable, Sequence
from typing import BinaryIO

from kinst.runtime.coverage.output_form import CoverageOutput
from kinst.runtime.tracing.outputs import Consumer
from kinst.runtime.tracing.results.run_coverage import RunCoverage
from kinst.runtime.tracing.tracing import Tracing


def files_beside(
    output: Consumer,
    tracing: Tracing,
    command: Sequence[str],
    page: BinaryIO | None,
    covered: tuple[CoverageOutput | None, BinaryIO | None],
    warn: Callable[[str], None],
) -> Consumer:
    """The output that writes them when the run is over; None: there is none of them.

    Args:
        output: what is written besides.
        tracing: the run.
        command: what was run, for the page.
        page: the file of the report, which has what ran as well, if that is counted.
        covered: what is wanted of coverage, and its file.
        warn: is called with what is left out of it.

    Raises:
        KinstError: the image has no debug information, and the format of coverage needs it.
    """
    wanted, file = covered
    ran = None
    if wanted is not None:
        assert tracing.covered is not None, "the request has coverage"
        ran = RunCoverage(*tracing.covered, tracing, wanted.form, warn, has_page=page is not None)
    if page is not None:
        from kinst.runtime.tracing.results.reporting import Reporting

        output = Reporting(output, tracing, page, command, ran)
    if ran is None or wanted is None or file is None:
        return output
    from kinst.runtime.consumer.report.tables import aggregations_of
    from kinst.runtime.tracing.results.coverage_file import WithCoverage

    def forget() -> None:
        tracer = tracing.tracer
        for aggregation in aggregations_of(tracer.clauses) if tracing.request.counts_by_itself else ():
            tracer.totals.mark_printed([aggregation])
            tracer.totals.trunc(aggregation, None)

    return WithCoverage(output, ran, wanted.form, file, forget)
