"""Why a CPU has stopped, and the reply that says so."""

from enum import Enum
from typing import Final, assert_never

from kinst.targets.values import dataclass


class Cause(Enum):
    """What stopped it."""

    ATTACHED = "attached"  # a debugger has come
    BREAKPOINT = "breakpoint"
    HARDWARE_BREAKPOINT = "hardware breakpoint"
    STEPPED = "stepped"
    WRITTEN = "written"  # a watchpoint for stores
    READ = "read"
    ACCESSED = "accessed"
    ASKED = "asked"  # a clause, or a command of the monitor
    INTERRUPTED = "interrupted"  # by the debugger
    BEGINNING = "beginning"  # of what can be gone back to


_TRAP, _INTERRUPT = 5, 2  # SIGTRAP, SIGINT, as gdb numbers them


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop of a CPU; `address` is that of a watchpoint."""

    cause: Cause
    cpu: int
    address: int = 0


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the debugger says that it understands of replies."""

    has_swbreak: bool = False
    has_hwbreak: bool = False


def reply(stop: Stop, abilities: Abilities) -> bytes:
    """The stop reply."""
    signal = _INTERRUPT if stop.cause is Cause.INTERRUPTED else _TRAP
    return f"T{signal:02x}{_reason(stop, abilities)}thread:{stop.cpu + 1:x};".encode()


def _reason(stop: Stop, abilities: Abilities) -> str:
    match stop.cause:
        case Cause.BREAKPOINT:
            return "swbreak:;" if abilities.has_swbreak else ""
        case Cause.HARDWARE_BREAKPOINT:
            return "hwbreak:;" if abilities.has_hwbreak else ""
        case Cause.WRITTEN:
            return f"watch:{stop.address:x};"
        case Cause.READ:
            return f"rwatch:{stop.address:x};"
        case Cause.ACCESSED:
            return f"awatch:{stop.address:x};"
        case Cause.BEGINNING:
            return "replaylog:begin;"
        case Cause.ATTACHED | Cause.STEPPED | Cause.ASKED | Cause.INTERRUPTED:
            return ""
        case _:
            assert_never(stop.cause)


NO_ABILITIES: Final = Abilities()
