"""Command lines -> kinst-rewrite, kinst-list and kinst-diff: their options, and what is wrong with them.

The code of a command is imported when its options have been read: numpy, LIEF and the rest take 0.7 s, and neither
--help nor a mistyped option needs them.
"""

import re
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec

import click

from kinst.rewriter.commandline import shared
from kinst.rewriter.commandline.apart import NamedFile, check_files_of
from kinst.rewriter.commandline.code_range import parse_code_range
from kinst.rewriter.commandline.command import Command
from kinst.rewriter.commandline.help import Example
from kinst.rewriter.commandline.option import Choice, option, together
from kinst.rewriter.commandline.probe_completion import complete_description
from kinst.rewriter.commandline.reporting import METHOD_HELP, PATCH_HELP, check_files, reported, unescaped
from kinst.rewriter.commandline.shared import FILE, OUTPUT, WRITTEN
from kinst.rewriter.shell.command_output import write_lines
from kinst.rewriter.shell.file_name import OutputFile
from kinst.rewriter.shell.fresh_file import replaced_file
from kinst.rewriter.shell.progress import Progress, bars, silent
from kinst.targets.errors import UsageError
from kinst.targets.method import Method
from kinst.targets.packed.reading import AS_IT_SAYS, reading_of
from kinst.targets.probe import checked_module
from kinst.targets.signals import exit_on_termination

if TYPE_CHECKING:
    from kinst.rewriter.rewriting import Source

_PAGES: Final = ("docs/cookbook/index.md", "README.md")
_PROBES: Final = "Probes"
_ALONE: Final = "Images that need no handler"
_TWO_RUNS: Final = "Two runs in place of two images"
_REPLACES_IMAGE: Final = OutputFile(path_type=Path, replaces="image")
_NAMED: Final = {"--module": "it is --name"}
_REFUSED: Final = "List each refused instruction, with its reason."

P = ParamSpec("P")


def _command(run: Callable[P, int]) -> Callable[P, None]:
    """Run a command. Errors are one line each on stderr, with an exit code. SIGTERM cleans up as Ctrl-C does."""

    @wraps(run)
    def wrapper(*arguments: P.args, **options: P.kwargs) -> None:
        exit_on_termination()
        with reported(click.get_current_context().info_name or run.__name__):
            sys.exit(run(*arguments, **options))

    return wrapper


def _progress(*, quiet: bool) -> Progress:
    return silent if quiet else bars(unescaped(sys.stderr))


_image = click.argument("image", type=FILE)
_names = together(
    shared.reading(),
    shared.symbols(),
    shared.debug_file(),
    shared.name(),
    shared.force_code(),
)
_excluded = option(
    "--include-excluded",
    group=_PROBES,
    is_flag=True,
    is_rare=True,
    help="Probe functions that DTrace's rules exclude as well.",
)
_REWRITE_EXAMPLES: Final = (
    Example("kinst-rewrite fw_jump.elf --probe fbt:::entry -o p.elf", "the entry of every function"),
    Example(
        "kinst-rewrite vmlinux --probe kinst::vfs_read: --probe 'fbt::vfs_*:return'",
        "every instruction of one function, and the returns of several",
    ),
    Example("kinst-rewrite p.elf --restore -o fw_jump.elf", "the original file, to the last byte"),
    Example(
        "kinst-rewrite u-boot.elf --probe 'kinst::0x80000010:' --trampoline-base 0x90000000",
        "an instruction that has no name; trampolines where the board has RAM",
    ),
    Example(
        "kinst-rewrite vmlinux --probe kinst::get_current:entry",
        "where an inline function begins, in all its inlined copies",
    ),
    Example(
        "kinst-rewrite fw_jump.elf --patch 'sub_14c3e = li a0, 0; ret' --patch '0x14c46+4 = hex:0100' -o stub.elf",
        "instructions of your own: a function that only returns 0, and two bytes at an address",
    ),
    Example(
        "kinst-rewrite fw_jump.elf --standalone --probe fbt:::entry --action record:arg0,time --ring 256 -o alone.elf",
        "probes that need no handler, for QEMU or a board; kinst-run --read shows what they found",
    ),
)


