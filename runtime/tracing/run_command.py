"""The options of kinst-run, checked -> a listing, a dump, or a run."""

import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from kinst.runtime.input.expression import Expression
from kinst.runtime.input.standard_input import NOTICE, StandardInput, connected, standard_input
from kinst.runtime.machine.configuration import End
from kinst.runtime.tracing.host.ending import Ending
from kinst.runtime.tracing.host.limits import Limits
from kinst.runtime.tracing.listing import table
from kinst.runtime.tracing.output_format import Format
from kinst.runtime.tracing.outputs import Consumer, Streams, check_possible, opened, output_of, whole_file
from kinst.runtime.tracing.request import Request
from kinst.runtime.tracing.subject import Subject
from kinst.runtime.tracing.tracing import Tracing, everything
from kinst.targets.errors import GuestError, KinstError, UsageError
from kinst.targets.signals import caught
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.coverage.output_form import CoverageOutput
    from kinst.runtime.tracing.guests.built import Build
    from kinst.runtime.tracing.snapshots.at_probe import SnapshotAt

_NAME = "kinst-run"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options that are not about what is traced: what to do besides or in place of a run, and where output goes."""

    is_list: bool  # -l
    is_check: bool  # -e
    is_dump: bool  # -d
    is_verbose: bool  # -v
    is_quiet: bool  # -q; a program's own pragma says nothing about the command line
    form: Format
    output: Path | None  # None: stdout
    console: Path | None  # the guest's; None: stdout, too, or stderr
    typed: tuple[bytes, ...]  # lines of --input
    prompt: Expression | None  # typed after a console line that matches; None: when the guest waits for input
    takes_standard_input: bool  # whether it may be connected to the guest
    report: Path | None  # the file of --report; None: no report
    command: tuple[str, ...]  # the command line, for the report
    call_each: Path | None = None  # the file of --call-each
    coverage: "CoverageOutput | None" = None


def run(request: Request, limits: Limits, options: RunOptions, build: "Build | None" = None) -> int:
    """Do what the command line asks for. `build` makes the guest of the image; None: one in our machine. Returns the
    exit code.

    Raises:
        KinstError: the image cannot be run, a program is wrong, or the guest stopped for good.
    """
    has_programs = bool(request.programs)
    check_possible(options.form, options.output)
    if options.is_list:
        request.options.set("zdefs", None)  # for -l, a description that matches nothing is a message and not an error
        request = request if has_programs else everything(request)
    tracing = Tracing(request, _warn, subject=None if build is None else _subject(request, build))
    if options.is_dump:
        from kinst.runtime.tracing.sugared import sugared

        click.echo(sugared(tracing), nl=False)
    if options.is_list:
        _list(tracing, options, has_programs=has_programs)
        return 0
    if options.is_check and not has_programs:
        tracing.check()  # of libraries alone
        return 0
    attach_snapshots(tracing)
    enable(tracing, options)
    if options.is_check:
        return 0
    try:
        return _trace(tracing, limits, options)
    finally:
        _tell_unwritten(tracing)


def attach_snapshots(tracing: Tracing) -> None:
    """Tell the actions of --snapshot-at of the guest. Raises UsageError: it is not in our machine."""
    for _, action in _snapshot_actions(tracing):
        if tracing.guest is None:
            raise UsageError("--snapshot-at: there are snapshots of our own machine only, with an image")
        action.attach(tracing.guest.snapshots)


def _tell_unwritten(tracing: Tracing) -> None:
    """Name the snapshots that the run, which is over, did not come to."""
    for description, action in _snapshot_actions(tracing):
        if not action.is_done:
            _warn(f"{action.path}: not written: the run ended before --snapshot-at {description} fired")


def _snapshot_actions(tracing: Tracing) -> "Iterator[tuple[str, SnapshotAt]]":
    """The actions of --snapshot-at, and the probes that they are for."""
    from kinst.runtime.tracing.snapshots.at_probe import SnapshotAt

    return ((one.description, one.call) for one in tracing.request.actions if isinstance(one.call, SnapshotAt))


def attach_shell(tracing: Tracing, output: Consumer) -> None:
    """Tell the action of --shell how to end the run, and what was printed before."""
    if not tracing.request.actions:
        return
    from kinst.runtime.tracing.python.shell import Shell

    finish = tracing.traced.surroundings.host.finish
    for action in tracing.request.actions:
        if isinstance(action.call, Shell):
            action.call.attach(lambda: finish(End.INTERRUPTED), lambda: tracing.tracer.read(output))


def _subject(request: Request, build: "Build") -> Subject:
    from kinst.runtime.tracing.image_subject import ImageSubject

    return ImageSubject(request, None, build)


def _warn(line: str) -> None:
    """Print a warning at once, ahead of output that is still buffered."""
    sys.stderr.write(f"{_NAME}: {line}\n")
    sys.stderr.flush()


def enable(tracing: Tracing, options: RunOptions) -> None:
    """Enable the programs, and print what they matched and what was refused. Raises KinstError."""
    _print_sources(tracing, options)
    for program, count in tracing.enable():
        if not tracing.options.is_on("quiet"):  # read for each program: a pragma may have set it
            click.echo(f"{_NAME}: {program.title} matched {count} probe{'' if count == 1 else 's'}", err=True)
        if options.is_verbose:
            click.echo(tracing.report(program))
    _print_refusals(tracing)
    if tracing.options.is_on("zdefs") and not options.is_quiet:  # a script would say nothing of what it does not see
        for fields, why in tracing.unmatched():
            click.echo(f"{_NAME}: {fields} matches no probe{why and ': '}{why}", err=True)
    if tracing.options.is_on("explain"):
        for line in tracing.explained():
            click.echo(f"{_NAME}: {line}", err=True)


def _list(tracing: Tracing, options: RunOptions, *, has_programs: bool) -> None:
    tracing.check()
    _print_sources(tracing, options)
    providers = tracing.traced.surroundings.providers
    rows = table(providers, tracing.listed(), tracing.matching.argument_types, is_verbose=options.is_verbose)
    sys.stdout.writelines(rows)
    for fields, why in tracing.unmatched() if has_programs else ():
        click.echo(f"{_NAME}: failed to match {fields}: No probe matches description{why and ': '}{why}", err=True)
    _print_refusals(tracing)


def _print_sources(tracing: Tracing, options: RunOptions) -> None:
    if options.is_verbose:
        for line in tracing.type_sources():
            click.echo(f"{_NAME}: {line}", err=True)


def _print_refusals(tracing: Tracing) -> None:
    """Print what was refused, as the other commands do. With -Z, too: it permits descriptions that match nothing, and
    a refused site was matched."""
    if not tracing.options.is_on("quiet"):
        for line in tracing.refusals:
            click.echo(f"{_NAME}: {line}", err=True)


# -- the run ----------------------------------------------------------------------------------------------------------


def _output_of_calls(tracing: Tracing, options: RunOptions, streams: Streams) -> Consumer | None:
    if options.call_each is None:
        return None
    from kinst.runtime.tracing.calls.calling import output_of_calls

    return output_of_calls(options.form, tracing, streams)


def _trace(tracing: Tracing, limits: Limits, options: RunOptions) -> int:
    with ExitStack() as files:
        streams = files.enter_context(opened(options.form, options.output, options.console))
        page, covered = files.enter_context(page_file(options)), files.enter_context(coverage_file(options))
        plain = _output_of_calls(tracing, options, streams) or output_of(options.form, tracing, streams)
        output = with_files(plain, tracing, page, covered, options)
        if tracing.request.call is not None and (options.call_each or tracing.request.start):
            from kinst.runtime.tracing.calls.calling import calling  # few runs call

            files.enter_context(calling(tracing, options.call_each, options.form, streams, plain))
        shown = streams.console or (streams.output if options.form is Format.TEXT else None)  # in JSON, it is quoted
        shows_console = shown is not None and shown.isatty()
        try:
            ending = _run(tracing, output, limits, options, shows_console=shows_console)
        except GuestError as error:
            if output.status is None:
                raise
            _warn(str(error))  # a clause of END called exit(): its status is the one that counts
            return output.status & 0xFF
        if tracing.traced.answer:
            answered = streams.output if options.form.is_appended else streams.console or sys.stderr.buffer
            answered.write(f"{tracing.traced.answer}\n".encode())
    if options.is_verbose or not tracing.options.is_on("quiet"):
        for line in ending.lines(is_verbose=options.is_verbose):
            click.echo(f"{_NAME}: {line}", err=True)
    return status_of(output, ending)


def page_file(options: RunOptions) -> AbstractContextManager[BinaryIO | None]:
    """The file of --report. Entering it raises KinstError if it cannot be written."""
    return nullcontext() if options.report is None else whole_file(options.report)


def coverage_file(options: RunOptions) -> AbstractContextManager[BinaryIO | None]:
    """The file of --coverage. Entering it raises KinstError if it cannot be written."""
    return nullcontext() if options.coverage is None else whole_file(options.coverage.path)


def with_files(
    output: Consumer, tracing: Tracing, page: BinaryIO | None, covered: BinaryIO | None, options: RunOptions
) -> Consumer:
    """The output, with the files of --report and --coverage written beside it. Raises KinstError: the image has no
    lines for --coverage."""
    if page is None and covered is None:
        return output
    from kinst.runtime.tracing.results.files_beside import files_beside  # few runs have any

    return files_beside(output, tracing, options.command, page, (options.coverage, covered), _warn)


def _run(tracing: Tracing, output: Consumer, limits: Limits, options: RunOptions, *, shows_console: bool) -> Ending:
    """Run to the end. `shows_console`: the guest's console goes to a terminal."""
    finish, keyboard = tracing.traced.surroundings.host.finish, tracing.traced.keyboard
    kind = StandardInput.NOTHING if keyboard is None else _standard_input(options, shows_console=shows_console)
    attach_shell(tracing, output)
    running = tracing.start(output, is_live=shows_console or kind is not StandardInput.NOTHING)
    with ExitStack() as stack:
        end = lambda *_: finish(End.INTERRUPTED)  # noqa: E731
        stack.enter_context(caught(end, *_ending_signals()))
        if keyboard is not None:
            keyboard.typist.add(options.typed, options.prompt)
            if (go_on := keyboard.go_on) is not None:  # before the terminal's handler, which passes it on
                stack.enter_context(caught(lambda _number: go_on(), signal.SIGCONT))
            stack.enter_context(connected(kind, keyboard.serial_line, end, _notify))
        if kind is StandardInput.TERMINAL and not tracing.options.is_on("quiet"):
            _warn(NOTICE)
        return running.finish(running.go(limits))


