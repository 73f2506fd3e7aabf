"""What a user wants from a run, by the command line or from Python: one value. Nothing is opened yet."""

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from kinst.rewriter.shell.progress import Progress, silent
from kinst.runtime.dlang.options import Options
from kinst.runtime.machine.configuration import Configuration
from kinst.runtime.tracing.programs.program_text import ProgramText
from kinst.runtime.userspace.target import Target
from kinst.runtime.userspace.user_file import UserFile
from kinst.targets.method import Method
from kinst.targets.packed.reading import AS_IT_SAYS, Reading
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.coverage.document import CoverageRequest
    from kinst.runtime.debugger.address import DebuggerAddress
    from kinst.runtime.tracing.beside_file import BesideFile
    from kinst.runtime.tracing.hits import PythonAction
    from kinst.runtime.tracing.host.learn_request import LearnRequest
    from kinst.runtime.tracing.host.log_request import LogRequest
    from kinst.targets.elf.symbols import Symbols


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An image, what to trace in it, and the machine to run it on."""

    image: Path | None = None  # None: the programs need none
    programs: tuple[ProgramText, ...] = ()  # none, and no actions: the probes that a patched image was patched with
    actions: "tuple[PythonAction, ...]" = ()
    arguments: tuple[str, ...] = ()  # $1, $2, ...
    options: Options = field(default_factory=Options)  # programs set some as they are read
    configuration: Configuration = field(default_factory=Configuration)
    reading: Reading = AS_IT_SAYS  # what the user says of an image file that does not say it itself
    machine: str | None = None  # default: the one of the image's architecture
    on: str | None = None  # the command that starts QEMU, in place of our machine
    is_lossless: bool = False  # under QEMU a hit waits while the ring is full
    system: str = "auto"  # the operating system in the image, as --os names it
    call: str | None = None  # a function call instead of booting, or in the state of `start`
    is_called_each: bool = False  # whether that is for several rows, which say what $1 and $name are
    method: Method | None = None  # how displaced instructions are executed; None: as a patched image says, or AUTO
    name: str | None = None  # the image's module, if not the file's name
    symbols: Path | None = None  # names for its code: System.map, the output of nm, an ELF file
    debug_file: Path | None = None  # debug information and symbols, if not in the image or found automatically
    code: tuple[tuple[int, int], ...] = ()  # start and end of what the user says is code
    users: tuple[UserFile, ...] = ()  # programs of the guest's user mode: their names, frames and probes
    target: Target | None = None  # the processes that -p or --exec means
    modules: tuple[tuple[str, Path], ...] = ()  # kernel modules: their types, and probes of patched ones
    module_folders: tuple[Path, ...] = ()  # where files of modules that descriptions name are looked for
    beside: "tuple[BesideFile, ...]" = ()  # images that are in the machine as well
    records_time: bool = False
    records_tasks: bool = False  # whether the task is recorded in which each probe fires
    records_hits: bool = False  # whether hits are counted by probe, and over time
    csv_is_safe: bool = False  # whether no cell of --format csv is a formula to a spreadsheet
    own_names: "Symbols | None" = None  # `Source.own_names`
    progress: Progress = silent  # notified while the image is patched in memory
    ends_on_panic: bool = True  # whether a panic of the guest's kernel ends the run
    log: "LogRequest | None" = None  # events that are told of as they happen
    learn: "LearnRequest | None" = None  # where to keep what leaves polls of registers that nobody models
    gdb: "DebuggerAddress | None" = None  # where a debugger is awaited before the guest runs
    start: Path | None = None  # the snapshot that the guest begins with, in place of a boot
    coverage: "CoverageRequest | None" = None  # what is to be known of what ran; None: it is not counted
    is_verbose: bool = False  # whether more is reported about a run that is over

    @property
    def counts_by_itself(self) -> bool:
        """Whether the image counts what runs of it: under QEMU, for coverage."""
        return self.on is not None and self.coverage is not None

    @property
    def is_planned_late(self) -> bool:
        """Whether the plan depends on what clauses read, so that they are checked first."""
        return self.on is not None