@click.command(cls=Command, examples=_REWRITE_EXAMPLES, pages=_PAGES, absent=_NAMED | {"-n": "it is --dry-run"})
@_image
@option(
    "--probe",
    "-p",
    "probes",
    group=_PROBES,
    multiple=True,
    metavar="SPEC",
    shell_complete=complete_description,
    help="provider:module:function:name; repeatable.",
)
@_excluded
@option("--strict", group=_PROBES, is_flag=True, help="Any refused instruction is an error.")
@option(
    "--method",
    group=_PROBES,
    type=Choice([method.value for method in Method]),
    metavar="METHOD",
    help=METHOD_HELP,
    brief=f"How instructions are run: {', '.join(method.value for method in Method)}.",
)
@option("--trampoline-base", group=_PROBES, metavar="ADDR", help="Link address of the trampolines, a multiple of 4096.")
@option(
    "--trampoline-symbols",
    group=_PROBES,
    is_flag=True,
    is_rare=True,
    help="Add symbols kinst$FUNCTION+OFFSET for objdump and gdb.",
)
@_names
@option(
    "--patch",
    "patches",
    group="Instructions of your own",
    multiple=True,
    metavar="'WHERE = WHAT'",
    help=PATCH_HELP,
    brief="'f+0x10 = nop; ret', 'f = hex:90c3'; repeatable.",
)
@option(
    "--force",
    group="Instructions of your own",
    is_flag=True,
    help="A --patch may go on past the end of its function.",
)
@option("--standalone", group=_ALONE, is_flag=True, help="Jumps to code that does --action by itself.")
@option(
    "--action",
    group=_ALONE,
    metavar="ACTION",
    help="count (the default), or record:FIELD,...: arg0, time, registers.",
    brief="count, or record:arg0,time,registers,....",
)
@option(
    "--ring",
    group=_ALONE,
    type=int,
    metavar="N",
    help="Records that are kept, a power of two. Default: 4096.",
    brief="Records that are kept, a power of two.",
)
@option(
    "--data-base",
    group=_ALONE,
    metavar="ADDR",
    help="Counters or ring there, in memory that is zero; else beside the code.",
    brief="Where counters or ring are; else beside the code.",
)
@option(
    "--stays",
    group=_ALONE,
    is_flag=True,
    is_rare=True,
    help="IMAGE has relocations, and does not copy itself elsewhere.",
)
@option(
    "--output",
    "-o",
    group=OUTPUT,
    type=_REPLACES_IMAGE,
    metavar="OUT",
    help="The new image; else IMAGE with .kinst put in.",
)
@option("--dry-run", group=OUTPUT, is_flag=True, help="Write nothing; say what would be done, and refused.")
@option("--restore", "is_restore", group=OUTPUT, is_flag=True, help="Write the original of a patched IMAGE.")
@shared.form(["text", "json"], "How to report what was done: text or json.")
@shared.quiet()
@shared.verbose(_REFUSED)
@shared.version_option()
@_command
def rewrite(image: Path, output: Path | None, *, is_restore: bool, **options: Any) -> int:
    """Put probes into a kernel or firmware IMAGE, an ELF file of amd64, arm64 or riscv64 (or a vmlinuz with one in it).

    A raw binary (--raw), Intel HEX, S-records and FIT images are written as what they are: docs/guide/image-files.md.

    The result is the original byte for byte, but for the probed instructions, those of --patch, one program header, and
    what is appended: trampolines and a manifest, which kinst-run reads. A patched IMAGE keeps all that it has.
    """
    check_files(image, options["symbols"], options["debug_file"])
    progress = _progress(quiet=options["quiet"])
    if is_restore:
        if options["probes"] or options["patches"]:
            raise UsageError("--restore takes no --probe and no --patch: it gives the original back")
        from kinst.rewriter.rewrite_command import restore_image

        restore_image(image, output, progress)
    else:
        _rewrite(image, output, progress, **options)
    return 0


def _rewrite(
    path: Path, output: Path | None, progress: Progress, *, trampoline_base: str | None, form: str, **options: Any
) -> None:
    if not options["probes"] and not options["patches"]:
        raise UsageError("no --probe: what shall be probed? (or --patch: what shall be patched?)")
    base, options["alone"] = _address("--trampoline-base", trampoline_base), _alone(options)
    target = output or _default_output(path)
    if output is None:
        check_files_of(click.get_current_context(), NamedFile("the output", target))
    source = _source(path, options, options["probes"])
    from kinst.rewriter.rewrite_command import RewriteOptions, rewrite_image

    asked = RewriteOptions(trampoline_base=base, as_json=form == "json", **options)
    rewrite_image(source, target, asked, progress)


_LIST_EXAMPLES: Final = (
    Example("kinst-list fw_jump.elf", "every fbt probe"),
    Example("kinst-list vmlinux 'kinst::vfs_read:'", "every instruction of a function that can be probed"),
    Example(
        "kinst-list vmlinux vfs_read: --disassemble", "the same with the instructions, and why some cannot be probed"
    ),
    Example("kinst-list stripped.elf --symbols System.map fbt::vfs_read:", "by names from a file"),
)


