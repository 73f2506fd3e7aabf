"""Command lines -> kinst-rewrite, kinst-list and kinst-diff. The only file of this package that knows click."""

import json
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Any, ParamSpec

import click
import numpy as np

from kinst.rewriter.command import METHOD_HELP, SETTINGS, VERSION, check_files, reported, unescaped
from kinst.rewriter.diff import compare
from kinst.rewriter.diff_report import json_lines, text_lines
from kinst.rewriter.file_name import FileName
from kinst.rewriter.listing import disassembly_lines, inlined_copies, instruction_rows, probe_lines, probe_values
from kinst.rewriter.outcome_report import lost_lines, outcome_lines, plan_line, plan_value, summary_lines
from kinst.rewriter.plan import make_plan
from kinst.rewriter.progress import bars
from kinst.rewriter.resolve import Resolution, resolve
from kinst.rewriter.restore import restore
from kinst.rewriter.rewriting import Source, listed_probes, open_source
from kinst.rewriter.static_sites import SDT, provider_names, static_records
from kinst.rewriter.write import write_image
from kinst.targets.errors import ManifestError, ProbeError, UsageError
from kinst.targets.image import Image, open_image
from kinst.targets.manifest import Method, find_manifest
from kinst.targets.probe import ProbeName, checked_module, parse_probe_names

_FILE = FileName(path_type=Path)
_LINES = 1 << 14  # written at a time

P = ParamSpec("P")


def _command(run: Callable[P, int]) -> Callable[P, None]:
    """Run a command: errors as one line each on stderr, and its exit code. SIGTERM cleans up as Ctrl-C does."""

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
  kinst-rewrite p.elf --restore -o fw_jump.elf
      the original file, to the last byte
