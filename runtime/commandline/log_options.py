"""The options of kinst-run that tell of what happens in the machine."""

from pathlib import Path
from typing import Final

from kinst.rewriter.commandline.option import option, together
from kinst.rewriter.shell.file_name import OutputFile

log_options: Final = together(
    option(
        "--log",
        group="Run",
        is_rare=True,
        metavar="KIND[,KIND]...",
        help="Tell of events as they happen: unmodelled (accesses that no device answers), devices (accesses of a "
        "device where it has no register), exceptions (what CPUs take, interrupts included). Like QEMU's -d.",
        brief="Tell of unmodelled, devices, exceptions.",
    ),
    option(
        "--log-file",
        group="Run",
        is_rare=True,
        type=OutputFile(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write the lines of --log there instead of to stderr.",
    ),
)
