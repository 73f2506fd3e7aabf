"""The command line -> kinst-inlinecall. Apart from the other commands, which import what takes a second to import:
an answer takes less than that."""

import json
import sys
from pathlib import Path

import click

from kinst.rewriter.command import SETTINGS, VERSION, check_files, reported
from kinst.rewriter.file_name import FileName
from kinst.rewriter.inlinecall import inlinecall_lines, inlinecall_values
from kinst.rewriter.inlinecall_cache import KeptAnswers, Values
from kinst.rewriter.wording import counted
from kinst.targets.debuginfo.debugfile import find_debug
from kinst.targets.debuginfo.elf_file import ElfFile, open_elf
from kinst.targets.debuginfo.inline_search import InlineSearch
from kinst.targets.errors import ImageError, ManifestError, ProbeError
from kinst.targets.manifest_seal import SECTION, opened

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
        values, damage = _found(function, image, debug_file, use_cache=not no_cache)
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


def _check_manifest(elf: ElfFile) -> None:
    """That of a patched image is not needed, but a file that is damaged there may be so elsewhere."""
    for section in elf.sections:
        if section.name == SECTION:
            try:
                opened(elf.data[section.offset : section.offset + section.size].data)
            except ManifestError as error:
                raise ManifestError(f"{elf.path}: {error}") from error


def _found(function: str, path: Path, debug_file: Path | None, *, use_cache: bool) -> tuple[Values, tuple[str, ...]]:
    """What is known of a function, and what is wrong with units that may know more."""
    elf = open_elf(path)
    kept = KeptAnswers(elf, debug_file) if use_cache else None
    known = None if kept is None else kept.read(function)
    if known is not None:
        return known, ()
    _check_manifest(elf)
    debug = find_debug(elf, debug_file)
    search = InlineSearch(elf, debug)
    matching = search.find_readable(function)
    if not matching.found and not matching.damage and not search.exists(function):
        raise ProbeError(f"{function}: no function of that name in the debug information of {path}")
    values = inlinecall_values(matching.found, search.caller_at)
    if kept is not None and not matching.damage:
        kept.write(function, values, debug.path)
    return values, matching.damage