"""


@click.command(epilog=_REWRITE_EPILOG, context_settings=SETTINGS)
@click.version_option(**VERSION)
@click.argument("image", type=_FILE)
@click.option(
    "--probe", "-p", "probes", multiple=True, metavar="SPEC", help="provider:module:function:name; repeatable."
)
@click.option("--output", "-o", type=_FILE, metavar="OUT", help="The patched image; else IMAGE with .kinst put in.")
@_source_options
@click.option("--trampoline-base", metavar="ADDR", help="Link address of the trampolines, a multiple of 4096.")
@click.option("--trampoline-symbols", is_flag=True, help="Add symbols kinst$FUNCTION+OFFSET for objdump and gdb.")
@click.option("--method", type=click.Choice([method.value for method in Method]), help=METHOD_HELP)
@click.option("--strict", is_flag=True, help="Any refused instruction is an error.")
@click.option("--dry-run", "-n", is_flag=True, help="Say what would be done, with every refusal; write nothing.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON on stdout.")
@click.option("--restore", "is_restore", is_flag=True, help="Write the original of a patched IMAGE.")
@_command
def rewrite(image: Path, output: Path | None, *, is_restore: bool, **options: Any) -> int:
    """Put probes into a kernel or firmware IMAGE, an ELF file of amd64, arm64 or riscv64.

    The result is the original byte for byte, but for the probed instructions, one program header, and what is appended:
    trampolines and a manifest, which kinst-run reads. A patched IMAGE gets the new probes beside those it has.
    """
    check_files(image, options["symbols"], options["debug_file"])
    if is_restore:
        return _restore(image, output, options["probes"])
    return _rewrite(image, output, **options)


def _restore(path: Path, output: Path | None, probes: tuple[str, ...]) -> int:
    if probes:
        raise UsageError("--restore takes no --probe: it gives the original back")
    image = open_image(path)
    manifest = find_manifest(image)
    if manifest is None:
        raise ManifestError(f"{path}: is not patched: there is nothing to restore")
    target = output or path.with_name(path.name.replace(".kinst", "", 1))
    if output is None and (target == path or target.exists()):
        raise UsageError(f"{target}: is there already: name the output with -o")
    restore(image, manifest, target, progress=bars(unescaped(sys.stderr)))
    click.echo(f"{target}: restored, SHA-256 {manifest.original_sha256}")
    return 0


def _rewrite(
    path: Path,
    output: Path | None,
    *,
    probes: tuple[str, ...],
    trampoline_base: str | None,
    trampoline_symbols: bool,
    method: str | None,
    strict: bool,
    dry_run: bool,
    as_json: bool,
    include_excluded: bool,
    quiet: bool,
    **source: Any,
) -> int:
    if not probes:
        raise UsageError("no --probe: what shall be probed?")
    base = _address(trampoline_base)
    target = output or _default_output(path)
    progress = bars(unescaped(sys.stderr))
    opened = open_source(_source(path, **source), progress=progress)
    names = _probe_names(probes, opened.program.image)
    resolution = resolve(
        opened.program, names, include_excluded=include_excluded, inlines=opened.inlines(), progress=progress
    )
    _check(resolution, strict=strict)
    plan = make_plan(
        resolution,
        trampoline_base=base,
        earlier=opened.manifest,
        method=None if method is None else Method(method),
        progress=progress,
    )
    if strict and len(plan.lost):
        raise ProbeError("\n".join(lost_lines(resolution, plan)))
    if not as_json and not quiet:
        _tell(summary_lines(resolution, plan.lost, len(plan.manifest.sites)))
    if not as_json and dry_run:
        _write(outcome_lines(resolution, plan))
    if not dry_run:
        write_image(plan, target, trampoline_symbols=trampoline_symbols, progress=progress)
    if as_json:
        click.echo(json.dumps(plan_value(resolution, plan, None if dry_run else target), indent=2))
    else:
        click.echo(plan_line(plan, target, is_written=not dry_run))
    return 0


def _check(resolution: Resolution, *, strict: bool) -> None:
    """ProbeError if a name came to nothing or --strict forbids refusals."""
    errors = [str(outcome.error) for outcome in resolution.outcomes if outcome.error is not None]
    notes = [outcome.note() for outcome in resolution.outcomes if outcome.error is None and outcome.note()]
    if errors or (strict and notes):
        code = max((one.error.exit_code for one in resolution.outcomes if one.error is not None), default=1)
        failure = ProbeError("\n".join([*errors, *(notes if strict else [])]))
        failure.exit_code = code
        raise failure


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(f"{click.get_current_context().info_name}: {line}", err=True)


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
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
@_command
def list_probes(
    image: Path,
    specs: tuple[str, ...],
    *,
    disassemble: bool,
    as_json: bool,
    include_excluded: bool,
    quiet: bool,
    **source: Any,
) -> int:
    """List the probes of an IMAGE, as dtrace -l does, with the ids that they have in every command.

    Without a SPEC: the probes that a patched image has, and all fbt and static probes of another.
    """
    check_files(image, source["symbols"], source["debug_file"])
    progress = bars(unescaped(sys.stderr))
    opened = open_source(_source(image, **source), progress=progress)
    if opened.manifest is not None and not specs:
        _write(_json_array(probe_values(opened.manifest)) if as_json else probe_lines(opened.manifest))
        return 0
    names = _probe_names(specs or _default_specs(opened.program.image, disassemble=disassemble), opened.program.image)
    resolution = resolve(
        opened.program, names, include_excluded=include_excluded, inlines=opened.inlines(), progress=progress
    )
    if disassemble:
        _write(_json_disassembly(resolution) if as_json else disassembly_lines(resolution, _functions(resolution)))
    else:
        _check(resolution, strict=False)
        manifest, rows, lost = listed_probes(opened, resolution, progress)
        if not quiet:
            _tell(summary_lines(resolution, lost, len(manifest.sites)))
        copies = inlined_copies(resolution)
        _write(_json_array(probe_values(manifest, rows, copies)) if as_json else probe_lines(manifest, rows, copies))
    return 0


def _functions(resolution: Resolution) -> list[int]:
    """Rows of the functions that the names chose, refused or not; ProbeError if a name chose none."""
    rows = [outcome.functions for outcome in resolution.outcomes]
    errors = [str(one.error) for one in resolution.outcomes if one.error is not None and not len(one.functions)]
    if errors:
        raise ProbeError("\n".join(errors))
    return [int(row) for row in np.unique(np.concatenate(rows))]


def _json_disassembly(resolution: Resolution) -> Iterator[str]:
    functions, image = resolution.program.functions, resolution.program.image
    return _json_array(
        {
            "function": functions.names[row],
            "address": int(functions.address[row]),
            "size": int(functions.size[row]),
            "instructions": list(instruction_rows(image, resolution.code, row)),
        }
        for row in _functions(resolution)
    )


def _json_array(values: Iterable[dict[str, Any]]) -> Iterator[str]:
    """One value a line: a million are not held in memory."""
    separator = "["
    for value in values:
        yield f"{separator}{json.dumps(value)}"
        separator = ","
    yield "[]" if separator == "[" else "]"


_DIFF_EPILOG = """\b
Example:
  kinst-diff fw_jump.elf p.elf --verbose
