"""Command lines -> kinst-rewrite, kinst-list and kinst-diff: their options, and what is wrong with them.

What the commands do is imported when the options have been read: numpy, LIEF and the rest take 0.7 s, and neither
--help nor a mistyped option needs them.
"""

import re
import signal
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import click

from kinst.rewriter.command_output import write_lines
from kinst.rewriter.commandline.reporting import (
    METHOD_HELP,
    PATCH_HELP,
    SETTINGS,
    VERSION,
    check_files,
    reported,
    unescaped,
)
from kinst.rewriter.file_name import FileName
from kinst.rewriter.progress import bars
from kinst.targets.errors import UsageError
from kinst.targets.method import Method
from kinst.targets.probe import checked_module

if TYPE_CHECKING:
    from kinst.rewriter.rewriting import Source

_FILE = FileName(path_type=Path)

P = ParamSpec("P")


def _command(run: Callable[P, int]) -> Callable[P, None]:
    """Run a command. Errors are one line each on stderr, with an exit code. SIGTERM cleans up as Ctrl-C does."""

    @wraps(run)
    def wrapper(*arguments: P.args, **options: P.kwargs) -> None:
        signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
        with reported(click.get_current_context().info_name or run.__name__):
            sys.exit(run(*arguments, **options))

    return wrapper


def _source_options(command: Callable[P, None]) -> Callable[P, None]:
    options = (
        click.option("--symbols", type=_FILE, metavar="FILE", help="Names from a System.map, nm's output or ELF."),
        click.option("--debug-file", type=_FILE, metavar="FILE", help="Names from a separate debug file."),
        click.option(
            "--name", "--module", "module", metavar="NAME", help="Call IMAGE NAME in probe names; else as its file."
        ),
        click.option("--include-excluded", is_flag=True, help="Probe functions that DTrace's rules exclude as well."),
        click.option("--quiet", "-q", is_flag=True, help="Do not say what was refused."),
    )
    for option in reversed(options):
        command = option(command)
    return command


_REWRITE_EPILOG = """\b
Examples:
  kinst-rewrite fw_jump.elf --probe fbt:::entry -o p.elf
      the entry of every function
  kinst-rewrite vmlinux --probe kinst::vfs_read: --probe 'fbt::vfs_*:return'
      every instruction of one function, and the returns of several
  kinst-rewrite u-boot.elf --probe 'kinst::0x80000010:' --trampoline-base 0x90000000
      an instruction that has no name; trampolines where the board has RAM
  kinst-rewrite vmlinux --probe kinst::get_current:entry
      where an inline function begins, in all its inlined copies
  kinst-rewrite fw_jump.elf --patch 'sub_14c3e = li a0, 0; ret' --patch '0x14c46+4 = hex:0100' -o stub.elf
      instructions of your own: a function that only returns 0, and two bytes behind an address
  kinst-rewrite fw_jump.elf --standalone --probe fbt:::entry --action record:arg0,time -o alone.elf
      probes that need no handler, for QEMU or a board; kinst-run --read shows what they found
  kinst-rewrite p.elf --restore -o fw_jump.elf
      the original file, to the last byte
"""


@click.command(epilog=_REWRITE_EPILOG, context_settings=SETTINGS)
@click.version_option(**VERSION)
@click.argument("image", type=_FILE)
@click.option(
    "--probe", "-p", "probes", multiple=True, metavar="SPEC", help="provider:module:function:name; repeatable."
)
@click.option("--patch", "patches", multiple=True, metavar="'WHERE = WHAT'", help=PATCH_HELP)
@click.option("--force", is_flag=True, help="A --patch may go on behind the end of its function.")
@click.option("--output", "-o", type=_FILE, metavar="OUT", help="The patched image; else IMAGE with .kinst put in.")
@_source_options
@click.option("--trampoline-base", metavar="ADDR", help="Link address of the trampolines, a multiple of 4096.")
@click.option("--trampoline-symbols", is_flag=True, help="Add symbols kinst$FUNCTION+OFFSET for objdump and gdb.")
@click.option("--method", type=click.Choice([method.value for method in Method]), help=METHOD_HELP)
@click.option("--standalone", is_flag=True, help="Jumps to code that does --action by itself; no handler is needed.")
@click.option("--action", metavar="ACTION", help="count (the default), or record:FIELD,...: arg0, time, registers.")
@click.option("--ring", type=int, metavar="N", help="Records that are kept, a power of two. Default: 4096.")
@click.option(
    "--data-base", metavar="ADDR", help="Counters or ring there, in memory that is zero; else beside the code."
)
@click.option("--strict", is_flag=True, help="Any refused instruction is an error.")
@click.option("--dry-run", "-n", is_flag=True, help="Say what would be done, with every refusal; write nothing.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON on stdout.")
@click.option("--restore", "is_restore", is_flag=True, help="Write the original of a patched IMAGE.")
@_command
def rewrite(image: Path, output: Path | None, *, is_restore: bool, **options: Any) -> int:
    """Put probes into a kernel or firmware IMAGE, an ELF file of amd64, arm64 or riscv64 (or a vmlinuz with one in it).

    The result is the original byte for byte, but for the probed instructions, those of --patch, one program header, and
    what is appended: trampolines and a manifest, which kinst-run reads. A patched IMAGE keeps all that it has.
    """
    check_files(image, options["symbols"], options["debug_file"])
    if is_restore:
        if options["probes"] or options["patches"]:
            raise UsageError("--restore takes no --probe and no --patch: it gives the original back")
        from kinst.rewriter.rewrite_command import restore_image

        restore_image(image, output, bars(unescaped(sys.stderr)))
    else:
        _rewrite(image, output, **options)
    return 0


