"""What a user chooses about a machine, and why it stopped. Known without the machine, whose libraries are large."""

from dataclasses import dataclass
from enum import Enum


class ClockKind(Enum):
    """`--clock`."""

    HOST = "host"
    ICOUNT = "icount"


@dataclass(frozen=True, slots=True)
class Configuration:
    """What the user may choose about a machine."""

    cpus: int = 1
    memory: int | None = None
    clock: ClockKind = ClockKind.HOST
    command_line: str | None = None  # for kernels that are given one; None: the board's own
    kaslr_seed: int | None = None  # of 64 bits, for kernels that move themselves at random; None: they do not


class End(Enum):
    """Why the machine stopped."""

    POWER_OFF = "power-off"
    UNTIL = "until"
    TIMEOUT = "timeout"
    WALL_TIMEOUT = "wall-timeout"
    INTERRUPTED = "interrupted"
    RETURNED = "returned"  # `--call`: the function returned
    EXIT = "exit"  # a clause called exit()
    PANIC = "panic"  # a clause called panic()
    BREAKPOINT = "breakpoint"  # a clause called breakpoint()
    STOPPED = "stopped"  # Python code that reads along asked for it; the machine can go on
    NOTHING_LEFT = "nothing-left"  # without an image: no timer is enabled
