"""The options of kinst-run for coverage, and what they mean together."""

from pathlib import Path
from typing import Any, Final

from kinst.rewriter.commandline.option import Choice, option, together
from kinst.rewriter.shell.file_name import OutputFile
from kinst.runtime.coverage.document import DEFAULT_GRANULARITY, Granularity
from kinst.runtime.coverage.output_form import CoverageForm, CoverageOutput, form_of
from kinst.targets.errors import UsageError

_RUN: Final = "Run"
# Options that it cannot have beside it, and why.
_NOT_WITH: Final = {
    "read": "nothing runs",
    "gdb": "a debugger goes back and forth",
    "is_top": "it is for a run to its end",
    "is_list": "nothing runs",
}

coverage_options: Final = together(
    option(
        "--coverage",
        group=_RUN,
        type=OutputFile(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write what ran of the images' code to FILE, replaced at the end of the run: .info is lcov, with lines of "
        "the source and counts (genhtml shows it), .drcov what Ghidra, IDA and Lighthouse read, without counts, .json "
        "all functions and blocks with counts (kinst-diff compares and adds them up), .html a page with "
        "functions, and the source line by line. Programs in user mode are left out. With or without D programs, also "
        "with --call.",
        brief="Which code ran: FILE.info, .drcov, .json or .html.",
    ),
    option(
        "--coverage-format",
        group=_RUN,
        is_rare=True,
        type=Choice([one.value for one in CoverageForm]),
        metavar="FORMAT",
        help="lcov, drcov, json or html, whatever FILE's name ends with.",
    ),
    option(
        "--coverage-of",
        group=_RUN,
        is_rare=True,
        type=Choice([one.value for one in Granularity]),
        default=DEFAULT_GRANULARITY.value,
        show_default=True,
        metavar="WHAT",
        help="List functions, their blocks, or each instruction. lcov and html have lines and functions in any case.",
    ),
)


def coverage_output(given: dict[str, Any], image: Path | None) -> CoverageOutput | None:
    """The file of --coverage; None: there is none. Raises UsageError."""
    path: Path | None = given["coverage"]
    if path is None:
        if given["coverage_format"] is not None:
            raise UsageError(f"--coverage-format {given['coverage_format']}: is for --coverage FILE")
        return None
    if image is None:
        raise UsageError(f"--coverage {path}: is of an IMAGE's code, and there is none")
    for name, why in _NOT_WITH.items():
        if given[name]:
            raise UsageError(f"--coverage {path}: not with --{name.removeprefix('is_')}: {why}")
    if given["method"] == "jump":
        raise UsageError(f"--coverage {path}: not with --method jump, which puts jumps into the code")
    form = form_of(path) if given["coverage_format"] is None else CoverageForm(given["coverage_format"])
    has_lines = form in (CoverageForm.LCOV, CoverageForm.HTML)
    granularity = Granularity.BLOCKS if has_lines else Granularity(given["coverage_of"])
    return CoverageOutput(path, form, granularity)
