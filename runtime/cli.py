"""Command line -> kinst-run. The only file of this package that knows click."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kinst.rewriter.commandline.reporting import METHOD_HELP, SETTINGS, check_files, reported
from kinst.rewriter.file_name import FileName
from kinst.runtime.dlang.options import OptionError, Options
from kinst.runtime.dlang.syntax.language import VERSION
from kinst.runtime.machine.configuration import ClockKind, Configuration, FileAt
from kinst.runtime.machine.disk import Disk, DiskMode, open_disk
from kinst.runtime.tracing.limits import Limits, limits, pattern
from kinst.runtime.tracing.output_format import Format
from kinst.runtime.tracing.program_text import Origin, ProgramText, read_script
from kinst.runtime.tracing.request import Request
from kinst.targets.errors import ImageError, KinstError, UsageError
from kinst.targets.method import Method
from kinst.targets.probe import checked_module

if TYPE_CHECKING:
    from kinst.runtime.tracing.built import Build

_NAME: Final = "kinst-run"
_SIZES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_UNITS: Final = {
    "": 1.0, "s": 1.0, "sec": 1.0, "ms": 1e-3, "msec": 1e-3, "us": 1e-6, "usec": 1e-6, "m": 60.0, "min": 60.0,
    "h": 3600.0,
}  # fmt: skip
_OF_IMAGES: Final = (
    "machine",
    "memory",
    "append",
    "initrd",
    "dtb",
    "loads",
    "disks",
    "until",
    "call",
    "debug_file",
    "modules",
    "users",
    "input",
)  # options
_OF_RUNS: Final = frozenset(_OF_IMAGES) - {"machine", "debug_file", "modules"}  # what --read has no use for
_FILE: Final = FileName(path_type=Path, dir_okay=False)
_PROGRAMS: Final = {
    Origin.SCRIPT: ("FILE", "Run the D program in FILE; - is standard input. Words behind IMAGE are its $1, $2, ..."),
    Origin.NAME: (
        "PROGRAM",
        "Run a D program given here: 'fbt::f:entry /arg0/ { trace(arg0); }', or only names of probes.",
    ),
    Origin.FUNCTION: ("FUNC", "Enable probes of functions: [[provider:]module:]function, with or without a clause."),
    Origin.MODULE: ("MOD", "Enable probes of modules: [provider:]module."),
    Origin.PROVIDER: ("PROV", "Enable all probes of a provider."),
    Origin.IDENTIFIER: ("ID", "Enable the probe with this identifier, as -l shows it."),
}
_SWITCHES: Final = {  # option of the command line: option of D, what it does
    "-q": ("quiet", "Print only what the program prints."),
    "-w": ("destructive", "Permit actions that change the guest or the host: copyout, system, chill, ..."),
    "-Z": ("zdefs", "Permit descriptions that match no probe."),
    "-F": ("flowindent", "Indent by function entry and return."),
    "-C": ("cpp", "Run cpp over the programs first."),
    "-H": ("cpphdrs", "Let cpp print the names of the files it includes."),
}
_VALUES: Final = {
    "-b": ("bufsize", "SIZE", "Size of the trace buffer of each CPU, e.g. 4m; without it no record is dropped."),
    "-X": ("stdc", "MODE", "Which ANSI C the D compiler keeps to: a, c, s or t."),
}
_REPEATED: Final = {
    "-D": ("define", "NAME[=VALUE]", "Define a macro for cpp."),
    "-U": ("undef", "NAME", "Undefine a macro for cpp."),
    "-I": ("incdir", "DIR", "Search DIR for included files."),
    "-L": ("libdir", "DIR", "Read the D libraries in DIR, its files *.d, before the programs."),
}


class _Ordered(click.Command):
    """Remembers the order of the options: the clauses of a probe run in the order of their programs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args:
            raise click.UsageError("no image and no program: give an IMAGE, or a program with -n or -s", ctx)
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        ctx.meta[_NAME] = [parameter.name for parameter in order]
        return super().parse_args(ctx, args)


