"""What a user chooses about a machine, and why it stopped; separate from the machine, which imports large libraries."""

from enum import Enum
from pathlib import Path

from kinst.runtime.machine.disk import Disk
from kinst.targets.errors import ImageError, UsageError
from kinst.targets.values import dataclass


class ClockKind(Enum):
    """What the machine's time is, the option `--clock`: the host's time, or the number of executed instructions."""

    HOST = "host"
    ICOUNT = "icount"


@dataclass(frozen=True, slots=True)
class FileAt:
    """Bytes for physical memory, the option `--load`."""

    name: str  # the file's, for messages
    address: int
    content: bytes | memoryview
    entry: int | None = None  # where it is entered; None: at its first byte
    filled: int | None = None  # bytes of it that the file has, before its .bss; None: all


def mapped(option: str, path: Path) -> memoryview:
    """The content of an option's file, which may be large. Raises UsageError: it is not a regular file."""
    from kinst.targets.elf.file import map_file

    try:
        return map_file(path).data
    except ImageError as error:
        raise UsageError(f"{option} {path}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What the user may choose about a machine."""

    cpus: int = 1
    memory: int | None = None
    clock: ClockKind = ClockKind.HOST
    command_line: str | None = None  # for kernels that take one; None: the board's default
    initrd: bytes | memoryview | None = None  # initial file system, for kernels that take one
    kaslr_seed: int | None = None  # 64 bits, for kernels that move to a random offset; None: they do not move
    device_tree: bytes | memoryview | None = None  # flattened; None: the board's own
    files: tuple[FileAt, ...] = ()  # further files in memory
    disks: tuple[Disk, ...] = ()
    rng_seed: int | None = None  # for a source of random numbers; None: there is none
    has_virtio_console: bool = False  # besides the serial line
    counts_instructions: bool = False  # whether runs must be able to end after any instruction


class End(Enum):
    """Why the machine stopped."""

    POWER_OFF = "power-off"  # the guest switched the machine off
    RESET = "reset"  # the guest restarted the machine, which ends the run: nothing starts the image again
    GUEST_PANIC = "guest-panic"  # the guest's kernel panicked, and will not restart
    UNTIL = "until"  # a line of its console matched
    TIMEOUT = "timeout"  # of the machine's time
    WALL_TIMEOUT = "wall-timeout"  # of the host's
    INTERRUPTED = "interrupted"  # Ctrl-C
    RETURNED = "returned"  # `--call`: the function returned
    EXIT = "exit"  # a clause called exit()
    PANIC = "panic"  # a clause called panic()
    BREAKPOINT = "breakpoint"  # a clause called breakpoint()
    PAUSED = "paused"  # a clause called stop(), under QEMU; the guest can continue
    STOPPED = "stopped"  # Python code that reads the records asked for it; the machine can continue
    NOTHING_LEFT = "nothing-left"  # without an image: no timer is enabled
