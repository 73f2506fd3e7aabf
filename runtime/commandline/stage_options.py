"""The option of kinst-run for images that the guest itself brings into memory."""

from typing import Final

from kinst.rewriter.commandline.option import option, together
from kinst.rewriter.shell.file_name import TextWithFile
from kinst.runtime.commandline.completion import complete_file
from kinst.runtime.commandline.files import file_of_named

stage_options: Final = together(
    option(
        "--stage",
        "stages",
        group="Machine",
        is_rare=True,
        multiple=True,
        metavar="[NAME=]FILE",
        shell_complete=complete_file,
        type=TextWithFile(file_of_named),
        help="An image that the guest loads, unpacks or copies by itself, such as the kernel that firmware starts. It "
        "is recognized when its code arrives, and has names and probes from then on. A file without headers needs "
        "FILE@ADDRESS, where it is linked. Repeatable.",
        brief="An image that the guest itself loads.",
    ),
)