def _parameter(origin: Origin) -> str:
    return f"program_{origin.value}"


def _dtrace_options(command: Any) -> Any:  # what click decorates
    """Adds the options that dtrace(1) has with one letter, and that need no code of their own."""
    for switch, (name, text) in reversed(_SWITCHES.items()):
        command = click.option(switch, f"d_{name}", is_flag=True, help=text)(command)
    for options, many in ((_VALUES, False), (_REPEATED, True)):
        for flag, (name, metavar, text) in reversed(options.items()):
            command = click.option(flag, f"d_{name}", metavar=metavar, multiple=many, help=text)(command)
    command = click.option(
        "-x",
        "d_x",
        metavar="OPT[=VAL]",
        multiple=True,
        help="Set an option of D, e.g. strsize=1k, switchrate=10hz, aggsortrev, errtags.",
    )(command)
    for origin, (metavar, text) in reversed(_PROGRAMS.items()):
        flag = f"-{origin.value}"
        command = click.option(flag, _parameter(origin), metavar=metavar, multiple=True, help=text)(command)
    return command


@click.command(name=_NAME, cls=_Ordered, context_settings=SETTINGS)
@click.argument("words", metavar="[IMAGE] [ARG]...", nargs=-1)
@_dtrace_options
@click.option("-l", "is_list", is_flag=True, help="List probes instead of enabling them; with -v also their arguments.")
@click.option("-e", "is_check", is_flag=True, help="Compile the programs, match their probes, and exit.")
@click.option(
    "-d", "is_dump", is_flag=True, help="Print the programs as they are after if, else and inline probes are expanded."
)
@click.option("-v", "is_verbose", is_flag=True, help="Report the stability and arguments of the programs' probes.")
@click.option("-V", "--version", "is_version", is_flag=True, help="Print the versions of the tool and of D.")
@click.option(
    "-o",
    "output",
    type=_FILE,
    metavar="FILE",
    help="Append the output to FILE instead of writing it to stdout; formats other than text and json replace FILE.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice([form.value for form in Format]),
    default="text",
    show_default=True,
    help="dtrace's output; one JSON document, or JSON line by line; a table of records and aggregations; a trace for "
    "https://ui.perfetto.dev; the stacks that aggregations count, folded for other tools, or as a flame graph (SVG).",
)
@click.option("--debug-file", type=_FILE, metavar="FILE", help="Debug information and symbols of IMAGE, apart from it.")
@click.option("--symbols", type=_FILE, metavar="FILE", help="Names for IMAGE's code: System.map, output of nm, or ELF.")
@click.option("--name", metavar="NAME", help="Call IMAGE NAME in probe descriptions; else the name of its file.")
@click.option(
    "--module", "modules", metavar="NAME=FILE", multiple=True, help="Types of a kernel module, in D also as NAME`type."
)
@click.option(
    "--user",
    "users",
    type=_FILE,
    metavar="FILE",
    multiple=True,
    help="Program or library of the guest's user mode: its names and frames in ustack() and usym().",
)
@click.option("--machine", metavar="NAME", help="Machine to run on; default: the one of the image's architecture.")
@click.option(
    "--os",
    "system",
    metavar="NAME",
    default="auto",
    show_default=True,
    help="Operating system whose tasks pid, execname and the like tell of: linux, none, or auto: what IMAGE is.",
)
@click.option(
    "--call", metavar="'f(1, \"text\")'", help="Call one function instead of booting, and print what it returns."
)
@click.option("--method", type=click.Choice([method.value for method in Method]), help=METHOD_HELP)
@click.option("--cpus", type=int, default=1, show_default=True, help="Number of CPUs.")
@click.option("--memory", metavar="SIZE", help="RAM, e.g. 256m; default: what the machine has.")
@click.option(
    "--clock",
    type=click.Choice([kind.value for kind in ClockKind]),
    default="host",
    show_default=True,
    help="Time of the machine: the host's, or 10 ns for each instruction executed, the same in every run.",
)
@click.option(
    "--initrd",
    type=_FILE,
    metavar="FILE",
    help="Initial file system of a Linux kernel: a cpio archive, which may be compressed.",
)
@click.option(
    "--load",
    "loads",
    multiple=True,
    metavar="FILE@ADDRESS",
    help="Put a file's bytes at a physical address, for example what firmware IMAGE is to start. Repeatable; OpenSBI's "
    "fw_dynamic starts the first.",
)
@click.option(
    "--dtb",
    type=_FILE,
    metavar="FILE",
    help="Device tree in place of the machine's own. Memory, CPUs, command line and initrd in it are set as for that.",
)
@click.option(
    "--disk",
    "disks",
    metavar="FILE[,rw|,ro]",
    multiple=True,
    help="A disk (virtio), a raw image: what the guest writes is forgotten, or with ,rw written to FILE. Repeatable.",
)
@click.option(
    "--rng-seed",
    type=click.IntRange(0, (1 << 64) - 1),
    metavar="N",
    help="Give the guest a source of random numbers (virtio), which follow from this number.",
)
@click.option(
    "--virtio-console",
    "has_virtio_console",
    is_flag=True,
    help="Give the guest a console (virtio, Linux' hvc0) beside its serial line; once it is used, it is typed at.",
)
@click.option("--append", metavar="TEXT", help="Command line for the kernel; default: the machine's own.")
@click.option(
    "--kaslr-seed",
    type=click.IntRange(0, (1 << 64) - 1),
    metavar="N",
    help="Let a Linux kernel run at a random offset that follows from this number; default: where it was linked.",
)
@click.option("--timeout", metavar="T", help="End after so much of the machine's time, e.g. 10 (seconds), 500ms, 2m.")
@click.option("--wall-timeout", metavar="T", help="End after so much of the host's time since the guest was started.")
@click.option("--until", metavar="REGEX", help="End after a line of the console that matches.")
@click.option("--console", type=_FILE, metavar="FILE", help="Write the guest's console there instead of to stdout.")
@click.option(
    "--input",
    type=_FILE,
    metavar="FILE",
    help="Type the lines of FILE, each when the guest waits for input and has printed nothing for 20 ms.",
)
@click.option(
    "--read",
    metavar="SOURCE",
    help="Run nothing, and read what a standalone IMAGE found where it ran: SOURCE is an ELF core (QEMU's "
    "dump-guest-memory), FILE@ADDRESS for bytes of memory (pmemsave), or gdb:HOST:PORT.",
)
@click.option(
    "--every",
    metavar="T",
    help="With --read gdb:...: read again and again, at this interval; the guest stands still for each reading only.",
)
@click.option("--prompt", metavar="REGEX", help="Type each line when the console's last line matches.")
@click.pass_context
def run(ctx: click.Context, /, words: tuple[str, ...], **given: Any) -> None:  # one for each option
    """Run a kernel or firmware image under emulation, and D programs when its probes fire. IMAGE is an ELF file, or a
    Linux kernel as it is installed (vmlinuz).

    \b
    How often is each function called?   kinst-run kernel.elf -n 'fbt:::entry { @[probefunc] = count(); }'
    Which probes are there?              kinst-run -l kernel.elf -n 'fbt::vfs_*:'
    What are their arguments?            kinst-run -lv kernel.elf -n 'fbt::vfs_read:entry'
    A script, with $1 and $2:            kinst-run -s script.d kernel.elf 10 name
    The same in every run:               kinst-run -s script.d kernel.elf --clock icount
    What did it find elsewhere?          kinst-run standalone.elf --read gdb:localhost:1234 -s script.d
    Without an image:                    kinst-run -n 'BEGIN { trace("hello"); exit(0); }'

    What the programs need is patched in memory. Without a program, an image that kinst-rewrite patched fires its own
    probes, and any other just runs. The options of one letter are those of dtrace(1); programs can be given several
    times. Exit status: 0 done, 1 error, 2 usage, or what exit() said.

    Standard input is the guest's serial line, if it is a pipe, a file, or a terminal that shows the guest's console.
    There, Ctrl-A x ends the run, and Ctrl-A h tells more.
    """
    with reported(_NAME):
        if given["is_version"]:
            from importlib.metadata import version  # a tenth of the time that --help takes

            click.echo(f"{_NAME} {version('kinst-rewrite')}, D {VERSION}")
            return
        image, arguments = _image_and_arguments(words, given)
        check_files(image, given["debug_file"], *given["users"])
        request = _request(ctx, image, arguments, given)
        if given["read"] is None and given["every"] is not None:
            raise UsageError("--every: there is nothing to read again: give --read")
        bounds = limits(_seconds(given, "timeout"), _seconds(given, "wall-timeout"), given["until"])
        status = _carry_out(request, bounds, given)
    if status:
        sys.exit(status)


