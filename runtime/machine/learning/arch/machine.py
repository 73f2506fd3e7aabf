"""Where the engine of a scratch copy of a CPU needs help: the time, and calls of firmware. One record a machine."""

from collections.abc import Callable

from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.runtime.machine.exception_model import SystemRegister
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Counters:
    """The machine's time, as a scratch copy is told it."""

    tick: Callable[[], int]  # the counter that guests read; each call lets time pass
    frequency: int  # of that, Hz


@dataclass(frozen=True, slots=True)
class ScratchMachine:
    """One machine."""

    result: str  # the register with a function's result
    link: str | None  # and the one with its return address, as long as it has called nobody; None: there is none
    counters: tuple[SystemRegister, ...]  # registers with the time, which may be ahead of the machine's
    attach: Callable[[QilingMachine, Counters, Callable[[SystemRegister], int]], None]
    # An exception, by the engine's number, with the PC of the instruction and its word: where to go on; None: nowhere.
    step_over: Callable[[QilingMachine, Counters, int, int, int], int | None]


def needs_no_help(_engine: QilingMachine, _counters: Counters, _offset: Callable[[SystemRegister], int]) -> None:
    """Attach nothing: the engine asks nobody for the time."""
