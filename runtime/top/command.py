"""kinst-run --top: a request -> a run that is watched on a screen, and a summary when it is over."""

import sys
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

import click

from kinst.runtime.consumer.output import TextOutput
from kinst.runtime.machine.configuration import ClockKind, End
from kinst.runtime.top.door import Door
from kinst.runtime.top.guest_run import Copied, GuestRun
from kinst.runtime.top.machines import LiveMachine, OwnMachine, WatchedMachine
from kinst.runtime.top.sample import Sample
from kinst.runtime.top.scrollback import Notes, Scrollback
from kinst.runtime.tracing.host.limits import Limits
from kinst.runtime.tracing.images.preparing import source_of
from kinst.runtime.tracing.output_format import Format
from kinst.runtime.tracing.outputs import Consumer, opened_file
from kinst.runtime.tracing.programs.program_text import Origin, ProgramText
from kinst.runtime.tracing.request import Request
from kinst.runtime.tracing.run_command import RunOptions, enable, page_file, status_of, with_files
from kinst.runtime.tracing.subject import Subject
from kinst.runtime.tracing.tracing import Tracing
from kinst.targets.errors import KinstError, UsageError
from kinst.targets.image import open_to_run
from kinst.targets.manifest.packed import find_manifest

_NAME: Final = "kinst-run"
_FUNCTIONS: Final = "fbt:::entry { @calls[probefunc] = count(); }"
_OWN_PROBES: Final = "fbt:::,kinst:::,sdt::: { @hits[probefunc, probename] = count(); }"
_SUMMED_UP: Final = 10  # rows


def check_screen(request: Request, options: RunOptions) -> None:
    """Check, before anything is loaded, that a screen is possible. Raises KinstError."""
    if request.image is None:
        raise UsageError("--top: there is nothing to watch: give an IMAGE")
    if options.is_list or options.is_check or options.is_dump or options.form is not Format.TEXT:
        raise UsageError("--top: shows a run on a screen: not with -l, -e, -d or --format")
    if not all(stream is not None and stream.isatty() for stream in (sys.__stdin__, sys.__stderr__)):
        raise UsageError("--top: needs a terminal; without one: -n 'fbt:::entry { @[probefunc] = count(); }'")
    try:
        import textual  # noqa: F401
    except ImportError as error:
        raise KinstError(
            f"--top: needs the Python package textual ({error}): pip install 'kinst-rewrite[tui]'"
        ) from None


def watch(request: Request, limits: Limits, options: RunOptions) -> int:
    """Run and show it. Returns the exit code. Raises KinstError: it cannot run, or the guest stopped for good."""
    check_screen(request, options)
    has_programs = bool(request.programs)
    if not has_programs:
        request = replace(request, programs=(_default(request),))
    notes, stops = Notes(_to_stderr), _Stops()
    tracing = Tracing(request, notes.line, subject=_subject(request, stops))
    enable(tracing, options)
    console, printed = Scrollback(), Scrollback()
    with ExitStack() as files:
        output_file = None if options.output is None else files.enter_context(opened_file(options.form, options.output))
        console_file = None if options.console is None else files.enter_context(options.console.open("wb"))
        copied = Copied(console, console_file)
        shown = TextOutput(Copied(printed, output_file), notes, tracing.tracer, console=copied)
        output = with_files(shown, tracing, files.enter_context(page_file(options)), None, options)
        run = _run(
            tracing, output, limits, options, (console, printed), notes, "key" if has_programs else "function", stops
        )
    if has_programs and output_file is None:
        sys.stdout.writelines(f"{line}\n" for line in printed.lines()[:-1])
    elif run.sample is not None and not has_programs:
        _sum_up(run.sample)
    if run.error is not None:
        raise run.error
    assert run.ending is not None, "it ends well or not"
    is_left = run.is_left and run.ending.end is End.INTERRUPTED
    for line in () if is_left else run.ending.lines(is_verbose=True):
        click.echo(f"{_NAME}: {line}", err=True)
    return status_of(output, run.ending)


def _default(request: Request) -> ProgramText:
    """The program if the user gave none: it counts the calls of all functions, or the hits of a patched image's
    probes."""
    patched = find_manifest(open_to_run(source_of(request).path, reading=request.reading))
    text = _FUNCTIONS if patched is None else _OWN_PROBES
    return ProgramText(Origin.NAME, text, text)


def _to_stderr(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _run(
    tracing: Tracing,
    output: Consumer,
    limits: Limits,
    options: RunOptions,
    printed: tuple[Scrollback, Scrollback],
    notes: Notes,
    key: str,
    stops: "_Stops",
) -> GuestRun:
    from kinst.runtime.top.screen import Titles, TopScreen

    machine = _machine(tracing)
    keyboard = tracing.traced.keyboard
    assert keyboard is not None, "there is an image"
    keyboard.typist.add(options.typed, options.prompt)
    run = GuestRun(tracing, machine, output, limits)
    stops.pause_by(run.door)
    prepared = machine.prepared
    has_two_clocks = prepared.request.configuration.clock is not ClockKind.HOST
    titles = Titles(prepared.request.name or prepared.path.name, machine.name, key, has_two_clocks)
    notes.hold()
    try:
        TopScreen(run, titles, *printed).run()
    finally:
        run.stop()
        notes.release()
    return run


class _Stops:
    """D's stop() under QEMU: pauses the guest as the key does. The door is made after the guest."""

    def __init__(self) -> None:
        self._door: Door | None = None

    def pause_by(self, door: Door) -> None:
        self._door = door

    def __call__(self) -> str:
        if self._door is not None:
            self._door.pause()
        return "p lets it go on"


def _subject(request: Request, stops: _Stops) -> Subject | None:
    """What programs are compiled against if QEMU runs the image; None: our own machine does."""
    if request.on is None:
        return None
    from kinst.runtime.live.building import live_building  # few runs need it
    from kinst.runtime.tracing.image_subject import ImageSubject

    return ImageSubject(request, None, live_building(request, stops))


def _machine(tracing: Tracing) -> WatchedMachine:
    if tracing.guest is not None:
        return OwnMachine(tracing.guest)
    from kinst.runtime.live.building import LiveTraced

    assert isinstance(tracing.traced, LiveTraced), "there is no other"
    return LiveMachine(tracing.traced)


def _sum_up(sample: Sample) -> None:
    """Print the rows with the highest counts, and how long the run took."""
    table = sample.tables[0]
    total, rows = sum(table.values.values()), sorted(table.values.items(), key=lambda row: row[1], reverse=True)
    click.echo(
        f"{total:,} hits of {len(rows):,} probes in {sample.time / 1e9:,.1f} s of the guest's time, "
        f"{sample.wall / 1e9:,.1f} s of the host's"
    )
    for key, value in rows[:_SUMMED_UP]:
        click.echo(f"{value:>12,} {value / total:>6.1%}  {key}")
