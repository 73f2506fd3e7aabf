"""Command line -> kinst-run: how its options are combined. The options themselves: commandline/options.py."""

import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kinst.rewriter.commandline.code_range import parse_code_range
from kinst.rewriter.commandline.command import Command
from kinst.rewriter.commandline.reporting import check_files, reported, unescaped
from kinst.rewriter.shell.file_name import TextWithFile
from kinst.rewriter.shell.progress import bars, silent
from kinst.runtime.commandline.call_options import call_options, with_clock_of_calls
from kinst.runtime.commandline.completion import complete_file
from kinst.runtime.commandline.coverage_options import coverage_options, coverage_output
from kinst.runtime.commandline.files import file_of_image, file_of_user, user_parts
from kinst.runtime.commandline.gdb_options import gdb_options
from kinst.runtime.commandline.learn_options import learn_options
from kinst.runtime.commandline.log_options import log_options
from kinst.runtime.commandline.name_options import name_options
from kinst.runtime.commandline.options import (
    ABSENT,
    END_ON_PANIC,
    EXAMPLES,
    PROGRAMS,
    REPEATED,
    SWITCHES,
    VALUES,
    console_options,
    d_options,
    machine_options,
    output_options,
    parameter,
    run_options,
)
from kinst.runtime.commandline.shell_options import shell_actions, shell_options
from kinst.runtime.commandline.snapshot_options import snapshot_actions, snapshot_options, with_machine_of_snapshot
from kinst.runtime.commandline.stage_options import stage_options
from kinst.runtime.commandline.values import disk, loaded, modules, prompt, seconds, size, stage, typed
from kinst.runtime.dlang.options import OptionError, Options
from kinst.runtime.dlang.syntax.language import VERSION
from kinst.runtime.machine.configuration import ClockKind, Configuration, mapped
from kinst.runtime.tracing.host.limits import Limits, limits
from kinst.runtime.tracing.host.log_request import log_request
from kinst.runtime.tracing.output_format import Format
from kinst.runtime.tracing.programs.program_text import Origin, ProgramText, read_script
from kinst.runtime.tracing.request import Request
from kinst.runtime.userspace.target import target
from kinst.runtime.userspace.user_file import UserFile
from kinst.targets.errors import KinstError, MachineError, UsageError
from kinst.targets.method import Method
from kinst.targets.packed.reading import AS_IT_SAYS, Reading, reading_of
from kinst.targets.probe import checked_module
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.debugger.address import DebuggerAddress
    from kinst.runtime.readout.memory import Source
    from kinst.runtime.tracing.guests.built import Build
    from kinst.runtime.tracing.host.learn_request import LearnRequest
    from kinst.runtime.tracing.run_command import RunOptions

_NAME: Final = "kinst-run"
READING: Final = ("raw", "entry", "payload")  # options: what the user says of a file that does not say it itself
_OF_IMAGES: Final = (
    "machine",
    "on",
    "memory",
    "append",
    "initrd",
    "dtb",
    "loads",
    "disks",
    "until",
    "call",
    "call_each",
    "debug_file",
    "force_code",
    "modules",
    "stages",
    "users",
    "pid",
    "executed",
    "input",
    *READING,
    "log",
    "learn",
    "gdb",
    "start",
    "snapshots",
    "shell",
)  # options
# Options that --read cannot use.
_OF_RUNS: Final = frozenset(_OF_IMAGES) - {"machine", "debug_file", "force_code", "modules", *READING}


_OF_CALLS: Final = frozenset(one.value for one in (Format.TEXT, Format.JSON, Format.JSONL, Format.CSV))
_LAST_READING: Final = 1.0  # second behind --wall-timeout, for what a stub has found up to then