@click.command(
    "list", cls=Command, examples=_LIST_EXAMPLES, pages=_PAGES, absent=_NAMED | {"-d": "it is --disassemble"}
)
@_image
@click.argument("specs", nargs=-1, metavar="[SPEC]...", shell_complete=complete_description)
@_excluded
@_names
@option("--disassemble", group=OUTPUT, is_flag=True, help="Instructions with offset, verdict and reason of refusal.")
@option("--jumps", group=OUTPUT, is_flag=True, help="How each site could be a jump, or why not.")
@shared.form(["text", "json"], "text, in the columns of dtrace -l, or json.")
@shared.quiet()
@shared.verbose(_REFUSED)
@shared.version_option()
@_command
def list_probes(image: Path, specs: tuple[str, ...], *, form: str, **options: Any) -> int:
    """List the probes of an IMAGE, as dtrace -l does, with the ids that they have in every command.

    Without a SPEC: the probes that a patched image has, and all fbt and static probes of another.
    """
    check_files(image, options["symbols"], options["debug_file"])
    source = _source(image, options, specs)
    from kinst.rewriter.list_command import ListOptions, list_image

    list_image(source, specs, ListOptions(as_json=form == "json", **options), _progress(quiet=options["quiet"]))
    return 0


_DIFF_EXAMPLES: Final = (
    Example("kinst-diff fw_jump.elf p.elf --verbose", "every site, with its instruction before and after"),
    Example("kinst-diff fw_jump.elf p.elf --format html -o diff.html", "both side by side, for a browser"),
    Example("kinst-diff --runs a.json b.json", "what two runs did differently (kinst-run --coverage a.json)"),
    Example("kinst-diff before.folded after.folded -o diff.svg", "what takes more, and what less, in a flame graph"),
)


@click.command(cls=Command, examples=_DIFF_EXAMPLES, pages=_PAGES)
@click.argument("original", type=FILE)
@click.argument("others", metavar="PATCHED", nargs=-1, type=FILE)
@shared.form(["text", "json", "html"], "text, json, or html: one page for a browser, with each site side by side.")
@option(
    "-o", "--output", group=OUTPUT, type=WRITTEN, metavar="FILE", help="Write to FILE, replaced when all is written."
)
@option(
    "--runs",
    "is_runs",
    group=_TWO_RUNS,
    is_flag=True,
    help="The files are JSON of kinst-run --coverage: compare the runs. Functions that only one called, counts that "
    "differ, and where the order parts in which functions first ran; with -o FILE.svg as a flame graph of the second.",
)
@option(
    "--sum",
    "is_sum",
    group=_TWO_RUNS,
    is_flag=True,
    help="The files, one or more, are JSON of kinst-run --coverage, of the same images: add the runs up, and write "
    "-o FILE: .json, .info (lcov), .drcov or .html.",
)
@shared.quiet("Only the verdict, and no progress on stderr.")
@shared.verbose("Every site, with its instruction before and after.")
@shared.version_option()
@_command
def diff(
    original: Path,
    others: tuple[Path, ...],
    *,
    form: str,
    output: Path | None,
    quiet: bool,
    verbose: bool,
    **kind: bool,
) -> int:
    """Explain every byte in which PATCHED differs from ORIGINAL, or say which are UNEXPLAINED.

    Each trampoline is derived again from the original's bytes and compared: the manifest is not trusted.

    Two files of folded stacks (.folded) give a flame graph of the second one, as SVG: red is what has a greater part
    of the whole than in the first.

    Exit code: 0 if every difference is explained, 1 if one is not, 2 for a wrong command line; with --runs 0 if both
    runs did the same, else 1.
    """
    if kind["is_sum"]:
        return _sum((original, *others), output, is_alone=not kind["is_runs"])
    if not others:
        raise UsageError("PATCHED: is missing: kinst-diff [OPTIONS] ORIGINAL PATCHED")
    if len(others) > 1:
        raise UsageError(f"{others[1]}: two files are compared, and this is one more: any number are for --sum")
    (patched,) = others
    if kind["is_runs"]:
        return _runs((original, patched), form, output)
    check_files(original, patched)
    if original.suffix == patched.suffix == ".folded":
        return _stacks(original, patched, output)
    from kinst.rewriter.diffing.diff import compare
    from kinst.rewriter.diffing.diff_page import diff_page_lines
    from kinst.rewriter.diffing.diff_report import json_lines, text_lines, verdict
    from kinst.targets.image import open_image

    progress = _progress(quiet=quiet)
    after = open_image(patched)
    before = open_image(original, reading=AS_IT_SAYS if after.container is None else after.container.reading)
    found = compare(before, after, progress=progress)
    match form:
        case "html":
            lines = diff_page_lines(found, progress=progress)
        case "json":
            lines = json_lines(found, verbose=verbose)
        case _:
            lines = iter([verdict(found)]) if quiet else text_lines(found, verbose=verbose)
    write_lines(lines, output)
    return 0 if found.is_explained else 1