def _rewrite(path: Path, output: Path | None, *, trampoline_base: str | None, **options: Any) -> None:
    if not options["probes"] and not options["patches"]:
        raise UsageError("no --probe: what shall be probed? (or --patch: what shall be patched?)")
    base, options["alone"] = _address("--trampoline-base", trampoline_base), _alone(options)
    target = output or _default_output(path)
    source = _source(path, options)
    from kinst.rewriter.rewrite_command import rewrite_image

    rewrite_image(source, target, bars(unescaped(sys.stderr)), trampoline_base=base, **options)


_LIST_EPILOG = """\b
Examples:
  kinst-list fw_jump.elf                       every fbt probe
  kinst-list vmlinux 'kinst::vfs_read:'        every instruction of a function that can be probed
  kinst-list vmlinux vfs_read: --disassemble   the same with the instructions, and why some cannot
  kinst-list stripped.elf --symbols System.map fbt::vfs_read:
                                               by names from a file
"""


@click.command("list", epilog=_LIST_EPILOG, context_settings=SETTINGS)
@click.version_option(**VERSION)
@click.argument("image", type=_FILE)
@click.argument("specs", nargs=-1, metavar="[SPEC]...")
@_source_options
@click.option("--disassemble", "-d", is_flag=True, help="Instructions with offset, verdict and reason of refusal.")
@click.option("--jumps", is_flag=True, help="How each site could be a jump, or why not; a summary on stderr.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
@_command
def list_probes(image: Path, specs: tuple[str, ...], **options: Any) -> int:
    """List the probes of an IMAGE, as dtrace -l does, with the ids that they have in every command.

    Without a SPEC: the probes that a patched image has, and all fbt and static probes of another.
    """
    check_files(image, options["symbols"], options["debug_file"])
    source = _source(image, options)
    from kinst.rewriter.list_command import list_image

    list_image(source, specs, bars(unescaped(sys.stderr)), **options)
    return 0


_DIFF_EPILOG = """\b
Example:
  kinst-diff fw_jump.elf p.elf --verbose
Exit code: 0 if every difference is explained, 1 if one is not, 2 for a wrong command line.
"""


@click.command(epilog=_DIFF_EPILOG, context_settings=SETTINGS)
@click.version_option(**VERSION)
@click.argument("original", type=_FILE)
@click.argument("patched", type=_FILE)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "html"]),
    default="text",
    show_default=True,
    help="html: one page for a browser, with each site side by side.",
)
@click.option(
    "-o", "--output", type=_FILE, metavar="FILE", help="Write to FILE, which is replaced when all is written."
)
@click.option("--verbose", "-v", is_flag=True, help="Every site, with its instruction before and after.")
@_command
def diff(original: Path, patched: Path, *, form: str, output: Path | None, verbose: bool) -> int:
    """Explain every byte in which PATCHED differs from ORIGINAL, or say which are UNEXPLAINED.

    Each trampoline is derived again from the original's bytes and compared: the manifest is not trusted.
    """
    check_files(original, patched)
    from kinst.rewriter.diff import compare
    from kinst.rewriter.diff_page import page_lines
    from kinst.rewriter.diff_report import json_lines, text_lines
    from kinst.targets.image import open_image

    progress = bars(unescaped(sys.stderr))
    found = compare(open_image(original), open_image(patched), progress=progress)
    match form:
        case "html":
            lines = page_lines(found, progress=progress)
        case "json":
            lines = json_lines(found, verbose=verbose)
        case _:
            lines = text_lines(found, verbose=verbose)
    write_lines(lines, output)
    return 0 if found.is_explained else 1


def _alone(options: dict[str, Any]) -> dict[str, Any] | None:
    """What --standalone comes with, which is removed from the options; None without it."""
    is_standalone = options.pop("standalone")
    given = {name: options.pop(name) for name in ("action", "ring", "data_base")}
    if not is_standalone:
        for name, value in given.items():
            if value is not None:
                raise UsageError(f"--{name.replace('_', '-')}: is for --standalone")
        return None
    if options["method"] is not None:
        raise UsageError("--method: says how a handler carries on; --standalone needs none")
    data_base = _address("--data-base", given["data_base"])
    return {"action": given["action"] or "count", "ring": given["ring"], "data_base": data_base}


def _address(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(text, 0)
    except ValueError:
        raise UsageError(f"{option} {text}: not an address such as 0x90000000") from None


def _source(path: Path, options: dict[str, Any]) -> "Source":
    """The image that the options of `_source_options` describe. They are removed from `options`."""
    module: str | None = options.pop("module")
    name, equals, file = (module or "").partition("=")
    if equals and not (Path(file).exists() and path.exists() and Path(file).samefile(path)):
        raise UsageError(f"--module {module}: {file} is not the image {path}")
    checked = None if module is None else checked_module(name)
    from kinst.rewriter.rewriting import Source

    return Source(path, checked, options.pop("symbols"), options.pop("debug_file"))


def _default_output(path: Path) -> Path:
    """fw_jump.elf -> fw_jump.kinst.elf, vmlinux -> vmlinux.kinst. Only -o may name the input itself."""
    if ".kinst" in path.name:
        raise UsageError(f"{path}: is a patched image by its name: name the output with -o (the same name changes it)")
    named = re.fullmatch(r"(.+)(\.[A-Za-z][A-Za-z_]*)", path.name)
    return path.parent / (f"{named[1]}.kinst{named[2]}" if named else f"{path.name}.kinst")