def _carry_out(request: Request, bounds: Limits, given: dict[str, Any]) -> int:
    """Carry out the command. The imports here take some time, so they wait until the command line is known to be
    right."""
    from kinst.runtime.tracing.run_command import Wishes, carry_out, told_of_arguments

    wishes = Wishes(
        is_list=given["is_list"],
        is_check=given["is_check"],
        is_dump=given["is_dump"],
        is_verbose=given["is_verbose"],
        permits_nothing=given["d_zdefs"],
        form=Format(given["form"]),
        output=given["output"],
        console=given["console"],
        typed=_typed(given["input"]),
        prompt=_prompt(given),
        takes_standard_input=request.call is None and "-" not in given[_parameter(Origin.SCRIPT)],
    )
    if given["read"] is not None:
        return carry_out(request, bounds, wishes, _readout(request, given))
    with told_of_arguments(request.image, request.arguments):
        return carry_out(request, bounds, wishes)


def _readout(request: Request, given: dict[str, Any]) -> "Build":
    """What --read makes of the image."""
    from kinst.runtime.readout.building import ReadoutBuilding
    from kinst.runtime.readout.sources import source_of

    unused = [name for name in _OF_RUNS if given[name] not in (None, ())]
    if unused:
        raise UsageError(f"--read runs nothing: --{min(unused).replace('_', '-')} is for an image that runs")
    if request.image is None:
        raise UsageError("--read: give the standalone IMAGE whose memory it is")
    source, interval = source_of(given["read"]), _seconds(given, "every")
    if interval is not None and not given["read"].startswith("gdb:"):
        raise UsageError(f"--every {given['every']}: a file stays as it is: it is for --read gdb:HOST:PORT")
    return ReadoutBuilding(source, None if interval is None else int(interval * 1e9))


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
    for parameter in order:
        settings = left.get(parameter)
        if settings:
            _set(options, settings.pop(0))
    return options