def _sum(files: tuple[Path, ...], output: Path | None, *, is_alone: bool) -> int:
    """Add runs up: the runtime's, as in `_stacks`."""
    if not is_alone:
        raise UsageError("--sum: not with --runs: one command does one thing")
    if output is None:
        raise UsageError("--sum: give -o FILE, with a name that ends with .json, .info, .drcov or .html")
    content = b"".join(import_module("kinst.runtime.coverage.command").summed(files, output))
    with replaced_file(output) as file:
        file.write(content)
    return 0


def _runs(files: tuple[Path, Path], form: str, output: Path | None) -> int:
    """Compare two runs: the runtime's as well."""
    command = import_module("kinst.runtime.coverage.command")
    if form == "html":
        raise UsageError("--format html: is for two images; --runs has text, json, and -o FILE.svg")
    is_picture = output is not None and output.suffix == ".svg"
    lines, is_same = command.differing(*files, "svg" if is_picture else form)
    write_lines(lines, output)
    return 0 if is_same else 1


def _stacks(before: Path, after: Path, output: Path | None) -> int:
    """Draw what differs in two profiles. Pictures are the runtime's, which is found by name as `entry` does it."""
    difference = import_module("kinst.runtime.consumer.pictures.flame_difference").difference
    picture = b"".join(difference(before, after)).decode("utf-8", "backslashreplace")
    write_lines(iter(picture.splitlines()), output)
    return 0


def _alone(options: dict[str, Any]) -> dict[str, Any] | None:
    """What --standalone implies, which is removed from the options; None without it."""
    is_standalone = options.pop("standalone") or options["method"] == Method.JUMP
    given = {name: options.pop(name) for name in ("action", "ring", "data_base")}
    if not is_standalone:
        for name, value in (*given.items(), ("stays", options["stays"] or None)):
            if value is not None:
                raise UsageError(f"--{name.replace('_', '-')}: is for --standalone")
        return None
    if options["method"] not in (None, Method.JUMP):
        raise UsageError(
            f"--method {options['method']}: says how a handler resumes the guest, and --standalone has none"
        )
    options["method"] = None
    data_base = _address("--data-base", given["data_base"])
    return {"action": given["action"] or "count", "ring": given["ring"], "data_base": data_base}


def _address(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(text, 0)
    except ValueError:
        raise UsageError(f"{option} {text}: not an address such as 0x90000000") from None


def _source(path: Path, options: dict[str, Any], specs: Sequence[str]) -> "Source":
    """The image that the options `_names` describe, in which `specs` are wanted. The options are removed.

    Raises:
        ProbeError: it certainly has no function of such a name; to find that out takes a fraction of all that follows.
    """
    given: str | None = options.pop("name")
    name, equals, file = (given or "").partition("=")
    if equals and not (Path(file).exists() and path.exists() and Path(file).samefile(path)):
        raise UsageError(f"--name {given}: {file} is not the image {path}")
    checked = None if given is None else checked_module(name)
    code = tuple(parse_code_range(text) for text in options.pop("force_code"))
    reading = reading_of(*(options.pop(name) for name in ("raw", "entry", "payload")))
    symbols, debug_file, own = options.pop("symbols"), options.pop("debug_file"), None
    if symbols is None and debug_file is None:
        from kinst.rewriter.unknown_functions import refuse_unknown

        own = refuse_unknown(path, checked, specs, reading)
    from kinst.rewriter.rewriting import Source

    return Source(path, checked, symbols, debug_file, code, own, reading)


def _default_output(path: Path) -> Path:
    """fw_jump.elf -> fw_jump.kinst.elf, vmlinux -> vmlinux.kinst. Only -o may name the input itself."""
    if ".kinst" in path.name:
        raise UsageError(f"{path}: is a patched image by its name: name the output with -o (the same name changes it)")
    named = re.fullmatch(r"(.+)(\.[A-Za-z][A-Za-z_]*)", path.name)
    return path.parent / (f"{named[1]}.kinst{named[2]}" if named else f"{path.name}.kinst")
