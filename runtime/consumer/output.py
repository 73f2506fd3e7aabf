"""Records, errors and the guest's console -> text as dtrace(1) prints it. Actions of the consumer are performed.

Actions such as clear(), printa() and setopt() are records to the kernel: libdtrace performs them when it consumes the
record (dt_consume.c), so that they take effect in the order of the output, after the records before them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO, Final, Protocol, TextIO

from kinst.runtime.clauses.environment import ErrorRecord, Record, Symbols
from kinst.runtime.consumer import flow
from kinst.runtime.consumer.aggregation_text import AggregationText
from kinst.runtime.consumer.console_lines import LiveLines, WholeLines
from kinst.runtime.consumer.live_options import LiveOptions
from kinst.runtime.consumer.messages import Drop, action_failed_message, drop_message, error_message
from kinst.runtime.consumer.records import ClauseSteps, Step, StepContext
from kinst.runtime.consumer.streams import OutputStream
from kinst.runtime.consumer.totals import Totals
from kinst.runtime.consumer.values import ValueText
from kinst.runtime.dlang.formats import MOST_COLUMNS
from kinst.runtime.dlang.program import Clause
from kinst.runtime.providers.provider import Probe

HEADER: Final = b"%3s %6s %32s\n" % (b"CPU", b"ID", b"FUNCTION:NAME")
Entry = Record | ErrorRecord | bytes


class Session(Protocol):
    """What is traced: the things that records name by number, and the options."""

    @property
    def clauses(self) -> Sequence[Clause]:
        """The clauses, by number. It may grow: a clause is in it before its first record."""
        ...

    @property
    def totals(self) -> Totals:
        """The aggregations."""
        ...

    @property
    def symbols(self) -> Symbols:
        """Names of addresses."""
        ...

    @property
    def options(self) -> LiveOptions:
        """Read at the start, and whenever setopt() changes one."""
        ...

    def probe(self, identifier: int) -> Probe | None:
        """The probe of an identifier."""
        ...

    def epid(self, clause: int, probe: int) -> int:
        """The id of the enabling of a probe by a clause, for messages."""
        ...


class TextOutput:
    """dtrace's output. `status` is that of the last exit() that was consumed."""

    def __init__(
        self,
        output: BinaryIO,
        errors: TextIO,
        session: Session,
        *,
        console: BinaryIO | None = None,
        is_asked: bool = True,
    ) -> None:
        """Nothing is written yet.

        Args:
            output: where output goes.
            errors: where errors and drops go.
            session: what is traced.
            console: where the guest's console goes, if not to `output`.
            is_asked: whether the user gave the clauses. Else output is that of a run without any.
        """
        self.status: int | None = None
        self._stream = OutputStream(output)
        self._errors = errors
        self._clauses = session.clauses
        self._asked = session.clauses if is_asked else ()
        self._totals = session.totals
        self._symbols = session.symbols
        self._describe = session.probe
        self._options = session.options
        self._console_output = console
        self._epid = session.epid
        self._whole_lines = WholeLines(self._stream.write_shown)
        self._live_lines = LiveLines(self._stream.write_shown)
        self._has_header = False
        self._rows: dict[int, bytes] = {}
        self._flow = flow.FlowIndent()
        self._record: Record | None = None  # the record that is being consumed
        self._taken: Sequence[Entry] = ()
        self._following: dict[int, Record] | None = None
        self._configure()

    def _configure(self) -> None:
        """Make everything that depends on options."""
        options = self._options
        self._is_quiet = options.is_on("quiet")
        self._has_flow = options.is_on("flowindent")
        values = ValueText(
            self._symbols,
            stack_indent=min(options.number("stackindent"), MOST_COLUMNS),
            string_size=options.number("strsize"),
            is_raw=options.is_on("rawbytes"),
        )
        self._aggregations = AggregationText(self._totals, values, options)
        context = StepContext(
            stream=self._stream,
            totals=self._totals,
            symbols=self._symbols,
            options=options,
            values=values,
            aggregations=self._aggregations,
            failed=self._action_failed,
            changed=self._reconfigure,
            exited=self._exited,
        )
        self._maker = ClauseSteps(context)
        self._steps: dict[int, list[Step]] = {}

    def _reconfigure(self) -> None:
        """Apply setopt(). It also affects the rest of its own clause: the list of steps that `_consume` is going
        through is changed in place."""
        assert self._record is not None, "only a record changes options"
        clause = self._record[2]
        taken = self._steps[clause]
        self._configure()
        taken[:] = self._maker.steps(self._clauses[clause])
        self._steps[clause] = taken

    # -- records ------------------------------------------------------------------------------------------------------

    def consume(self, taken: Sequence[Entry]) -> None:
        """Print entries, and perform the actions in them, in order."""
        self._taken, self._following = taken, None
        for place, entry in enumerate(taken):
            if isinstance(entry, tuple):
                self._hide_line()
                self._consume(entry, place)
            elif isinstance(entry, bytes):
                self._console(entry)
            elif not self._options.is_on("noerror"):
                self._print_error(error_message(entry, self._describe(entry.probe)))

    def _consume(self, record: Record, place: int) -> None:
        cpu, identifier, clause, _, values = record
        if not self._has_header:
            self._write_header()
        write = self._stream.write
        if self._has_flow:
            write(self._flow.line(record, self._next(place), self._describe(identifier)))
        elif not self._is_quiet:
            write(b"%3d%b" % (cpu, self._rows.get(identifier) or self._row(identifier)))
        if values:
            self._record = record
            steps = self._steps.get(clause)
            if steps is None:
                steps = self._steps[clause] = self._maker.steps(self._clauses[clause])
            for step, value in zip(steps, values, strict=True):
                step(value)
        if not self._is_quiet:
            write(b"\n")

    def _next(self, place: int) -> Record | None:
        """The next record of the same CPU. The table is made only for -F."""
        if self._following is None:
            self._following = _following(self._taken)
        return self._following.get(place)

    def _write_header(self) -> None:
        # dtrace(1) prints it with the first probe that fires (chew() in dtrace.c), so a run without records has none;
        # and -q does not suppress that of -F.
        self._has_header = True
        if self._has_flow:
            self._stream.write(flow.HEADER)
        elif not self._is_quiet:
            self._stream.write(HEADER)

    def _row(self, identifier: int) -> bytes:
        probe = self._describe(identifier)
        name = ":" if probe is None else f"{probe.function}:{probe.name}"
        row = self._rows[identifier] = f" {identifier:6d} {name:>32s} ".encode()
        return row

    def _exited(self, status: int) -> None:
        self.status = status

    def _action_failed(self, why: str) -> None:
        if self._record is not None:
            _, identifier, clause, _, _ = self._record
            epid = self._epid(clause, identifier)
            self._print_error(action_failed_message(epid, identifier, self._describe(identifier), why))

    # -- the rest -----------------------------------------------------------------------------------------------------

    def _console(self, data: bytes) -> None:
        if self._console_output is not None:
            self._console_output.write(data)
        elif self._stream.is_terminal:
            self._live_lines.show(data)
        elif self._asked:
            self._whole_lines.show(data)
        else:  # no records can come between: the console is passed on byte by byte
            self._stream.write_shown(data)

    def _hide_line(self) -> None:
        """Something other than the console is about to be printed."""
        if self._stream.is_terminal:
            self._live_lines.hide()

    def _print_error(self, line: str) -> None:
        self._hide_line()
        self._stream.flush()  # stdout and stderr may be the same terminal or file: keep the order
        self._errors.write(line + "\n")

    def drops(self, drops: Iterable[Drop]) -> None:
        """Print what was lost."""
        for drop in drops:
            self._print_error(drop_message(drop, has_tag=self._options.is_on("droptags")))

    def notices(self, notices: Iterable[str]) -> None:
        """Print what destructive actions did."""
        for notice in notices:
            self._print_error(f"dtrace: {notice}")

    def flush(self) -> None:
        """Flush all three streams."""
        if self._stream.is_terminal:
            self._live_lines.unhide()
        self._stream.flush()
        self._errors.flush()
        if self._console_output is not None:
            self._console_output.flush()

    def finish(self, end: Mapping[str, Any] | None = None) -> None:
        """Print what comes at the end of a run: the console's last line, a blank line, and the aggregations that no
        printa() printed. dtrace does not print how the run ended."""
        self._live_lines.finish()
        self._whole_lines.finish()
        if self._asked:
            self._stream.write(b"\n")  # with -q, too, as dtrace(1) does
        for aggregation in self._totals.unprinted():
            for line in self._aggregations.single(aggregation):
                self._stream.write(line)
        self._stream.restore()
        self.flush()


def _following(taken: Sequence[Entry]) -> dict[int, Record]:
    """Index of a record -> the next record of its CPU. An error ends the search, as its record does in libdtrace."""
    following: dict[int, Record] = {}
    next_of: dict[int, Record] = {}
    for place in range(len(taken) - 1, -1, -1):
        entry = taken[place]
        if isinstance(entry, tuple):
            if entry[0] in next_of:
                following[place] = next_of[entry[0]]
            next_of[entry[0]] = entry
        elif isinstance(entry, ErrorRecord):
            next_of.pop(entry.cpu, None)
    return following
