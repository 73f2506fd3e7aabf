"""-F: the prefix and the indentation of each record's line, by CPU, as libdtrace's dt_flowindent() computes them.

Probes named entry and return, or ending in -entry and -return, open and close a level. A probe that several clauses
enable does so once: an entry right after another clause's record of the same probe does not indent again, and a return
right before one does not unindent yet. So a line depends on the next record in the buffer of its CPU; libdtrace, too,
does not look beyond the buffer that it consumes.
"""

from collections import defaultdict
from dataclasses import dataclass
from enum import Enum
from typing import Final

from kinst.runtime.clauses.environment import Record
from kinst.runtime.providers.provider import Probe

HEADER: Final = b"%3s %-41s\n" % (b"CPU", b"FUNCTION")
_STEP: Final = 2


class Flow(Enum):
    """What the name of a probe means for the indentation."""

    ENTRY = "entry"
    RETURN = "return"
    NONE = ""


def flow_of(name: str) -> Flow:
    """What the name of this probe means."""
    for flow in (Flow.ENTRY, Flow.RETURN):
        if name == flow.value or name.endswith(f"-{flow.value}"):
            return flow
    return Flow.NONE


@dataclass(slots=True)
class _Cpu:
    indent: int = 0
    last: tuple[int, int] | None = None  # probe and clause of the previous record


class FlowIndent:
    """The indentation of all CPUs."""

    def __init__(self) -> None:
        self._cpus: defaultdict[int, _Cpu] = defaultdict(_Cpu)

    def line(self, record: Record, following: Record | None, probe: Probe | None) -> bytes:
        """The beginning of a record's line. `following` is the next record of the same CPU, if there is one yet."""
        number, identifier, clause = record[:3]
        cpu = self._cpus[number]
        flow = Flow.NONE if probe is None else flow_of(probe.name)
        if flow is Flow.ENTRY and _is_other_clause(cpu.last, identifier, clause):
            flow = Flow.NONE
        if flow is Flow.RETURN and _is_other_clause(following and following[1:3], identifier, clause):
            flow = Flow.NONE
        if flow is Flow.RETURN:
            cpu.indent = max(0, cpu.indent - _STEP)
        text = " " * cpu.indent + _text(flow, probe)
        if flow is Flow.ENTRY:
            cpu.indent += _STEP
        cpu.last = (identifier, clause)
        return b"%3d %-41s " % (number, text.encode())


def _is_other_clause(neighbour: tuple[int, int] | None, identifier: int, clause: int) -> bool:
    return neighbour is not None and neighbour[0] == identifier and neighbour[1] != clause


def _text(flow: Flow, probe: Probe | None) -> str:
    if probe is None:
        return "| :"
    is_call = probe.provider == "syscall"
    match flow:
        case Flow.ENTRY:
            return (" => " if is_call else " -> ") + probe.function
        case Flow.RETURN:
            return (" <= " if is_call else " <- ") + probe.function
        case _:
            return f"| {probe.function}:{probe.name}"
