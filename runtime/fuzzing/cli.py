"""Command line -> kinst-fuzz."""

import json
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kinst.rewriter.commandline import shared
from kinst.rewriter.commandline.command import Command
from kinst.rewriter.commandline.help import Example
from kinst.rewriter.commandline.option import option
from kinst.rewriter.commandline.reporting import check_files, reported
from kinst.rewriter.shell.file_name import FileName, OutputFile
from kinst.targets.errors import UsageError

if TYPE_CHECKING:
    from kinst.runtime.api import ImageFile
    from kinst.runtime.fuzzing.fuzzer import Finding, Fuzzer
    from kinst.runtime.fuzzing.target import Target

_NAME: Final = "kinst-fuzz"
_WHAT, _HOW = "What is called", "How"
_FOUND: Final = 3  # exit status
_EVERY: Final = 1.0  # seconds from one line of progress to the next
_LARGEST: Final = 1 << 20
_EXAMPLES: Final = (
    Example(
        "kinst-fuzz kernel.elf --call 'parse($data, $size)' --runs 10000", "a parser of the image as it was loaded"
    ),
    Example(
        "kinst-fuzz vmlinux --from shell.snap --call 'kstrtoint($text, 10, {0})'",
        "a function of the kernel that runs in a snapshot",
    ),
)


