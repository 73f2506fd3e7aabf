"""What a fuzzer has kept -> what all of it runs of the image, in a machine that counts that."""

from kinst.rewriter.shell.fresh_file import replaced_file
from kinst.runtime.api import ImageFile
from kinst.runtime.coverage.command import lines_of
from kinst.runtime.coverage.output_form import CoverageOutput
from kinst.runtime.coverage.writing import coverage_bytes
from kinst.runtime.fuzzing.fuzzer import Progress
from kinst.runtime.fuzzing.target import Target
from kinst.runtime.tracing.given import Machine


def write_coverage(
    image: ImageFile, target: Target, machine: Machine, progress: Progress, wanted: CoverageOutput
) -> None:
    """Call the function with each input again, and write the file.

    Raises:
        KinstError: the image has no debug information, and the format needs it.
        OSError: the file cannot be written.
    """
    inputs = [*progress.kept, *(finding.data for finding in progress.findings)]
    calls = [target.call_of(data) for data in inputs]
    sweep = image.sweep(target.function, coverage="", machine=machine, counts_code=True)
    for call in calls:
        sweep.calls.call(call, target.timeout)
    with replaced_file(wanted.path) as file:
        file.writelines(coverage_bytes(sweep.ran(), wanted.form, lines_of))