_NAMED: Final[dict[str, tuple[str, ...]]] = {**_SWITCHES, **_VALUES, **_REPEATED}


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
    left = {_parameter(origin): (origin, list(given[_parameter(origin)])) for origin in _PROGRAMS}
    programs = []
    for origin, texts in (left[name] for name in order if name in left):
        text = texts.pop(0)
        programs.append(read_script(text) if origin is Origin.SCRIPT else ProgramText(origin, text, text))
    return programs


def _image_and_arguments(words: tuple[str, ...], given: dict[str, Any]) -> tuple[Path | None, tuple[str, ...]]:
    """The first word is the image, `-` for none. If there is a program and nothing that needs an image, a word that is
    no file is the program's argument, unless it looks like the path of an image."""
    if not words or words[0] == "-":
        return None, words[1:]
    path = Path(words[0])
    has_program = any(given[_parameter(origin)] for origin in _PROGRAMS)
    needs_image = any(given[name] not in (None, ()) for name in _OF_IMAGES) or given["is_list"]
    if path.exists() or not has_program or needs_image or path.suffix == ".elf" or "/" in words[0]:
        return path, words[1:]
    return None, words


def _request(ctx: click.Context, image: Path | None, arguments: tuple[str, ...], given: dict[str, Any]) -> Request:
    options = _options(ctx.meta[_NAME], given)
    programs = _programs(ctx.meta[_NAME], given)
    return Request(
        image=image,
        programs=tuple(programs),
        arguments=arguments,
        options=options,
        configuration=Configuration(
            given["cpus"],
            _size(given["memory"]),
            ClockKind(given["clock"]),
            given["append"],
            None if given["initrd"] is None else _mapped("--initrd", given["initrd"]),
            given["kaslr_seed"],
            None if given["dtb"] is None else _mapped("--dtb", given["dtb"]),
            tuple(_placed(text) for text in given["loads"]),
            tuple(_disk(text) for text in given["disks"]),
            given["rng_seed"],
            given["has_virtio_console"],
        ),
        machine=given["machine"],
        system=given["system"],
        call=given["call"],
        method=None if given["method"] is None else Method(given["method"]),
        name=None if given["name"] is None else checked_module(given["name"]),
        symbols=given["symbols"],
        debug_file=given["debug_file"],
        users=given["users"],
        modules=tuple(_module(text) for text in given["modules"]),
        records_time=Format(given["form"]).records_time,
        records_tasks=Format(given["form"]).records_tasks,
        is_verbose=given["is_verbose"],
    )


