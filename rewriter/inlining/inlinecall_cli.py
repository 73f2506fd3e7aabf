"""The command line -> kinst-inlinecall: its options and its output. What finds an answer is imported when it is
needed."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from kinst.rewriter.commandline import shared
from kinst.rewriter.commandline.command import Command
from kinst.rewriter.commandline.help import Example
from kinst.rewriter.commandline.option import option
from kinst.rewriter.commandline.reporting import check_files, reported
from kinst.rewriter.shell.wording import counted
from kinst.targets.errors import ImageError, UsageError

_FEW: Final = 8  # damaged units that are named without --verbose
_EXAMPLES: Final = (
    Example(
        "kinst-inlinecall get_current vmlinux",
        "where it was inlined: [first address - address after the last]  where the call stands  function around it",
    ),
    Example(
        "kinst-inlinecall get_current vmlinux --format json",
        "the same as JSON, with the address at which each copy is entered",
    ),
    Example(
        "kinst-inlinecall vfs_create vmlinux.stripped --debug-file vmlinux.debug",
        "debug information in a file apart; one that the build-id or .gnu_debuglink leads to is found without",
    ),
)


@click.command(cls=Command, examples=_EXAMPLES, pages=("docs/cookbook/functions.md",))
@click.argument("function")
@click.argument("image", type=shared.FILE, required=False, metavar="IMAGE")
@shared.debug_file()
@shared.form(["text", "json"], "text, as of inlinecall(1), or json.")
@shared.quiet("No remarks on stderr.")
@shared.verbose("Name each damaged unit, not only the first.")
@option(
    "--no-cache",
    group=shared.OUTPUT,
    is_flag=True,
    help="Neither read nor keep answers in ~/.cache/kinst-rewrite/inlinecall.",
)
@shared.version_option()
def inlinecall(
    function: str, image: Path | None, *, debug_file: Path | None, form: str, quiet: bool, verbose: bool, no_cache: bool
) -> None:
    """List the inlined copies of FUNCTION in IMAGE, a kernel or module with debug information, as inlinecall(1) does.

    These are the places that kinst::FUNCTION:entry and kinst::FUNCTION:return probe.
    """
    with reported("kinst-inlinecall"):
        image = _checked_image(function, image)
        check_files(image, debug_file)
        from kinst.rewriter.inlining.inlinecall import inlinecall_lines
        from kinst.rewriter.inlining.inlinecall_answer import find_answer

        values, damage = find_answer(function, image, debug_file, use_cache=not no_cache)
        if form == "json":
            click.echo(json.dumps(values, indent=2))
        else:
            sys.stdout.writelines(f"{line}\n" for line in inlinecall_lines(values))
        sys.stdout.flush()
        if damage:
            raise ImageError("\n".join(_damage_lines(damage, len(damage) if verbose else _FEW)))
        if not values and form == "text" and not quiet:
            click.echo(f"kinst-inlinecall: {function}: is not inlined anywhere: probe fbt::{function}:", err=True)


def _checked_image(function: str, image: Path | None) -> Path:
    """The image. Raises UsageError if a file stands where the function's name belongs."""
    usage = "kinst-inlinecall [OPTIONS] FUNCTION IMAGE"
    if image is None:
        missing = "FUNCTION" if Path(function).is_file() else "IMAGE"
        raise UsageError(f"{missing}: is missing: {usage}")
    if Path(function).is_file() and not image.exists():
        raise UsageError(f"{function}: is a file, in the place of the function: {usage}: {image} comes first")
    return image


def _damage_lines(damage: Sequence[str], count: int) -> list[str]:
    """The errors of the first damaged units, and how many more there are."""
    left = len(damage) - count
    return [*damage[:count], *([counted(left, "more damaged unit")] if left > 0 else [])]