Exit code: 0 if every difference is explained, 1 if one is not, 2 for a wrong command line.
"""


@click.command(epilog=_DIFF_EPILOG, context_settings=SETTINGS)
@click.version_option(**VERSION)
@click.argument("original", type=_FILE)
@click.argument("patched", type=_FILE)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--verbose", "-v", is_flag=True, help="Every site, with its instruction before and after.")
@_command
def diff(original: Path, patched: Path, *, form: str, verbose: bool) -> int:
    """Explain every byte in which PATCHED differs from ORIGINAL, or say which are UNEXPLAINED.

    Each trampoline is derived again from the original's bytes and compared: the manifest is not trusted.
    """
    check_files(original, patched)
    found = compare(open_image(original), open_image(patched), progress=bars(unescaped(sys.stderr)))
    if form == "json":
        _write(json_lines(found, verbose=verbose))
    else:
        _write(text_lines(found, verbose=verbose))
    return 0 if found.is_explained else 1


def _write(lines: Iterable[str]) -> None:
    """Lines to stdout in large pieces: a kernel has millions."""
    lines = iter(lines)
    while chunk := list(islice(lines, _LINES)):
        sys.stdout.write("\n".join(chunk) + "\n")
    sys.stdout.flush()


def _probe_names(specs: Iterable[str], image: Image) -> list[ProbeName]:
    providers = provider_names(image)
    return [name for spec in specs for name in parse_probe_names(spec, providers=providers)]


def _default_specs(image: Image, *, disassemble: bool) -> tuple[str, ...]:
    if disassemble:
        return ("kinst:::",)
    return ("fbt:::", f"{SDT}:::") if static_records(image).providers else ("fbt:::",)


def _address(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(text, 0)
    except ValueError:
        raise UsageError(f"--trampoline-base {text}: not an address such as 0x90000000") from None


def _source(path: Path, *, symbols: Path | None, debug_file: Path | None, module: str | None) -> Source:
    name, equals, file = (module or "").partition("=")
    if equals and not (Path(file).exists() and path.exists() and Path(file).samefile(path)):
        raise UsageError(f"--module {module}: {file} is not the image {path}")
    return Source(path, checked_module(name) if module is not None else None, symbols, debug_file)


def _default_output(path: Path) -> Path:
    """fw_jump.elf -> fw_jump.kinst.elf, vmlinux -> vmlinux.kinst. Only -o may name the input itself."""
    if ".kinst" in path.name:
        raise UsageError(f"{path}: is a patched image by its name: name the output with -o (the same name changes it)")
    named = re.fullmatch(r"(.+)(\.[A-Za-z][A-Za-z_]*)", path.name)
    return path.parent / (f"{named[1]}.kinst{named[2]}" if named else f"{path.name}.kinst")
