"""Errors and drops on stderr."""

import pytest

from kinst.runtime.clauses.environment import ErrorRecord
from kinst.runtime.consumer.messages import Drop, DropKind
from kinst.runtime.trap.faults import Fault, FaultKind
from tests.runtime.consumer.recording import Recording


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (
            ErrorRecord(0, 10, 3, 1, Fault(FaultKind.BADADDR, 0x10)),
            "(ID 10: fbt:kernel:vm_fault:entry): invalid address (0x10) in action #1",
        ),
        (
            ErrorRecord(0, 1, 3, 0, Fault(FaultKind.DIVZERO)),
            "(ID 1: dtrace:::BEGIN): divide-by-zero in predicate",
        ),
        (
            ErrorRecord(0, 1, 3, 2, Fault(FaultKind.BADALIGN, -1)),
            "(ID 1: dtrace:::BEGIN): invalid alignment (0xffffffffffffffff) in action #2",
        ),
        (
            ErrorRecord(0, 1, 3, 2, Fault(FaultKind.ILLOP, 7, "no such register")),
            "(ID 1: dtrace:::BEGIN): illegal operation in action #2: no such register",
        ),
        (ErrorRecord(0, 99, 3, 2, Fault(FaultKind.NOSCRATCH)), "(ID 99: :::): out of scratch space in action #2"),
    ],
)
def test_errors(record: ErrorRecord, text: str) -> None:
    recording = Recording()

    assert recording.consume(record) == b""
    assert recording.errors.getvalue() == f"dtrace: error on enabled probe ID 3 {text}\n"


def test_what_was_printed_before_an_error_is_written_before_it() -> None:
    recording = Recording()
    recording.output.consume([b"console\n", ErrorRecord(0, 1, 3, 0, Fault(FaultKind.DIVZERO))])

    assert recording.written.getvalue() == b"console\n"


@pytest.mark.parametrize(
    ("drop", "tag", "text"),
    [
        (Drop(DropKind.PRINCIPAL, 1, 2), "PRINCIPAL", "1 drop on CPU 2"),
        (Drop(DropKind.PRINCIPAL, 5, 0), "PRINCIPAL", "5 drops on CPU 0"),
        (Drop(DropKind.AGGREGATION, 2, 1), "AGGREGATION", "2 aggregation drops on CPU 1"),
        (Drop(DropKind.DYNAMIC, 1), "DYNAMIC", "1 dynamic variable drop"),
        (Drop(DropKind.RINSING, 2), "DYNRINSE", "2 dynamic variable drops with non-empty rinsing list"),
        (Drop(DropKind.DIRTY, 2), "DYNDIRTY", "2 dynamic variable drops with non-empty dirty list"),
        (Drop(DropKind.SPECULATION, 1), "SPEC", "1 speculative drop"),
        (Drop(DropKind.SPECULATION_BUSY, 1), "SPECBUSY", "1 failed speculation (available buffer still busy)"),
        (
            Drop(DropKind.SPECULATION_UNAVAILABLE, 3),
            "SPECUNAVAIL",
            "3 failed speculations (no speculative buffer available)",
        ),
        (Drop(DropKind.DOUBLE_ERROR, 2), "DBLERROR", "2 errors in ERROR probe enabling"),
    ],
)
def test_drops(drop: Drop, tag: str, text: str) -> None:
    plain, tagged = Recording(), Recording(droptags=None, quiet=None)
    plain.output.drops([drop])
    tagged.output.drops([drop])

    assert plain.errors.getvalue() == f"dtrace: {text}\n"
    assert tagged.errors.getvalue() == f"dtrace: [DTRACEDROP_{tag}] {text}\n"