class _Ordered(Command):
    """Remembers the order of the options: the clauses of a probe run in the order of their programs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            raise click.UsageError("no image and no program: give an IMAGE, or a program with -n or -s", ctx)
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        ctx.meta[_NAME] = [parameter.name for parameter in order]
        ctx.meta[f"{_NAME}.words"] = list(args)
        return super().parse_args(ctx, args)


@click.command(
    name=_NAME,
    cls=_Ordered,
    examples=EXAMPLES,
    pages=("docs/cookbook/index.md", "docs/guide/ends.md"),
    absent=ABSENT,
)
@click.argument(
    "words", metavar="[IMAGE] [ARG]...", nargs=-1, type=TextWithFile(file_of_image, 1), shell_complete=complete_file
)
@d_options
@output_options
@name_options
@machine_options
@console_options
@run_options
@call_options
@gdb_options
@log_options
@learn_options
@stage_options
@snapshot_options
@shell_options
@coverage_options
@click.pass_context
def run(ctx: click.Context, /, words: tuple[str, ...], **given: Any) -> None:  # one for each option
    """Run a kernel or firmware image, emulated, and D programs when probes fire.

    IMAGE is an ELF file, or a Linux kernel as it is installed (vmlinuz), or a raw binary (--raw) and the like. What the
    programs need is patched in memory. Without a program, an image that kinst-rewrite patched fires its own probes, and
    any other just runs. The options of one letter are those of dtrace(1); programs can be given several times.

    Exit status: what exit() said, or what the guest gave when it switched itself off; 1 error, 2 usage, 3 no line
    matched --until, 4 the guest's kernel panicked, 5 the guest cannot go on, 6 it waits for ever; else 0.

    Standard input is the guest's serial line, if it is a pipe, a file, or a terminal that shows the guest's console.
    There, Ctrl-A x ends the run, and Ctrl-A h shows the other keys.
    """
    with reported(_NAME):
        if given["is_version"]:
            from importlib.metadata import version  # a tenth of the time that --help takes

            click.echo(f"{_NAME} {version('kinst-rewrite')}, D {VERSION}")
            return
        if given["board_from"] is not None:
            click.echo(_board_from(given["board_from"]), nl=False)
            return
        given = with_clock_of_calls(ctx, with_machine_of_snapshot(ctx, given))
        image, arguments = _image_and_arguments(words, given)
        check_files(image, given["debug_file"], *map(file_of_user, given["users"]))
        request = _request(ctx, image, arguments, given)
        if given["csv_safe"] and given["form"] != Format.CSV.value:
            raise UsageError(f"--csv-safe: is for --format csv, and this is {given['form']}")
        if given["lossless"] and given["on"] is None:
            raise UsageError("--lossless: nothing is lost in our own machine: it is for --on")
        if given["read"] is None and given["every"] is not None:
            raise UsageError("--every: there is nothing to read again: give --read")
        _check_calls(given)
        bounds = limits(seconds(given, "timeout"), seconds(given, "wall-timeout"), given["until"])
        status = _run(request, bounds, given, ctx.meta[f"{_NAME}.words"])
    if status:
        sys.exit(status)


def _check_calls(given: dict[str, Any]) -> None:
    """Check that there is a call to be made for each line, and one place that shows it. Raises UsageError."""
    if given["call_each"] is None:
        return
    what = f"--call-each {given['call_each']}"
    if given["call"] is None:
        raise UsageError(f"{what}: give the function with --call, such as --call 'f($1, $2)'")
    if given["is_top"] or given["form"] not in _OF_CALLS:
        where = "--top" if given["is_top"] else f"--format {given['form']}"
        raise UsageError(f"{what}: {where} does not show calls: use --format text, json, jsonl or csv")
    if given["form"] == Format.CSV.value and any(given[parameter(origin)] for origin in PROGRAMS):
        raise UsageError(f"{what}: --format csv has the calls or what programs record: use json or jsonl for both")


def _board_from(path: Path) -> str:
    """The text of a board file for a device tree."""
    from kinst.runtime.machine.boards.from_tree import board_from

    try:
        return board_from(bytes(mapped("--board-from", path)), path.name)
    except MachineError as error:
        raise MachineError(f"--board-from {path}: {error}") from None


def _run(request: Request, bounds: Limits, given: dict[str, Any], words: Sequence[str]) -> int:
    """Run the command. The imports here take some time, so they wait until the command line is known to be
    right, and that the image has the functions which it names."""
    from kinst.runtime.tracing.misspelled import checked

    build = _build(request, given)
    request = checked(request, is_lenient=given["is_list"] or given["is_dump"])
    from kinst.runtime.tracing.run_command import RunOptions, explaining_arguments, run

    options = RunOptions(
        is_list=given["is_list"],
        is_check=given["is_check"],
        is_dump=given["is_dump"],
        is_verbose=given["is_verbose"],
        is_quiet=given["d_quiet"],
        form=Format(given["form"]),
        output=given["output"],
        console=given["console"],
        typed=typed(given["input"]),
        prompt=prompt(given),
        report=given["report"],
        coverage=coverage_output(given, request.image),
        command=(_NAME, *words),
        call_each=given["call_each"],
        takes_standard_input=given["shell"] is None
        and request.call is None
        and "-" not in given[parameter(Origin.SCRIPT)],
    )
    if given["is_top"]:
        return _watch(request, bounds, options, given)
    if build is not None:
        return run(request, bounds, options, build)
    with explaining_arguments(request.image, request.arguments):
        return run(request, bounds, options)


def _watch(request: Request, bounds: Limits, options: "RunOptions", given: dict[str, Any]) -> int:
    from kinst.runtime.top.command import watch

    if given["read"] is not None:
        raise UsageError("--top: --read runs nothing that could be watched")
    return watch(request, bounds, options)


def _build(request: Request, given: dict[str, Any]) -> "Build | None":
    """What builds the guest, if it is not in our machine, and not watched."""
    if given["is_top"]:
        return None
    if given["read"] is not None:
        return _readout(request, given)
    if request.on is None:
        return None
    from kinst.runtime.live.building import by_signal, live_building

    return live_building(request, by_signal)


def _readout(request: Request, given: dict[str, Any]) -> "Build":
    """The builder of the guest for --read."""
    from kinst.runtime.readout.building import ReadoutBuilding

    unused = [name for name in _OF_RUNS if given[name] not in (None, ())]
    if unused:
        raise UsageError(f"--read runs nothing: --{min(unused).replace('_', '-')} is for an image that runs")
    if request.image is None:
        raise UsageError("--read: give the standalone IMAGE whose memory it is")
    wall = seconds(given, "wall-timeout")
    end = math.inf if wall is None else time.monotonic() + wall
    source, interval = _source(given["read"], end + _LAST_READING), seconds(given, "every")
    if interval is not None and not source.is_live:
        raise UsageError(f"--every {given['every']}: a core stays as it is: it is for gdb:, qmp: and FILE@ADDRESS")
    return ReadoutBuilding(source, None if interval is None else int(interval * 1e9), end)


def _source(text: str, end: float) -> "Source":
    if text.startswith("qmp:"):
        from kinst.runtime.live.elsewhere import QmpSource

        return QmpSource(text)
    from kinst.runtime.readout.sources import source_of

    return source_of(text, end)


@dataclass(frozen=True, slots=True)
class _Setting:
    """An option of D that the command line sets. `what` is how it is spelled there."""

    name: str
    value: str | None
    what: str


def _options(order: list[str], given: dict[str, Any]) -> Options:
    """The options of D, set in the order of the command line: the last value counts."""
    options = Options()
    left = {f"d_{name}": _settings(flag, name, given) for flag, (name, *_) in (_NAMED | {"-x": ("x",)}).items()}
    for name in order:
        settings = left.get(name)
        if settings:
            _set(options, settings.pop(0))
    return options


_NAMED: Final[dict[str, tuple[str, ...]]] = {**SWITCHES, **VALUES, **REPEATED}


def _settings(flag: str, parameter: str, given: dict[str, Any]) -> list[_Setting]:
    """The options of D that one option of the command line sets, once for each time that it is given."""
    value = given[f"d_{parameter}"]
    if parameter == "x":
        parts = [text.partition("=") for text in value]
        return [_Setting(name, rest if equals else None, f"-x {name}") for name, equals, rest in parts]
    if isinstance(value, bool):
        return [_Setting(parameter, None, flag)] if value else []
    values = value if isinstance(value, tuple) else () if value is None else (value,)
    return [_Setting(parameter, one, f"{flag} {one}") for one in values]


def _set(options: Options, setting: _Setting) -> None:
    try:
        options.set(setting.name, setting.value)
    except OptionError as error:
        raise KinstError(f"failed to set {setting.what}: {error.why}") from error


def _programs(order: list[str], given: dict[str, Any]) -> list[ProgramText]:
    """Programs in the order of the command line."""
    left = {parameter(origin): (origin, list(given[parameter(origin)])) for origin in PROGRAMS}
    programs = []
    for origin, texts in (left[name] for name in order if name in left):
        text = texts.pop(0)
        programs.append(read_script(text) if origin is Origin.SCRIPT else ProgramText(origin, text, text))
    return programs


def _reading(given: dict[str, Any]) -> Reading:
    texts = [given[name] for name in READING]
    return reading_of(*texts) if any(text is not None for text in texts) else AS_IT_SAYS


def _image_and_arguments(words: tuple[str, ...], given: dict[str, Any]) -> tuple[Path | None, tuple[str, ...]]:
    """The first word is the image, `-` for none. If there is a program and nothing that needs an image, a word that is
    no file is the program's argument, unless it looks like the path of an image."""
    if not words or words[0] == "-":
        return None, words[1:]
    path = Path(words[0])
    has_program = any(given[parameter(origin)] for origin in PROGRAMS)
    needs_image = any(given[name] not in (None, ()) for name in _OF_IMAGES) or given["is_list"]
    if path.exists() or not has_program or needs_image or path.suffix == ".elf" or "/" in words[0]:
        return path, words[1:]
    return None, words


