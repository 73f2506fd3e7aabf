"""The JSON document: it parses, and says what happened."""

import io
import json
import struct
from typing import Any

import pytest

from kinst.runtime.clauses.environment import ErrorRecord, Stack, SymbolName
from kinst.runtime.consumer.documents.json_output import JsonOutput
from kinst.runtime.consumer.messages import Drop, DropKind
from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import AggregatingFunction, ChangeAggregation, Printa
from kinst.runtime.dlang.types.types import CHAR, INT, LONG, STRING, SYMBOL, UINT, ULONG, DType
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.targets.c_types import Aggregate, AggregateKind, Array, EnumType, Member, Pointer
from tests.runtime.consumer.recording import (
    PROBES,
    NamedSymbols,
    Recording,
    aggregation,
    clause,
    expression,
    printf,
    trace,
)

F = AggregatingFunction
BEGIN = {"cpu": 0, "id": 1, "provider": "dtrace", "module": "", "function": "", "name": "BEGIN"}


class Document:
    """A JSON output in memory over a `Recording`'s options and totals."""

    def __init__(self, *clauses: program.Clause, console: io.BytesIO | None = None) -> None:
        self.recording = Recording(clauses)
        self.written = io.BytesIO()
        self.output = JsonOutput(
            self.written,
            clauses,
            self.recording.totals,
            NamedSymbols(),
            PROBES.get,
            self.recording.options,
            console=console,
        )

    def consume(self, *taken: object) -> None:
        self.output.consume(taken)  # type: ignore[arg-type]  # records of any values

    def finish(self) -> Any:
        self.output.finish()
        return json.loads(self.written.getvalue())["dtrace"]


def output_of(action: program.Action, value: object) -> Any:
    document = Document(clause(action))
    document.consume((0, 1, 0, 0, (value,)))
    return document.finish()["probes"][0]["output"]


def test_a_console_of_its_own() -> None:
    console = io.BytesIO()
    document = Document(console=console)
    document.consume(b"boot\nlog")
    document.output.flush()
    assert console.getvalue() == b"boot\nlog"
    assert document.finish() == {"probes": [], "aggregations": []}


def test_an_empty_run() -> None:
    assert Document().finish() == {"probes": [], "aggregations": []}


def test_records_errors_drops_and_the_console_in_order() -> None:
    document = Document(clause())
    document.consume(b"bo", (0, 1, 0, 0, ()), b"ot\nx", (1, 30, 0, 77, ()))
    document.consume(ErrorRecord(0, 1, 3, 2, Fault(FaultKind.BADADDR, 0x10)))
    document.output.drops([Drop(DropKind.PRINCIPAL, 2, 1)])

    assert document.finish()["probes"] == [
        {**BEGIN, "output": []},
        {"console": "boot\n"},
        {
            "timestamp": 77,
            "cpu": 1,
            "id": 30,
            "provider": "kinst",
            "module": "kernel",
            "function": "vm_fault",
            "name": "17",
            "output": [],
        },
        {
            "error": {
                **BEGIN,
                "epid": 3,
                "action": 2,
                "fault": "invalid address",
                "value": "0x10",
                "message": "error on enabled probe ID 3 (ID 1: dtrace:::BEGIN): invalid address (0x10) in action #2",
            }
        },
        {"drops": 2, "kind": "PRINCIPAL", "cpu": 1},
        {"console": "x"},
    ]


def test_it_is_written_as_it_happens() -> None:
    document = Document(clause())
    document.consume((0, 1, 0, 0, ()))
    document.output.flush()

    assert json.loads(document.written.getvalue() + b"]}}")["dtrace"]["probes"] == [{**BEGIN, "output": []}]


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        (INT, -1, -1),
        (UINT, -1, 0xFFFFFFFF),
        (ULONG, (1 << 64) - 1, (1 << 64) - 1),
        (LONG, 1 << 63, -(1 << 63)),
        (STRING, b'caf\xc3\xa9 \xff"', 'café \\xff"'),
        (Pointer(INT), 0x10, "0x10"),
        (EnumType("e", INT, (("A", 1),)), 1, "A"),
        (EnumType("e", INT, (("A", 1),)), 2, 2),
        (Array(CHAR, 4), b"ab\0c", "ab"),
        (Array(INT, 2), struct.pack("<2i", 1, -2), [1, -2]),
        (SYMBOL, SymbolName("sym", 0x1000), {"address": "0x1000", "symbol": "kernel`main"}),
    ],
)
def test_values(kind: DType, value: object, shown: object) -> None:
    assert output_of(trace(kind), value) == [{"value": shown}]