def _mapped(option: str, path: Path) -> memoryview:
    """The content of an option's file, which may be large, and must be a file that ends."""
    from kinst.targets.elf.file import map_file

    try:
        return map_file(path).data
    except ImageError as error:
        raise UsageError(f"{option} {path}: {error}") from None


def _placed(text: str) -> FileAt:
    name, at, address = text.rpartition("@")
    found = re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,19}", address)
    if not at or not name or found is None or "\0" in name:
        raise UsageError(f"--load {text}: FILE@ADDRESS, for example u-boot.bin@0x80200000")
    content = _mapped("--load", Path(name))
    if not content:
        raise UsageError(f"--load {name}: is empty")
    return FileAt(Path(name).name, int(address, 16 if address[:2] in ("0x", "0X") else 10), content)


def _disk(text: str) -> Disk:
    name, comma, mode = text.rpartition(",")
    if comma and mode in (DiskMode.READ_WRITE.value, DiskMode.READ_ONLY.value):
        return open_disk(Path(name), DiskMode(mode))
    return open_disk(Path(text))


def _typed(path: Path | None) -> tuple[bytes, ...]:
    from kinst.runtime.input.typist import lines_to_type

    return () if path is None else tuple(lines_to_type(bytes(_mapped("--input", path))))


def _prompt(given: dict[str, Any]) -> re.Pattern[bytes] | None:
    if given["prompt"] is None:
        return None
    if given["input"] is None:
        raise UsageError(f"--prompt {given['prompt']}: there is nothing to type: give --input")
    return pattern("--prompt", given["prompt"])


def _module(text: str) -> tuple[str, Path]:
    name, _, file = text.partition("=")
    if not name or not file:
        raise UsageError(f"--module {text}: NAME=FILE, a name for D programs and the module's .ko file")
    return name, Path(file)


def _size(text: str | None) -> int | None:
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,19}|0[xX][0-9a-fA-F]{1,16})([kmgKMG]?)(?:i?[bB])?", text)
    if found is None:
        raise UsageError(f"--memory {text}: a number with k, m or g behind it")
    number = found[1]
    return int(number, 16 if number[:2] in ("0x", "0X") else 10) * _SIZES[found[2].lower()]


def _seconds(given: dict[str, Any], option: str) -> float | None:
    text = given[option.replace("-", "_")]
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]*)?)([a-z]*)", text)
    if found is None or found[2] not in _UNITS:
        raise UsageError(f"--{option} {text}: a number of seconds, or with a unit: us, ms, s, m, h")
    return float(found[1]) * _UNITS[found[2]]
