"""The command line -> kinst-inlinecall. Apart from the other commands, which import what takes a second to import:
an answer takes less than that."""

import json
import sys
from pathlib import Path

import click

from kinst.rewriter.command import reported
from kinst.rewriter.inlinecall import inlinecall_lines, inlinecall_values
from kinst.targets.debuginfo.debugfile import find_debug
from kinst.targets.debuginfo.elf_file import open_elf
from kinst.targets.debuginfo.inline_search import InlineSearch
from kinst.targets.errors import ProbeError

_EPILOG = """\b
Examples:
  kinst-inlinecall critical_enter kernel.debug
      where it was inlined: [first address - address behind the last]  where the call stands  function around it
  kinst-inlinecall get_current vmlinux --json
      the same as JSON, with the address at which each copy is entered
  kinst-inlinecall vfs_create vmlinux.stripped --debug-file vmlinux.debug
      debug information in a file apart; one that the build-id or .gnu_debuglink leads to is found without
"""


@click.command(epilog=_EPILOG, context_settings={"max_content_width": 110})
@click.argument("function")
@click.argument("image", type=click.Path(path_type=Path))
@click.option("--debug-file", type=click.Path(path_type=Path), metavar="FILE", help="The debug information of IMAGE.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
def inlinecall(function: str, image: Path, *, debug_file: Path | None, as_json: bool) -> None:
    """List the inlined copies of FUNCTION in IMAGE, a kernel or module with debug information, as inlinecall(1) does.

    These are the places that kinst::FUNCTION:entry and kinst::FUNCTION:return probe.
    """
    with reported("kinst-inlinecall"):
        _list(function, image, debug_file, as_json=as_json)


def _list(function: str, path: Path, debug_file: Path | None, *, as_json: bool) -> None:
    elf = open_elf(path)
    search = InlineSearch(elf, find_debug(elf, debug_file))
    found = search.find(function)
    if not found and not search.exists(function):
        raise ProbeError(f"{function}: no function of that name in the debug information of {path}")
    if as_json:
        click.echo(json.dumps(inlinecall_values(found, search.caller_at), indent=2))
        return
    sys.stdout.writelines(f"{line}\n" for line in inlinecall_lines(found, search.caller_at))
    sys.stdout.flush()
    if not found:
        click.echo(f"kinst-inlinecall: {function}: is not inlined anywhere: probe fbt::{function}:", err=True)
