"""Options of kinst-run that say what an image, its modules and programs, and its processes are called."""

from typing import Final

import click

from kinst.rewriter.commandline import shared
from kinst.rewriter.commandline.option import option, together
from kinst.rewriter.shell.file_name import TextWithFile
from kinst.runtime.commandline.files import file_of_module, file_of_user

name_options: Final = together(
    shared.reading(),
    shared.symbols(),
    shared.debug_file(),
    shared.name(),
    shared.force_code(),
    option(
        "--module",
        "modules",
        group=shared.NAMES,
        is_rare=True,
        metavar="NAME=FILE",
        multiple=True,
        type=TextWithFile(file_of_module),
        help="A kernel module: its types, in D also NAME`type; its probes, which fire when the guest has loaded it. "
        "A folder: modules that programs name are looked for in it.",
        brief="A kernel module, for its types and probes; or a folder of them.",
    ),
    option(
        "--user",
        "users",
        group=shared.NAMES,
        is_rare=True,
        type=TextWithFile(file_of_user),
        metavar="[PATH=]FILE",
        multiple=True,
        help="Program or library of the guest's user mode: its names and frames in ustack() and usym(), and for probes "
        "of uprobe and usdt in PATH of the guest, or in what has the name of FILE there. FILE can be the one with the "
        "names of a PATH that has none.",
        brief="A program of the guest, for its names and probes.",
    ),
    option(
        "-p",
        "pid",
        group=shared.NAMES,
        is_rare=True,
        type=click.IntRange(1, (1 << 31) - 1),
        metavar="PID",
        help="$target is this process of the guest, and probes of uprobe and usdt fire in no other.",
    ),
    option(
        "--exec",
        "executed",
        group=shared.NAMES,
        is_rare=True,
        metavar="PATH",
        help="$target is the current process if that runs PATH of the guest (or a file of this name), else -1; probes "
        "of uprobe and usdt fire in those processes only.",
        brief="$target, uprobe and usdt are of processes that run PATH.",
    ),
    option(
        "--os",
        "system",
        group=shared.NAMES,
        is_rare=True,
        metavar="NAME",
        default="auto",
        show_default=True,
        help="Operating system of the tasks behind pid, execname and the like: linux, none, or auto: what IMAGE is.",
    ),
)
