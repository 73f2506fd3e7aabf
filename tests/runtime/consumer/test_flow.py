"""-F: prefixes, levels, probes that several clauses enable."""

import pytest

from kinst.runtime.clauses.environment import Record
from kinst.runtime.consumer.flow import Flow, flow_of
from tests.runtime.consumer.recording import Recording, clause

HEADER = b"CPU FUNCTION                                 \n"


def record(probe: int, which: int = 0, cpu: int = 0) -> Record:
    return (cpu, probe, which, 0, ())


def lines(*records: Record, **options: str | None) -> list[str]:
    recording = Recording([clause(), clause()], flowindent=None, **options)
    written = recording.consume(*records)
    assert written.startswith(HEADER)
    return written.removeprefix(HEADER).decode().split("\n")[:-1]


def line(text: str, cpu: int = 0) -> str:
    return f"{cpu:3} {text:41} "


@pytest.mark.parametrize(
    ("name", "flow"),
    [
        ("entry", Flow.ENTRY),
        ("method-entry", Flow.ENTRY),
        ("return", Flow.RETURN),
        ("x-return", Flow.RETURN),
        ("carpentry", Flow.NONE),
        ("reentry", Flow.NONE),
        ("entry-x", Flow.NONE),
        ("", Flow.NONE),
        ("17", Flow.NONE),
    ],
)
def test_names(name: str, flow: Flow) -> None:
    assert flow_of(name) is flow


def test_calls_indent() -> None:
    assert lines(record(1), record(10), record(30), record(12), record(13), record(11), record(2)) == [
        line("| :BEGIN"),
        line(" -> vm_fault"),
        line("  | vm_fault:17"),
        line("   -> pmap_enter"),
        line("   <- pmap_enter"),
        line(" <- vm_fault"),
        line("| :END"),
    ]


def test_system_calls_have_double_arrows() -> None:
    assert lines(record(20), record(21)) == [line(" => read"), line(" <= read")]


def test_two_clauses_of_one_probe_indent_once() -> None:
    assert lines(record(10, 0), record(10, 1), record(30), record(11, 0), record(11, 1), record(2)) == [
        line(" -> vm_fault"),
        line("  | vm_fault:entry"),
        line("  | vm_fault:17"),
        line("  | vm_fault:return"),
        line(" <- vm_fault"),
        line("| :END"),
    ]


def test_recursion_indents_again() -> None:
    assert lines(record(10), record(10), record(11), record(11)) == [
        line(" -> vm_fault"),
        line("   -> vm_fault"),
        line("   <- vm_fault"),
        line(" <- vm_fault"),
    ]


def test_more_returns_than_entries() -> None:
    assert lines(record(11), record(11), record(10)) == [
        line(" <- vm_fault"),
        line(" <- vm_fault"),
        line(" -> vm_fault"),
    ]


def test_each_cpu_has_its_own_level() -> None:
    assert lines(record(10, cpu=0), record(12, cpu=1), record(11, cpu=0), record(13, cpu=1)) == [
        line(" -> vm_fault", 0),
        line(" -> pmap_enter", 1),
        line(" <- vm_fault", 0),
        line(" <- pmap_enter", 1),
    ]


def test_levels_last_over_drains() -> None:
    recording = Recording([clause()], flowindent=None)
    recording.consume(record(10))

    assert recording.consume(record(30)) == line("  | vm_fault:17").encode() + b"\n"


def test_quiet_leaves_only_the_newline_away() -> None:
    recording = Recording([clause()], flowindent=None, quiet=None)

    assert recording.consume(record(10), record(11)) == HEADER + (line(" -> vm_fault") + line(" <- vm_fault")).encode()
