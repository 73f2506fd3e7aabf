"""Options that several commands have, which mean the same in all of them: decorators."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from kinst.rewriter.commandline.option import Choice, Decorator, option, together
from kinst.rewriter.shell.file_name import FileName, OutputFile

FILE: Final = FileName(path_type=Path)
WRITTEN: Final = OutputFile(path_type=Path)
NAMES: Final = "Names"
OUTPUT: Final = "Output"
HELP: Final = "Help"


def symbols() -> Decorator:
    """--symbols."""
    text = "Names for code: a System.map, the output of nm or objdump -t, Ghidra's CSV, IDA's MAP, or ELF."
    brief = "Names for code: System.map, nm, Ghidra, IDA, ..."
    return option("--symbols", group=NAMES, type=FILE, metavar="FILE", help=text, brief=brief)


def debug_file() -> Decorator:
    """--debug-file."""
    text = "A separate file with debug information and symbols."
    return option("--debug-file", group=NAMES, type=FILE, metavar="FILE", help=text)


def reading() -> Decorator:
    """--raw, --entry and --payload."""
    return together(
        option(
            "--raw",
            group=NAMES,
            metavar="MACHINE[@ADDR]",
            help="IMAGE has no header: it is memory of this machine (amd64, arm64 or riscv64), loaded at ADDR; Intel "
            "HEX and S-records have addresses themselves.",
            brief="IMAGE has no header, and is loaded at ADDR.",
        ),
        option(
            "--entry",
            group=NAMES,
            is_rare=True,
            metavar="ADDR",
            help="Where such an IMAGE starts; else at its first byte, or where its records say.",
            brief="Where such an IMAGE starts.",
        ),
        option(
            "--payload",
            group=NAMES,
            is_rare=True,
            metavar="NAME",
            help="Which of the images in a U-Boot or firmware file; the error that asks for it lists them.",
            brief="Which of the images in a file of several.",
        ),
    )


def name() -> Decorator:
    """--name."""
    text = "What IMAGE is called in probes; else as its file."
    return option("--name", group=NAMES, is_rare=True, metavar="NAME", help=text)


def force_code() -> Decorator:
    """--force-code."""
    return option(
        "--force-code",
        group=NAMES,
        multiple=True,
        is_rare=True,
        metavar="RANGE",
        help="START-END is code, although nothing vouches for it or something says that it is data; a function begins "
        "at START. Repeatable.",
        brief="START-END is code, whatever it looks like.",
    )


def form(choices: Sequence[str], says: str) -> Decorator:
    """--format."""
    return option(
        "--format",
        "form",
        group=OUTPUT,
        type=Choice(choices),
        metavar="FORMAT",
        default=choices[0],
        help=says,
    )


def csv_safe() -> Decorator:
    """--csv-safe."""
    return option(
        "--csv-safe",
        group=OUTPUT,
        is_flag=True,
        is_rare=True,
        help="Put an apostrophe before texts in CSV that a spreadsheet would take for formulas: those that begin with "
        "= + - or @.",
    )


def quiet(says: str = "No remarks and no progress on stderr.") -> Decorator:
    """-q."""
    return option("--quiet", "-q", group=OUTPUT, is_flag=True, help=says)


def verbose(says: str) -> Decorator:
    """-v."""
    return option("--verbose", "-v", group=OUTPUT, is_flag=True, help=says)


def version_option() -> Decorator:
    """--version."""
    text = "Show the version and exit."
    return option(
        "--version",
        "-V",
        group=HELP,
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_version,
        help=text,
    )


def _show_version(ctx: click.Context, _option: click.Parameter, is_wanted: bool) -> None:  # noqa: FBT001  click's own
    if is_wanted and not ctx.resilient_parsing:
        from importlib.metadata import version  # a tenth of the time that --help takes

        click.echo(f"{ctx.info_name} {version('kinst-rewrite')}")
        ctx.exit()
