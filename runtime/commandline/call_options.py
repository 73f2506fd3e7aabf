"""The options of kinst-run that call functions many times."""

from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from kinst.rewriter.commandline.option import option, together
from kinst.rewriter.shell.file_name import FileName
from kinst.runtime.machine.configuration import ClockKind

call_options: Final = together(
    option(
        "--call-each",
        group="Run",
        is_rare=True,
        type=FileName(path_type=Path, dir_okay=False, allow_dash=True),
        metavar="FILE",
        help="Make the call of --call for each line of FILE (- is standard input), each from the same state: that of "
        'the image as it was loaded, or of --from. A line has arguments: 1, "text", hex"00ff", {u32 1, "text"}; '
        "$1 or $NAME in --call is what it says in that column, and the first line may name columns. --timeout is of "
        "each call (default: 100ms). Prints results, faults and instructions.",
        brief="Make the call for each line of FILE.",
    ),
)


def with_clock_of_calls(ctx: click.Context, given: dict[str, Any]) -> dict[str, Any]:
    """The options, with a clock by which calls do the same each time, unless one was given."""
    is_given = given["start"] is not None or ctx.get_parameter_source("clock") is ParameterSource.COMMANDLINE
    return given if given["call_each"] is None or is_given else given | {"clock": ClockKind.ICOUNT.value}
