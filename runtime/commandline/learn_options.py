"""The options of kinst-run that learn what a board lacks."""

from pathlib import Path
from typing import Final

from kinst.rewriter.commandline.option import option, together
from kinst.rewriter.shell.file_name import OutputFile

learn_options: Final = together(
    option(
        "--learn",
        group="Machine",
        is_rare=True,
        type=OutputFile(path_type=Path, dir_okay=False),
        metavar="FILE.toml",
        help="Where the guest polls a register that nobody models, find what leaves its loop, let it read that, and "
        "keep it in FILE.toml, a board file that extends --board. If FILE.toml is there, go on with it.",
        brief="Find what leaves polls of unknown registers.",
    ),
)
