"""Records, errors, drops and the guest's console -> one JSON document, written as it happens: it can be piped.

    {"dtrace": {
      "probes": [                        in the order in which things happened, one a line:
        {"timestamp": 12,                ns of the machine's time; only where records carry it
         "cpu": 0, "id": 7, "provider": "fbt", "module": "kernel", "function": "f", "name": "entry",
         "output": [...]},               one or more objects for each recording action of the clause, see below
        {"error": {"cpu", "epid", "id", "provider", "module", "function", "name", "action", "fault", "value",
                   "message"}},          a clause was aborted; action 0 is the predicate
        {"drops": 3, "kind": "PRINCIPAL", "cpu": 0},
        {"console": "text of the guest's console\\n"}],      unless it goes elsewhere: --console, -o
        {"notice": "..."},               panic(), breakpoint(), stop() or raise(): what it did, where
      "aggregations": [...],             those that no printa() printed, when the run is over
      "end": {"reason": "timeout",       or power-off, until, wall-timeout, interrupted, returned, exit, panic,
                                         breakpoint, nothing-left, error
              "message": "...",          of an error
              "cpus": [                  where each is, if the run was stopped: timeout, Ctrl-C, panic and so on
                {"cpu": 0, "state": "runs", "address": "0x...", "symbol": "m`f+0x4", "instruction": "ret"}],
                                         state: runs, waits, off
              "not-started": [1],        CPUs that the guest never switched on
              "passed-over": "...",      enabled sites at which the guest wrote what cannot be probed: how many, and why
              "lacking": ["..."]}}}      what the guest executed that the machine's CPUs do not have

Objects in "output":

    {"value": v}                         trace(), sym() and the like
    {"message": "..."}, {"value": v}...  printf(): the text, then its arguments
    {"type": "struct s", "value": v}     print()
    {"memory": "00ff"}                   tracemem(), printm(): bytes as hexadecimal digits
    {"stack-frames": [{"address": "0x80", "symbol": "m`f+0x10"}, ...]}     stack(), ustack(): innermost first
    {"aggregations": [...]}              printa(); with a format {"message": "..."} comes first
    {"exit": 0}  {"clear": "@a"}  {"trunc": "@a", "argument": 5}  {"normalize": "@a", "argument": 2}
    {"denormalize": "@a"}  {"setopt": "quiet", "argument": "yes"}, with "failed": why, if it could not be set
    {"system": "date", "printed": "..."}  {"freopen": "path"}  {"ftruncate": true}      the last two do nothing here

An aggregation is {"aggregation-name": "a", "function": "count", "aggregation-data": [{"keys": [...], "value": n}]},
in dtrace's order. A distribution's rows have {"buckets": [{"value": v, "count": n}, ...]} instead: those that are not
empty, ascending, named by their smallest value (the lowest one of lquantize and llquantize: {"below": v, "count": n}).
Values are normalized; "normal" tells by what, if it is not 1.

A value v is a number as its type has it, a string, "0x..." for pointers, an object for structs, a list for arrays, a
{"address", "symbol"} object or a list of them for stacks. Bytes that are no UTF-8 are written \\xNN.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import BinaryIO, Final

from kinst.runtime.clauses.environment import ErrorRecord, Record, Stack, Symbols
from kinst.runtime.consumer import distributions, printf
from kinst.runtime.consumer.json_values import Json, JsonValues, text
from kinst.runtime.consumer.live_options import LiveOptions
from kinst.runtime.consumer.messages import Drop, error_message
from kinst.runtime.consumer.records import NOT_RECORDED, Recorded, change, option_of
from kinst.runtime.consumer.totals import Cell, Totals, is_distribution
from kinst.runtime.dlang import formats, program
from kinst.runtime.dlang.options import OptionError
from kinst.runtime.dlang.types.type_names import describe as describe_type
from kinst.runtime.dlang.types.types import SYMBOL
from kinst.runtime.providers.provider import Probe
from kinst.runtime.trap.faults import FAULT_TEXTS

Entry = Record | ErrorRecord | bytes
_ESCAPED: Final = re.compile("[\udc80-\udcff]")  # how Python keeps bytes of names that are no UTF-8


class JsonOutput:
    """See the module. `status` is what the last exit() said that was consumed."""

    def __init__(
        self,
        output: BinaryIO,
        clauses: Sequence[program.Clause],
        totals: Totals,
        symbols: Symbols,
        describe: Callable[[int], Probe | None],
        options: LiveOptions,
        *,
        console: BinaryIO | None = None,
    ) -> None:
        """As `kinst.runtime.consumer.output.TextOutput`. Errors are part of the document, and so is the guest's console
        unless `console` says where it goes."""
        self.status: int | None = None
        self._output = output
        self._clauses = clauses
        self._totals = totals
        self._symbols = symbols
        self._describe = describe
        self._options = options
        self._console_output = console
        self._values = JsonValues(symbols)
        self._partial = bytearray()  # of the console's present line
        self._pieces: list[str] = ['{"dtrace": {"probes": [']
        self._separator = "\n"

    def consume(self, taken: Sequence[Entry]) -> None:
        """Write and perform, in this order."""
        for entry in taken:
            if isinstance(entry, tuple):
                self._consume(entry)
            elif isinstance(entry, bytes):
                self._console(entry)
            elif not self._options.is_on("noerror"):
                self._error(entry)

    def _put(self, element: Json) -> None:
        self._pieces.append(self._separator + json.dumps(element, ensure_ascii=False))
        self._separator = ",\n"

    def _consume(self, record: Record) -> None:
        cpu, identifier, clause, timestamp, values = record
        head: dict[str, Json] = {"timestamp": timestamp} if timestamp else {}
        head |= {"cpu": cpu, "id": identifier, **self._probe(identifier)}
        actions = [action for action in self._clauses[clause].actions if not isinstance(action, NOT_RECORDED)]
        output = [shown for action, value in zip(actions, values, strict=True) for shown in self._action(action, value)]
        self._put(head | {"output": output})

    def _probe(self, identifier: int) -> dict[str, str]:
        probe = self._describe(identifier)
        if probe is None:
            return {}
        return {"provider": probe.provider, "module": probe.module, "function": probe.function, "name": probe.name}

    # -- actions ------------------------------------------------------------------------------------------------------

    def _action(self, action: program.Action, value: Recorded) -> Iterator[Json]:
        match action:
            case program.Printf():
                yield from self._formatted(action, value)
            case program.Printa():
                yield from self._printa(action)
            case program.Exit():
                self.status = value if isinstance(value, int) else 0
                yield {"exit": self.status}
            case program.ChangeAggregation():
                change(self._totals, action, value)
                argument = {} if value is None else {"argument": value}
                yield {action.kind: f"@{action.aggregation.name}", **argument}
            case program.SetOption():
                yield self._set_option(*option_of(value))
            case program.Truncate():
                yield {"ftruncate": True}
            case _:
                yield self._value(action, value)

    def _value(self, action: program.Action, value: Recorded) -> Json:
        if isinstance(value, tuple):
            raise TypeError(f"several values of {action}")
        match action:
            case program.Print(type=kind):
                return {"type": describe_type(kind), "value": self._values.value(kind, value)}
            case program.Trace(value=expression):
                return {"value": self._values.value(expression.type, value)}
            case program.StackTrace() if isinstance(value, Stack):
                return {"stack-frames": self._values.stack(value)}
            case program.SymbolTrace():
                return {"value": self._values.value(SYMBOL, value)}
            case _:
                return {"memory": value.hex() if isinstance(value, bytes) else ""}

    def _formatted(self, action: program.Printf, values: Recorded) -> Iterator[Json]:
        if not isinstance(values, tuple):
            raise TypeError("one value where several were expected")
        types = [argument.type for argument in action.arguments]
        message = printf.render(formats.parse(action.format), types, values, self._symbols)
        match action.kind:
            case "system":
                command = message.partition(b"\0")[0]
                done = subprocess.run([b"/bin/sh", b"-c", command], check=False, stdout=subprocess.PIPE)
                yield {"system": text(message), "printed": text(done.stdout)}
            case "freopen":
                yield {"freopen": text(message)}
            case _:
                yield {"message": text(message)}
                for kind, value in zip(types, values, strict=True):
                    yield {"value": self._values.value(kind, value)}

    def _printa(self, action: program.Printa) -> Iterator[Json]:
        aggregations = action.aggregations
        alone = len(aggregations) == 1
        rows = self._totals.rows(aggregations[0]) if alone else self._totals.joined(aggregations)
        if action.format is not None:
            render = printf.printa_renderer(formats.parse(action.format), aggregations[0].keys, self._symbols)
            lines = [render(row.key, [_printed(cell) for cell in row.cells]) for row in rows]
            yield {"message": text(b"".join(lines))}
        shown = [self._values.aggregation(one, rows, column) for column, one in enumerate(aggregations)]
        yield {"aggregations": shown}
        self._totals.mark_printed(aggregations)

    def _set_option(self, name: str, value: str | None) -> Json:
        done: dict[str, Json] = {"setopt": name}
        if value is not None:
            done["argument"] = value
        try:
            self._options.set_while_running(name, value)
        except OptionError as error:
            done["failed"] = error.why
        return done

    # -- the rest -----------------------------------------------------------------------------------------------------

    def _error(self, record: ErrorRecord) -> None:
        probe = self._describe(record.probe)
        fault = record.fault
        self._put(
            {
                "error": {
                    "cpu": record.cpu,
                    "epid": record.epid,
                    "id": record.probe,
                    **self._probe(record.probe),
                    "action": record.action,
                    "fault": FAULT_TEXTS[fault.kind],
                    "value": hex(fault.value),
                    "message": error_message(record, probe).removeprefix("dtrace: "),
                }
            }
        )

    def _console(self, data: bytes) -> None:
        if self._console_output is not None:
            self._console_output.write(data)
            return
        self._partial += data
        end = self._partial.rfind(b"\n") + 1
        if end:
            self._put({"console": text(bytes(self._partial[:end]))})
            del self._partial[:end]

    def drops(self, drops: Iterable[Drop]) -> None:
        """Tell what was lost."""
        for drop in drops:
            self._put({"drops": drop.count, "kind": drop.kind.value, "cpu": drop.cpu})

    def notices(self, notices: Iterable[str]) -> None:
        """Tell what destructive actions did."""
        for notice in notices:
            self._put({"notice": notice})

    def flush(self) -> None:
        """Let the reader see it."""
        self._output.write(_encoded("".join(self._pieces)))
        self._pieces.clear()
        self._output.flush()
        if self._console_output is not None:
            self._console_output.flush()

    def finish(self, end: Mapping[str, Json] | None = None) -> None:
        """The run is over, as `end` says: the rest of the console, the aggregations, the document's end."""
        if self._partial:
            self._put({"console": text(bytes(self._partial))})
            self._partial.clear()
        self._pieces.append('\n],\n"aggregations": [')
        self._separator = "\n"
        for aggregation in self._totals.unprinted():
            self._put(self._values.aggregation(aggregation, self._totals.rows(aggregation)))
        shown = "" if end is None else f',\n"end": {json.dumps(end, ensure_ascii=False)}'
        self._pieces.append(f"\n]{shown}}}}}\n")
        self.flush()


def _printed(cell: Cell) -> printf.AggregateValue:
    if is_distribution(cell.aggregation):
        return lambda: distributions.render(cell.aggregation, cell.buckets, cell.normal)
    return cell.number


def _encoded(document: str) -> bytes:
    try:
        return document.encode()
    except UnicodeEncodeError:
        return _ESCAPED.sub(lambda found: rf"\\x{ord(found[0]) - 0xDC00:02x}", document).encode()