@click.command(name=_NAME, cls=Command, examples=_EXAMPLES, pages=("docs/guide/calls.md",))
@click.argument("image", type=shared.FILE, metavar="IMAGE")
@option(
    "--call",
    group=_WHAT,
    required=True,
    metavar="'f($data, $size)'",
    help="The function, and what it gets: $data, the address of the input, behind which nothing is mapped; $size, its "
    "bytes; $text, its address with a NUL behind it; and what --call of kinst-run takes.",
    brief="The function: $data, $size or $text is the input.",
)
@option(
    "--from",
    "start",
    group=_WHAT,
    type=FileName(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Call it in the guest of a snapshot (kinst-run --snapshot-at); else in the image as it was loaded.",
    brief="Call it in the guest of a snapshot.",
)
@option(
    "--board", "--machine", "machine", group=_WHAT, metavar="NAME", help="The board; else that of the architecture."
)
@option(
    "--align",
    group=_WHAT,
    type=click.IntRange(1, 4096),
    default=1,
    metavar="N",
    help="Align $data to N bytes, a power of two: then an overrun of less than N may stay unseen.",
    brief="Align $data to N bytes.",
)
@option("--corpus", group=_HOW, type=FileName(path_type=Path), metavar="DIR", help="Inputs to begin with; grows.")
@option("--crashes", group=_HOW, type=FileName(path_type=Path), metavar="DIR", help="Where to keep what crashes it.")
@option(
    "--coverage",
    group=_HOW,
    type=OutputFile(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="At the end, write what all inputs that are kept reach, as kinst-run --coverage: .info, .drcov, .json, .html.",
    brief="Write what the inputs reach: .info, .drcov....",
)
@option("--runs", group=_HOW, type=click.IntRange(1), metavar="N", help="End after N calls.")
@option("--time", "duration", group=_HOW, metavar="T", help="End after so much time: 90 (seconds), 10m.")
@option("--seed", group=_HOW, type=click.IntRange(0), default=0, metavar="N", help="Other random choices; else 0.")
@option(
    "--max-size",
    group=_HOW,
    type=click.IntRange(1, _LARGEST),
    default=4096,
    metavar="N",
    help="The largest input, in bytes; else 4096.",
)
@option("--timeout", group=_HOW, default="10ms", metavar="T", help="A call hangs after this machine time; else 10ms.")
@shared.form(["text", "json"], "text, or json: one object at the end.")
@shared.symbols()
@shared.debug_file()
@shared.quiet("No progress on stderr.")
@shared.verbose("Print the inputs that reach something new, too.")
@shared.version_option()
def fuzz(image: Path, **given: Any) -> None:
    """Call a function of IMAGE with inputs that are changed again and again, and keep those that reach new code.

    Each call begins with the same state. What faults, panics or does not return is made smaller and kept. The same seed
    finds the same. Ctrl-C ends it.

    Exit status: 0 nothing found, 1 error, 2 usage, 3 something crashes or hangs.
    """
    with reported(_NAME):
        check_files(image, given["debug_file"])
        status = _fuzz(image, given)
    if status:
        sys.exit(status)


def _fuzz(path: Path, given: dict[str, Any]) -> int:
    from kinst.runtime.api import open_image
    from kinst.runtime.coverage.output_form import coverage_file
    from kinst.runtime.fuzzing.covered import write_coverage
    from kinst.runtime.fuzzing.fuzzer import Fuzzer
    from kinst.runtime.fuzzing.inputs import make_folder, read_inputs

    if given["align"] & given["align"] - 1:
        raise UsageError(f"--align {given['align']}: is no power of two")
    for folder in (given["corpus"], given["crashes"]):
        if folder is not None:
            make_folder(folder)
    covered = None if given["coverage"] is None else coverage_file(given["coverage"])
    inputs = [] if given["corpus"] is None else read_inputs(given["corpus"], given["max_size"])
    with open_image(path, symbols=given["symbols"], debug_file=given["debug_file"]) as image:
        target, words = _target(image, given)
        fuzzer = Fuzzer(target, inputs, words, given["seed"], given["max_size"])
        status = _run(fuzzer, target, given)
        if covered is not None:
            write_coverage(image, target, _machine(given), fuzzer.progress, covered)
        return status


def _target(image: "ImageFile", given: dict[str, Any]) -> tuple["Target", Sequence[Sequence[bytes]]]:
    from kinst.runtime.fuzzing.dictionary import words_of
    from kinst.runtime.fuzzing.target import Target, target_template
    from kinst.runtime.machine.calling.loading import find_function
    from kinst.runtime.tracing.programs.quantities import seconds_of

    template = target_template(given["call"])
    timeout = int(seconds_of("--timeout", given["timeout"]) * 1e9)
    machine = _machine(given)
    calls = image.sweep(template.function, coverage="", machine=machine).calls
    target = Target(calls, template, given["align"], timeout)
    functions = image.opened.program.functions
    known = dict(zip(functions.names, functions.address.tolist(), strict=True))
    return target, words_of(image.opened, find_function(image.opened.image, template.function, lambda: known))


def _machine(given: dict[str, Any]) -> Any:
    from kinst.runtime.tracing.given import Machine
    from kinst.runtime.tracing.snapshots.reading import header_of

    if given["start"] is None:
        return Machine(board=given["machine"], clock="icount")
    facts = header_of(given["start"]).facts
    return Machine(
        board=given["machine"] or facts.machine,
        start=given["start"],
        cpus=facts.cpus,
        memory=facts.memory,
        clock="icount" if facts.clock == "icount" else "host",
        kaslr_seed=facts.kaslr_seed,
        rng_seed=facts.rng_seed,
        virtio_console=facts.has_virtio_console,
    )


def _run(fuzzer: "Fuzzer", target: "Target", given: dict[str, Any]) -> int:
    """Fuzz, and say what was found. Returns the exit status."""
    from kinst.runtime.tracing.programs.quantities import seconds_of
    from kinst.targets.signals import caught

    seconds = None if given["duration"] is None else seconds_of("--time", given["duration"])
    status = _Status(fuzzer, is_shown=not given["quiet"] and sys.stderr.isatty())
    outcome = _Outcome(target, status, given)
    with caught(lambda _number: target.stop(), signal.SIGINT, signal.SIGTERM):
        fuzzer.run(given["runs"], seconds, outcome.tell)
    status.hide()
    progress = fuzzer.progress
    if outcome.is_text:
        click.echo(
            f"{progress.calls:,} calls: {len(progress.kept):,} inputs that reach something new, "
            f"{progress.edges:,} pairs of blocks, {len(progress.findings):,} that crash or hang"
        )
    else:
        counts = {"calls": progress.calls, "inputs": len(progress.kept), "pairs": progress.edges}
        click.echo(json.dumps(counts | {"findings": outcome.values}, indent=2))
    if not given["quiet"]:
        click.echo(f"{_NAME}: {status.rate():,.0f} calls a second", err=True)
    return _FOUND if progress.findings else 0


class _Outcome:
    """What was found, as it is printed and kept in files."""

    def __init__(self, target: "Target", status: "_Status", given: dict[str, Any]) -> None:
        self._target, self._status = target, status
        self._corpus, self._crashes = given["corpus"], given["crashes"]
        self.is_text, self._is_verbose = given["form"] == "text", given["verbose"]
        self.values: list[dict[str, str]] = []

    def tell(self, found: "bytes | Finding | None") -> None:
        """Called after each call; `found`: an input that reached something new, or one that crashes or hangs."""
        self._status.show()
        match found:
            case None:
                pass
            case bytes():
                self._keep(found)
            case _:
                self._report(found)

    def _keep(self, data: bytes) -> None:
        from kinst.runtime.fuzzing.inputs import keep_input
        from kinst.targets.visible import visible

        if self._is_verbose:
            self._print(f"new: {visible(self._target.shown(data))}")
        if self._corpus is not None:
            keep_input(self._corpus, data)

    def _report(self, found: "Finding") -> None:
        from kinst.runtime.fuzzing.inputs import keep_input

        path = None if self._crashes is None else keep_input(self._crashes, found.data, f"{found.kind[0]}-")
        self.values.append(_value(found, self._target, path))
        self._print(_line(self.values[-1]))

    def _print(self, text: str) -> None:
        if self.is_text:
            self._status.hide()
            click.echo(text)


def _value(found: "Finding", target: "Target", path: Path | None) -> dict[str, str]:
    """A finding: its kind, what happened, the call as kinst-run takes it, and the file that has the input."""
    from kinst.runtime.fuzzing.target import described
    from kinst.targets.visible import visible

    value = {"kind": found.kind[0], "what": described(found.called), "call": visible(target.shown(found.data))}
    return value if path is None else value | {"file": visible(str(path))}


def _line(value: dict[str, str]) -> str:
    kept = f"\n    {value['file']}" if "file" in value else ""
    return f"{value['kind']}: {value['what']}\n    {value['call']}{kept}"


class _Status:
    """The line of progress on a terminal."""

    def __init__(self, fuzzer: "Fuzzer", *, is_shown: bool) -> None:
        self._fuzzer, self._is_shown = fuzzer, is_shown
        self._begun = self._last = time.monotonic()

    def rate(self) -> float:
        """Calls a second so far."""
        return self._fuzzer.progress.calls / max(1e-9, time.monotonic() - self._begun)

    def show(self) -> None:
        """Show it, if it is time for that."""
        now = time.monotonic()
        if self._is_shown and now - self._last >= _EVERY:
            self._last, progress = now, self._fuzzer.progress
            text = f"{progress.calls:,} calls, {self.rate():,.0f}/s, {len(progress.kept)} inputs"
            sys.stderr.write(f"\r\x1b[K{_NAME}: {text}, {progress.edges} pairs, {len(progress.findings)} findings")
            sys.stderr.flush()

    def hide(self) -> None:
        """Leave the line to others."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
