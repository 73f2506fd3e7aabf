"""What dtrace prints on stderr while it consumes: errors of clauses, and drops (docs/facts/dlang.md, Errors and
drops)."""

from enum import Enum

from kinst.runtime.clauses.environment import ErrorRecord
from kinst.runtime.providers.provider import Probe
from kinst.runtime.trap.faults import FAULT_TEXTS, WITH_ADDRESS, Fault
from kinst.targets.values import dataclass


class DropKind(Enum):
    """What was lost. The value is the word that -x droptags shows."""

    PRINCIPAL = "PRINCIPAL"
    AGGREGATION = "AGGREGATION"
    DYNAMIC = "DYNAMIC"
    RINSING = "DYNRINSE"
    DIRTY = "DYNDIRTY"
    SPECULATION = "SPEC"
    SPECULATION_BUSY = "SPECBUSY"
    SPECULATION_UNAVAILABLE = "SPECUNAVAIL"
    STACK_STRINGS = "STKSTROVERFLOW"
    DOUBLE_ERROR = "DBLERROR"


@dataclass(frozen=True, slots=True)
class Drop:
    """A number of drops since the last report. Principal and aggregation drops are reported by CPU."""

    kind: DropKind
    count: int
    cpu: int = 0


def drop_message(drop: Drop, *, has_tag: bool) -> str:
    """The message for a drop: a line without its newline. `has_tag`: the option droptags."""
    count, s = drop.count, "" if drop.count == 1 else "s"
    text = {
        DropKind.PRINCIPAL: f"{count} drop{s} on CPU {drop.cpu}",
        DropKind.AGGREGATION: f"{count} aggregation drop{s} on CPU {drop.cpu}",
        DropKind.DYNAMIC: f"{count} dynamic variable drop{s}",
        DropKind.RINSING: f"{count} dynamic variable drop{s} with non-empty rinsing list",
        DropKind.DIRTY: f"{count} dynamic variable drop{s} with non-empty dirty list",
        DropKind.SPECULATION: f"{count} speculative drop{s}",
        DropKind.SPECULATION_BUSY: f"{count} failed speculation{s} (available buffer{s} still busy)",
        DropKind.SPECULATION_UNAVAILABLE: f"{count} failed speculation{s} (no speculative buffer available)",
        DropKind.STACK_STRINGS: f"{count} jstack()/ustack() string table overflow{s}",
        DropKind.DOUBLE_ERROR: f"{count} error{s} in ERROR probe enabling",
    }[drop.kind]
    tag = f"[DTRACEDROP_{drop.kind.value}] " if has_tag else ""
    return f"dtrace: {tag}{text}"


def _enabled(epid: int, identifier: int, probe: Probe | None) -> str:
    return f"dtrace: error on enabled probe ID {epid} (ID {identifier}: {':::' if probe is None else probe}): "


def fault_text(fault: Fault) -> str:
    """The kind of a fault, and its address if it has one."""
    address = f" (0x{fault.value & (1 << 64) - 1:x})" if fault.kind in WITH_ADDRESS else ""
    return f"{FAULT_TEXTS[fault.kind]}{address}"


def error_message(record: ErrorRecord, probe: Probe | None) -> str:
    """The message for a clause that was aborted: a line without its newline."""
    fault = record.fault
    where = f"action #{record.action}" if record.action else "predicate"
    more = f": {fault.text}" if fault.text else ""
    return f"{_enabled(record.epid, record.probe, probe)}{fault_text(fault)} in {where}{more}"


def action_failed_message(epid: int, identifier: int, probe: Probe | None, why: str) -> str:
    """The message for an action that could not be performed when it was consumed: a line without its newline."""
    return _enabled(epid, identifier, probe) + why
