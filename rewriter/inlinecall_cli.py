"""The command line -> kinst-inlinecall: its options and its output. What finds an answer is imported to find one."""

import json
import sys
from pathlib import Path

import click

from kinst.rewriter.commandline.reporting import SETTINGS, VERSION, check_files, reported
from kinst.rewriter.file_name import FileName
from kinst.rewriter.wording import counted
from kinst.targets.errors import ImageError

_TOLD = 8  # damaged units that are named
_EPILOG = """\b
Examples:
  kinst-inlinecall get_current vmlinux
      where it was inlined: [first address - address behind the last]  where the call stands  function around it
  kinst-inlinecall get_current vmlinux --json
      the same as JSON, with the address at which each copy is entered
  kinst-inlinecall vfs_create vmlinux.stripped --debug-file vmlinux.debug
      debug information in a file apart; one that the build-id or .gnu_debuglink leads to is found without
"""


@click.command(epilog=_EPILOG, context_settings=SETTINGS)
@click.version_option(**VERSION)
@click.argument("function")
@click.argument("image", type=FileName(path_type=Path))
@click.option("--debug-file", type=FileName(path_type=Path), metavar="FILE", help="The debug information of IMAGE.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
@click.option("--no-cache", is_flag=True, help="Neither read nor keep answers in ~/.cache/kinst-rewrite/inlinecall.")
def inlinecall(function: str, image: Path, *, debug_file: Path | None, as_json: bool, no_cache: bool) -> None:
    """List the inlined copies of FUNCTION in IMAGE, a kernel or module with debug information, as inlinecall(1) does.

    These are the places that kinst::FUNCTION:entry and kinst::FUNCTION:return probe.
    """
    with reported("kinst-inlinecall"):
        check_files(image, debug_file)
        from kinst.rewriter.inlinecall import inlinecall_lines
        from kinst.rewriter.inlinecall_answer import find_answer

        values, damage = find_answer(function, image, debug_file, use_cache=not no_cache)
        if as_json:
            click.echo(json.dumps(values, indent=2))
        else:
            sys.stdout.writelines(f"{line}\n" for line in inlinecall_lines(values))
        sys.stdout.flush()
        if damage:
            raise ImageError("\n".join([*damage[:_TOLD], *_untold(len(damage) - _TOLD)]))
        if not values and not as_json:
            click.echo(f"kinst-inlinecall: {function}: is not inlined anywhere: probe fbt::{function}:", err=True)


def _untold(count: int) -> list[str]:
    return [counted(count, "more damaged unit")] if count > 0 else []
