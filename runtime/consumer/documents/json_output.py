"""Records, errors, drops and the guest's console -> one JSON document, written as things happen, so that it can be
piped.

    {"dtrace": {
      "probes": [                        in the order in which things happened, one per line:
        {"timestamp": 12,                ns of the machine's time; only if records carry it
         "cpu": 0, "id": 7, "provider": "fbt", "module": "kernel", "function": "f", "name": "entry",
         "output": [...]},               one or more objects for each recording action of the clause, see below
        {"error": {"cpu", "epid", "id", "provider", "module", "function", "name", "action", "fault", "value",
                   "message"}},          a clause was aborted; action 0 is the predicate
        {"drops": 3, "kind": "PRINCIPAL", "cpu": 0},
        {"console": "text of the guest's console\\n"}],      unless it goes elsewhere (--console, -o)
        {"call": {...}},                 a call of --call-each, see `call_table.call_value`
        {"notice": "..."},               panic(), breakpoint(), stop() or raise(): what it did, where
      "aggregations": [...],             those that no printa() printed, at the end of the run
      "end": {"reason": "timeout",       or power-off, until, wall-timeout, interrupted, returned, exit, panic,
                                         breakpoint, nothing-left, error
              "message": "...",          of an error
              "cpus": [                  where each is, if the run was stopped: timeout, Ctrl-C, panic and so on
                {"cpu": 0, "state": "runs", "address": "0x...", "symbol": "m`f+0x4", "instruction": "ret"}],
                                         state: runs, waits, off
              "not-started": [1],        CPUs that the guest never switched on
              "passed-over": "...",      enabled sites where the guest wrote what cannot be probed: how many, why
              "stuck": {"cpu": 0, "state": "runs", "address": "0x...", "symbol": "m`f", "instruction": "j 0",
                        "what": "spins", "why": "it has printed nothing",
                        "nothing-at": ["0x88000000", "0x10000000000"]},     how the guest made no progress;
                                         nothing-at: the range without memory or devices that it accessed
              "assumed": ["..."],        registers that no device has: who touched each, and what it was told
              "lacking": ["..."]}}}      instructions that the guest executed and the emulator does not support

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
Values are normalized; "normal" is the divisor, if it is not 1.

A value v is a number with its type's sign, a string, "0x..." for pointers, an object for structs, a list for arrays, a
{"address", "symbol"} object or a list of them for stacks. Bytes that are not UTF-8 are written \\xNN. Control
characters, and marks that change the direction of text, are \\uNNNN in the document: a guest's string must not control
a terminal.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import BinaryIO, Final

from kinst.runtime.clauses.environment import ErrorRecord, Record, Symbols
from kinst.runtime.consumer.console_lines import whole
from kinst.runtime.consumer.documents.json_values import Json, JsonValues, text
from kinst.runtime.consumer.documents.performed_actions import PerformedActions
from kinst.runtime.consumer.live_options import LiveOptions
from kinst.runtime.consumer.messages import Drop, error_message
from kinst.runtime.consumer.totals import Totals
from kinst.runtime.dlang import program
from kinst.runtime.providers.provider import Probe
from kinst.runtime.trap.faults import FAULT_TEXTS

Entry = Record | ErrorRecord | bytes
_DELETE: Final = "\x7f"
_SUSPECT: Final = re.compile(r"[^\x00-\x7e]")  # json.dumps has escaped the controls below
_BYTES: Final = range(0xDC80, 0xDD00)  # how Python keeps bytes of names that are not UTF-8


class JsonOutput:
    """Writes the document that the module describes."""

    head = '{"dtrace": {"probes": ['
    separators = ("\n", ",\n")  # before the first element, and before each of the others
    after = ""  # after each element

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
        """The arguments are those of `kinst.runtime.consumer.output.TextOutput`. Errors are part of the document, and
        so is the guest's console unless it has a stream of its own."""
        self._output = output
        self._clauses = clauses
        self._totals = totals
        self._describe = describe
        self._probes: dict[int, dict[str, str]] = {}  # as records name them
        self._options = options
        self._console_output = console
        self._values = JsonValues(symbols)
        self._actions = PerformedActions(totals, symbols, options, self._values)
        self._partial = bytearray()  # the console's line so far
        self._pieces: list[str] = [self.head]
        self._separator = self.separators[0]

    @property
    def status(self) -> int | None:
        """The status of the last exit() that was consumed; None if there was none."""
        return self._actions.status

    def consume(self, taken: Sequence[Entry]) -> None:
        """Write entries, and perform the actions in them, in order."""
        for entry in taken:
            if isinstance(entry, tuple):
                self._consume(entry)
            elif isinstance(entry, bytes):
                self._console(entry)
            elif not self._options.is_on("noerror"):
                self._error(entry)

    def _put(self, element: Json) -> None:
        self._pieces.append(self._separator + json.dumps(element, ensure_ascii=False) + self.after)
        self._separator = self.separators[1]

    def _consume(self, record: Record) -> None:
        cpu, identifier, clause, timestamp, values = record
        head: dict[str, Json] = {"timestamp": timestamp} if timestamp else {}
        head |= {"cpu": cpu, "id": identifier, **self._probe(identifier)}
        self._put(head | {"output": self._actions.of_record(self._clauses[clause], values)})

    def _probe(self, identifier: int) -> dict[str, str]:
        named = self._probes.get(identifier)
        if named is None:
            probe = self._describe(identifier)
            fields = () if probe is None else ("provider", "module", "function", "name")
            named = self._probes[identifier] = {name: getattr(probe, name) for name in fields}
        return named

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
        end = whole(self._partial)
        if end:
            self._put({"console": text(bytes(self._partial[:end]))})
            del self._partial[:end]

    def drops(self, drops: Iterable[Drop]) -> None:
        """Write what was lost."""
        for drop in drops:
            self._put({"drops": drop.count, "kind": drop.kind.value, "cpu": drop.cpu})

    def notices(self, notices: Iterable[str]) -> None:
        """Write what destructive actions did."""
        for notice in notices:
            self._put({"notice": notice})

    def called(self, value: Json) -> None:
        """Write a call of --call-each."""
        self._put(value)

    def flush(self) -> None:
        """Flush what was written so far."""
        self._output.write(_encoded("".join(self._pieces)))
        self._pieces.clear()
        self._output.flush()
        if self._console_output is not None:
            self._console_output.flush()

    def finish(self, end: Mapping[str, Json] | None = None) -> None:
        """Write the rest of the console, the aggregations, and `end`, which describes the end of the run."""
        if self._partial:
            self._put({"console": text(bytes(self._partial))})
            self._partial.clear()
        self._end(end)
        self.flush()

    def _end(self, end: Mapping[str, Json] | None) -> None:
        self._pieces.append('\n],\n"aggregations": [')
        self._separator = self.separators[0]
        for aggregation in self._totals.unprinted():
            self._put(self._values.aggregation(aggregation, self._totals.rows(aggregation)))
        shown = "" if end is None else f',\n"end": {json.dumps(end, ensure_ascii=False)}'
        self._pieces.append(f"\n]{shown}}}}}\n")


def _encoded(document: str) -> bytes:
    if not document.isascii() or _DELETE in document:
        document = _SUSPECT.sub(_escaped, document)
    return document.encode()


def _escaped(found: re.Match[str]) -> str:
    """A character that is invisible, or would control a terminal, as JSON's escape, which means the same text."""
    letter, code = found[0], ord(found[0])
    if letter.isprintable():
        return letter
    if code in _BYTES:
        return rf"\\x{code - 0xDC00:02x}"
    return json.dumps(letter)[1:-1] if letter != _DELETE else r"\u007f"