def _request(ctx: click.Context, image: Path | None, arguments: tuple[str, ...], given: dict[str, Any]) -> Request:
    options = _options(ctx.meta[_NAME], given)
    programs = _programs(ctx.meta[_NAME], given)
    learn, machine = _learn(given)
    beside = (*map(loaded, given["loads"]), *map(stage, given["stages"]))
    named_modules, module_folders = modules(given["modules"])
    return Request(
        image=image,
        programs=tuple(programs),
        actions=(*snapshot_actions(given), *shell_actions(given)),
        arguments=arguments,
        options=options,
        configuration=Configuration(
            cpus=given["cpus"],
            memory=size(given["memory"]),
            clock=ClockKind(given["clock"]),
            command_line=given["append"],
            initrd=None if given["initrd"] is None else mapped("--initrd", given["initrd"]),
            kaslr_seed=given["kaslr_seed"],
            device_tree=None if given["dtb"] is None else mapped("--dtb", given["dtb"]),
            files=tuple(one.loaded for one in beside if one.loaded is not None),
            disks=tuple(disk(text) for text in given["disks"]),
            rng_seed=given["rng_seed"],
            has_virtio_console=given["has_virtio_console"],
            counts_instructions=given["gdb"] is not None or given["call_each"] is not None,
        ),
        machine=machine,
        on=given["on"],
        is_lossless=given["lossless"],
        system=given["system"],
        call=given["call"],
        is_called_each=given["call_each"] is not None,
        method=None if given["method"] is None else Method(given["method"]),
        reading=_reading(given),
        name=None if given["name"] is None else checked_module(given["name"]),
        symbols=given["symbols"],
        debug_file=given["debug_file"],
        code=tuple(parse_code_range(text) for text in given["force_code"]),
        users=tuple(UserFile(file, path) for path, file in map(user_parts, given["users"])),
        target=target(given["pid"], given["executed"]),
        modules=named_modules,
        module_folders=module_folders,
        beside=beside,
        records_time=Format(given["form"]).records_time or given["report"] is not None,
        records_tasks=Format(given["form"]).records_tasks or given["report"] is not None,
        records_hits=given["report"] is not None,
        ends_on_panic=given["on_panic"] == END_ON_PANIC,
        csv_is_safe=given["csv_safe"],
        progress=silent if given["d_quiet"] else bars(unescaped(sys.stderr)),
        log=log_request(given["log"], given["log_file"]),
        learn=learn,
        gdb=_gdb(given["gdb"], image, given["call"]),
        start=given["start"],
        coverage=None if (covered := coverage_output(given, image)) is None else covered.request,
        is_verbose=given["is_verbose"],
    )


def _gdb(text: str | None, image: Path | None, call: str | None) -> "DebuggerAddress | None":
    """Where a debugger is awaited."""
    if text is None:
        return None
    if image is None or call is not None:
        raise UsageError(f"--gdb {text}: is for an IMAGE that boots" + (", and not for --call" if call else ""))
    from kinst.runtime.debugger.address import debugger_address

    return debugger_address(text)


def _learn(given: dict[str, Any]) -> tuple["LearnRequest | None", str | None]:
    """What is to be learned, and the board."""
    if given["learn"] is None:
        return None, given["machine"]
    from kinst.runtime.tracing.host.learn_request import learn_request

    return learn_request(given["learn"], given["machine"])