def test_structs_are_objects() -> None:
    inner = Aggregate(AggregateKind.UNION, "")
    inner.complete((Member("u", INT, 0), Member("v", UINT, 0)), 4, 4)
    outer = Aggregate(AggregateKind.STRUCT, "s")
    outer.complete((Member("a", LONG, 0), Member("", inner, 8), Member("bits", INT, 12, 4, 3)), 16, 8)
    action = program.Print(expression(outer), outer)

    assert output_of(action, struct.pack("<qiI", 5, -1, 0x7F)) == [
        {"type": "struct s", "value": {"a": 5, "u": -1, "v": 0xFFFFFFFF, "bits": 7}}
    ]


@pytest.mark.parametrize(
    ("action", "value", "shown"),
    [
        (printf(b"%d=%s", INT, STRING), (1, b"x"), [{"message": "1=x"}, {"value": 1}, {"value": "x"}]),
        (program.TraceMemory(expression(LONG), 2, None), b"\x00\xff", [{"memory": "00ff"}]),
        (
            program.StackTrace(is_user=False, frames=None),
            Stack((0x1004,), 5),
            [{"stack-frames": [{"address": "0x1004", "symbol": "kernel`main+0x4"}]}],
        ),
        (
            program.SymbolTrace(program.SymbolKey(SYMBOL, "sym", expression(LONG))),
            SymbolName("sym", 5),
            [{"value": {"address": "0x5", "symbol": "0x5"}}],
        ),
        (program.Exit(expression(INT)), 3, [{"exit": 3}]),
        (printf(b"echo hi", kind="system"), (), [{"system": "echo hi", "printed": "hi\n"}]),
        (printf(b"/x", kind="freopen"), (), [{"freopen": "/x"}]),
        (program.Truncate(), None, [{"ftruncate": True}]),
        (program.SetOption(()), (b"quiet", b"yes"), [{"setopt": "quiet", "argument": "yes"}]),
        (
            program.SetOption(()),
            (b"bufsize", b"1"),
            [{"setopt": "bufsize", "argument": "1", "failed": "Operation illegal when tracing is active"}],
        ),
    ],
)
def test_actions(action: program.Action, value: object, shown: object) -> None:
    assert output_of(action, value) == shown


def test_aggregations() -> None:
    made = aggregation(F.SUM, STRING, INT)
    document = Document(clause(ChangeAggregation("normalize", made, expression(INT)), Printa(b"%s=%@d;", (made,))))
    document.recording.add(made, (b"a", 1), 10)
    document.recording.add(made, (b"b", -1), 4)
    quantize = aggregation(F.QUANTIZE, number=2)
    document.recording.add(quantize, (), 5, -1, 5)
    document.recording.add(aggregation(F.LQUANTIZE, number=3, parameters=(0, 10, 5)), (), -3, 7)
    document.recording.add(aggregation(F.LLQUANTIZE, number=4, parameters=(10, 1, 2, 10)), (), 3, 25)
    document.consume((0, 1, 0, 0, (2, None)))
    shown = document.finish()

    assert shown["probes"][0]["output"] == [
        {"normalize": "@a", "argument": 2},
        {"message": "b=2;a=5;"},
        {
            "aggregations": [
                {
                    "aggregation-name": "a",
                    "function": "sum",
                    "aggregation-data": [
                        {"keys": ["b", -1], "value": 2, "normal": 2},
                        {"keys": ["a", 1], "value": 5, "normal": 2},
                    ],
                }
            ]
        },
    ]
    assert [one["aggregation-data"][0]["buckets"] for one in shown["aggregations"]] == [
        [{"value": -1, "count": 1}, {"value": 4, "count": 2}],
        [{"below": 0, "count": 1}, {"value": 5, "count": 1}],
        [{"below": 10, "count": 1}, {"value": 20, "count": 1}],
    ]


def test_the_status() -> None:
    document = Document(clause(program.Exit(expression(INT))))
    document.consume((0, 1, 0, 0, (4,)))

    assert document.output.status == 4
