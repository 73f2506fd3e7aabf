"""A machine between two of its instructions, as values: what a snapshot has besides memory."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.machine.system import System


@dataclass(frozen=True, slots=True)
class CpuState:
    """One CPU. `content`: its registers, as `CpuStates.content` gives them."""

    content: bytes
    lines: int
    is_on: bool
    is_waiting: bool
    was_started: bool


@dataclass(frozen=True, slots=True)
class MachineState:
    """All of a machine but its memory.

    `time`: of its clock (ns). `turn`: see `Turn`. `places`: what `ObjectGraph` found, by path, as copies.
    `tables`: whether the guest has begun to run, and the tables that it began with.
    """

    time: int
    current: int  # the number of the CPU whose turn it is, or was
    turn: tuple[int, bool] | None
    cpus: tuple[CpuState, ...]
    places: Mapping[str, Any]
    tables: tuple[bool, int | None]
    exit_code: int = 0


def cpu_contents(system: "System") -> tuple[bytes, ...]:
    """The states of all CPUs, between two turns, as `CpuState.content`."""
    states = system.engine.states
    states.save_to(system.current.context)
    return tuple(states.content(cpu.context) for cpu in system.cpus)
