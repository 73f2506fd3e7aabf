"""What Python code gives -> the parts of a request: a machine, options, programs, actions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

from kinst.runtime.dlang.options import OptionError
from kinst.runtime.dlang.options import Options as DOptions
from kinst.runtime.machine.configuration import ClockKind, Configuration, FileAt, mapped
from kinst.runtime.machine.disk import Disk, DiskMode, open_disk
from kinst.runtime.tracing.beside_file import BesideFile, loaded_file, stage_file
from kinst.runtime.tracing.hits import Hit, PythonAction, replacement
from kinst.runtime.tracing.interventions import OVERRIDE
from kinst.runtime.tracing.programs.program_text import Origin, ProgramText, read_script
from kinst.targets.errors import UsageError
from kinst.targets.method import Method
from kinst.targets.nearest import nearest
from kinst.targets.probe import checked_module
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.coverage.output_form import CoverageOutput
    from kinst.runtime.debugger.address import DebuggerAddress

Action = Callable[[Hit], object]
_REPLACE: Final = "replace"  # before a description: see `actions_of`
PathLike = Path | str
ClockName = Literal["host", "icount"]
DiskModeName = Literal["copy", "rw", "ro"]
MethodName = Literal["auto", "emulate", "block", "jump", "trap"]
OnPanic = Literal["end", "continue"]
AnyDisk = PathLike | tuple[PathLike, DiskModeName] | Disk


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What an image runs on: a value that any number of traces, sweeps and calls may share.

    Args:
        board: its name, as `kinst-run --machine` has it; default: the one of the image's architecture.
        on: a command that starts QEMU, without the image, or "qemu": the image runs there, as by `kinst-run --on`, and
            the command says how many CPUs, how much memory and which devices there are. It ends with the trace.
        cpus: how many.
        memory: bytes of RAM; default: what the board has.
        clock: what time is: "host", the host's; or "icount", 10 ns for each instruction, so that all runs are equal.
        append: the command line of a kernel that takes one; default: the board's.
        initrd: the initial file system of a Linux kernel: a file, or the bytes of a cpio archive, compressed or not.
        dtb: a flattened device tree, a file or bytes, in place of the board's own.
        load: more bytes by the physical address where they are put.
        images: more images by their names in probes: each a file, or a pair of a file and the physical address where
            it is put, as of `kinst-run --load NAME=FILE@ADDRESS`.
        stages: images that the guest itself loads or unpacks, by name: they have probes from when their code arrives.
        disks: virtio disks, or SD cards where the board has no virtio: each a file, a pair of a file and its mode, or
            an object like `Disk`, for one trace. What is written is forgotten at the end ("copy", the default), goes to
            the file ("rw"), or is refused ("ro").
        kaslr_seed: 64 bits for a kernel that moves to a random address; default: it does not move.
        rng_seed: gives the guest a virtio source of random numbers, which follow from it.
        virtio_console: gives it a virtio console beside the serial line.
        start: a snapshot to continue from, in place of a boot: the same image, disks and machine; default: none.
        gdb: where gdb or lldb is awaited when the guest first runs, as `kinst-run --gdb` has it, such as 1234 or
            "unix:door"; default: nowhere.
        on_panic: "end": the run ends when the guest's kernel has panicked and will not restart; "continue": it goes on.

    Raises:
        UsageError: `clock` or `on_panic` is another word. What does not fit the board is an error when a guest is made.

    Example:
        >>> two = Machine(cpus=2, clock="icount")
        >>> with open_image("samples/kernel-arm64.elf") as image, image.trace(machine=two) as trace:
        ...     trace.run(until="cpu: ")
        ...     trace.console.splitlines()[-1]
        <End.UNTIL: 'until'>
        b'cpu: 2 found'
    """

    board: str | None = None
    on: str | None = None
    cpus: int = 1
    memory: int | None = None
    clock: ClockName = "host"
    append: str | None = None
    initrd: bytes | PathLike | None = None
    dtb: bytes | PathLike | None = None
    load: Mapping[int, bytes] = field(default_factory=dict)
    images: Mapping[str, PathLike | tuple[PathLike, int]] = field(default_factory=dict)
    stages: Mapping[str, PathLike] = field(default_factory=dict)
    disks: Sequence[AnyDisk] = ()
    kaslr_seed: int | None = None
    rng_seed: int | None = None
    virtio_console: bool = False
    on_panic: OnPanic = "end"
    start: PathLike | None = None
    gdb: str | int | None = None

    def __post_init__(self) -> None:
        _check_word("clock", self.clock, get_args(ClockName))
        _check_word("on_panic", self.on_panic, get_args(OnPanic))


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a guest is traced: a value that `ImageFile.trace` and `attach` share.

    Args:
        d: options of D by name, as `-x` has them, each a text, a number, or whether a switch is on:
            {"strsize": "1k", "stackframes": 50, "destructive": True}.
        method: how probed instructions are executed, a word of `kinst-run --method`; default: as a patched image was
            made, and "auto" for others.
        report: a file that gets a page about the run when it is over, as by `kinst-run --report`; default: none.
        coverage: a file that gets what ran of the image when the run is over, as by `kinst-run --coverage`: its name
            ends with .json, .info (lcov), .drcov or .html; default: none.

    Raises:
        UsageError: the file of `coverage` has another name; there is no such method or option of D, or the option has
            no such value.

    Example:
        >>> Options(d={"strsize": "1q"})
        Traceback (most recent call last):
        kinst.targets.errors.UsageError: option strsize: Invalid value for specified option: a size in bytes, such as 1k
    """

    d: Mapping[str, str | int | bool] = field(default_factory=dict)
    method: MethodName | None = None
    report: PathLike | None = None
    coverage: PathLike | None = None

    def __post_init__(self) -> None:
        options_of(self)
        method_of(self.method)
        coverage_of(self)


def coverage_of(options: Options) -> "CoverageOutput | None":
    """The file of coverage. Raises UsageError: its name does not say the format."""
    if options.coverage is None:
        return None
    from kinst.runtime.coverage.output_form import coverage_file  # few runs have one

    return coverage_file(Path(options.coverage))


def beside_of(machine: Machine) -> tuple[BesideFile, ...]:
    """Its images beside the first one. Raises UsageError: one cannot be used."""
    found = []
    for name, given in machine.images.items():
        file, address = given if isinstance(given, tuple) else (given, None)
        found.append(loaded_file(Path(file), checked_module(name, "image"), address))
    staged = (stage_file(Path(file), checked_module(name, "stage"), None) for name, file in machine.stages.items())
    return (*found, *staged)


def configuration_of(machine: Machine, beside: Sequence[BesideFile] = ()) -> Configuration:
    """What the machine is made from; its files are opened. Raises UsageError, MachineError: one cannot be used."""
    return Configuration(
        cpus=machine.cpus,
        memory=machine.memory,
        clock=ClockKind(machine.clock),
        command_line=machine.append,
        initrd=_content("initrd", machine.initrd),
        kaslr_seed=machine.kaslr_seed,
        device_tree=_content("dtb", machine.dtb),
        files=(
            *(FileAt("bytes", address, content) for address, content in machine.load.items()),
            *(one.loaded for one in beside if one.loaded is not None),
        ),
        disks=tuple(map(_disk, machine.disks)),
        rng_seed=machine.rng_seed,
        has_virtio_console=machine.virtio_console,
        counts_instructions=machine.gdb is not None,
    )


def debugger_of(machine: Machine, call: str | None) -> "DebuggerAddress | None":
    """Where a debugger is awaited. Raises UsageError: it is no address, or there is no door."""
    if machine.gdb is None:
        return None
    if call is not None:
        raise UsageError(f"gdb {machine.gdb}: is for an image that boots, and not for calls")
    if machine.on is not None:
        raise UsageError(f"gdb {machine.gdb}: QEMU has its own door: add -gdb to its command")
    from kinst.runtime.debugger.address import debugger_address

    return debugger_address(str(machine.gdb))


def options_of(options: Options) -> DOptions:
    """The options of D. A switch that is off is as if it were not named."""
    found = DOptions()
    for name, value in options.d.items():
        try:
            if value is not False:
                found.set(name, None if value is True else str(value))
        except OptionError as error:
            raise UsageError(f"option {name}: {error.why}") from error
    return found


def method_of(name: str | None) -> Method | None:
    """How probed instructions are executed. Raises UsageError: there is no such method."""
    if name is not None:
        _check_word("method", name, get_args(MethodName))
    return None if name is None else Method(name)


def path_of(path: PathLike | None) -> Path | None:
    """A file, if one is given."""
    return None if path is None else Path(path)


def programs_of(programs: Iterable[PathLike | ProgramText]) -> tuple[ProgramText, ...]:
    """Programs in D: each its text, or the file that a path names. Raises KinstError: it cannot be read."""
    return tuple(map(program_of, programs))


def program_of(program: PathLike | ProgramText) -> ProgramText:
    """One of them."""
    if isinstance(program, ProgramText):
        return program
    return read_script(str(program)) if isinstance(program, Path) else ProgramText(Origin.NAME, program, program)


def actions_of(given: Mapping[str, Action] | None) -> tuple[PythonAction, ...]:
    """Functions by the description of the probes that call them, or by "replace" and that of the functions that they
    replace. Such a function returns the result of the one that it replaces, None for none, or `hit.original()`, which
    lets that one run. Raises UsageError for a description of something else."""
    return tuple(_action(description, call) for description, call in (given or {}).items())


def _action(description: str, call: Action) -> PythonAction:
    word, _, function = description.strip().partition(" ")
    if word != _REPLACE:
        return PythonAction(description, call)
    fields = function.strip().split(":")
    if len(fields) < 4:
        fields.append("entry")
    return PythonAction(":".join(fields), replacement(call), (OVERRIDE,))


def modules_of(given: Mapping[str, PathLike] | None) -> tuple[tuple[str, Path], ...]:
    """Kernel modules by name."""
    return tuple((module, Path(file)) for module, file in (given or {}).items())


def _check_word(name: str, word: str, known: Sequence[str]) -> None:
    if word not in known:
        raise UsageError(f"{name} {word}: is one of {', '.join(known)}{nearest(str(word), known)}")


def _content(name: str, given: bytes | PathLike | None) -> bytes | memoryview | None:
    return mapped(name, Path(given)) if isinstance(given, str | Path) else given


def _disk(given: AnyDisk) -> Disk:
    match given:
        case (path, mode):
            _check_word(f"disk {path}: mode", mode, get_args(DiskModeName))
            return open_disk(Path(path), DiskMode(mode))
        case str() | Path():
            return open_disk(Path(given))
        case _:
            return given
