"""The state of a machine <-> what a snapshot's header says of it. What a file says is checked against a new machine."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kinst.runtime.machine.snapshots.state import CpuState, MachineState
from kinst.runtime.tracing.snapshots.values import ValueProblem, check, decoded, encoded

if TYPE_CHECKING:
    from kinst.runtime.machine.snapshots.object_graph import ObjectGraph


def state_text(state: MachineState) -> dict[str, Any]:
    """The state as JSON has it."""
    return {
        "time": state.time,
        "current": state.current,
        "turn": encoded(state.turn),
        "cpus": [[encoded(one.content), one.lines, one.is_on, one.is_waiting, one.was_started] for one in state.cpus],
        "tables": encoded(state.tables),
        "exit_code": state.exit_code,
        "places": {path: encoded(value) for path, value in state.places.items()},
    }


def state_of(text: Mapping[str, Any], graph: "ObjectGraph", cpus: int) -> MachineState:
    """The state, which fits a machine whose devices are these. Raises ValueError, KeyError or TypeError: it does
    not."""
    turn, tables = decoded(text["turn"]), decoded(text["tables"])
    _check(turn is None or _is_pair(turn, int, bool), "a CPU's turn")
    _check(_is_pair(tables, bool, int | None), "the first tables")
    _check(len(text["cpus"]) == cpus and 0 <= _number(text["current"]) < cpus, "the CPUs")
    return MachineState(
        time=_number(text["time"]),
        current=_number(text["current"]),
        turn=turn,
        cpus=tuple(map(_cpu, text["cpus"])),
        places=_places(text["places"], graph),
        tables=tables,
        exit_code=_number(text["exit_code"]),
    )


def _cpu(text: Any) -> CpuState:
    content, lines, *power = text
    is_on, is_waiting, was_started = power
    found = decoded(content)
    _check(isinstance(found, bytes) and all(isinstance(one, bool) for one in power), "a CPU")
    return CpuState(found, _number(lines), is_on, is_waiting, was_started)


def _places(text: Mapping[str, Any], graph: "ObjectGraph") -> dict[str, Any]:
    known, found = {place.path: place for place in graph.places}, dict[str, Any]()
    for path in sorted(known.keys() ^ text.keys()):
        raise ValueProblem(f"{path[:200]}: is in one of the machines only: they have other devices")
    for path, place in known.items():
        found[path] = decoded(text[path])
        check(path, place.get(), found[path])
    return found


def _is_pair(value: Any, first: Any, second: Any) -> bool:
    is_pair = isinstance(value, tuple) and len(value) == 2
    return is_pair and isinstance(value[0], first) and isinstance(value[1], second)


def _number(value: Any) -> int:
    _check(isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64, "a number")
    return int(value)


def _check(is_right: bool, what: str) -> None:  # noqa: FBT001 - what is checked
    if not is_right:
        raise ValueProblem(f"{what} cannot be like this")