def _standard_input(options: RunOptions, *, shows_console: bool) -> StandardInput:
    """What standard input is to the guest. With --input, a pipe or file is left alone: a script must not depend on what
    its standard input happens to be."""
    kind = standard_input(shows_console=shows_console) if options.takes_standard_input else StandardInput.NOTHING
    return StandardInput.NOTHING if options.typed and kind is StandardInput.STREAM else kind


def _ending_signals() -> list[signal.Signals]:
    """The signals that end the run, SIGHUP among them unless nohup(1) says otherwise."""
    hang_up = [] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [signal.SIGHUP]
    return [signal.SIGINT, signal.SIGTERM, *hang_up]


def _notify(text: str) -> None:
    """Print a notice to the user of the terminal, on a line of its own."""
    sys.stderr.write(f"\n{text}\n")
    sys.stderr.flush()


def status_of(output: Consumer, ending: Ending) -> int:
    """The exit code: the status of the exit() that was consumed, or else the one that the end of the run means."""
    return ending.status if output.status is None else output.status & 0xFF


@contextmanager
def explaining_arguments(image: Path | None, arguments: tuple[str, ...]) -> Iterator[None]:
    """Explains errors of programs without an image: its path may have been misspelt, and was taken for $1."""
    try:
        yield
    except KinstError as error:
        if image is None and arguments and not Path(arguments[0]).exists():
            error.args = (f"{error}\n    {arguments[0]}: there is no such file: it was taken for $1",)
        raise
