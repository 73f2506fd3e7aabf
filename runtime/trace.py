"""An image in a machine, with probes enabled: it runs, and its records are read. See `kinst.runtime.api`."""

import gc
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kinst.rewriter.shell.fresh_file import replaced_file
from kinst.runtime.engine.bare_qiling import BareQiling
from kinst.runtime.input.expression import expression
from kinst.runtime.input.typist import Keyboard, lines_to_type
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.snapshots.snapshot import Snapshot
from kinst.runtime.tracing.guests.guest import Guest
from kinst.runtime.tracing.host.ending import Ending
from kinst.runtime.tracing.host.guest_view import GuestView
from kinst.runtime.tracing.host.limits import Limits, limits
from kinst.runtime.tracing.host.surroundings import Surroundings
from kinst.runtime.tracing.results.recorded import Record
from kinst.runtime.tracing.results.records import Kept, Reader
from kinst.runtime.tracing.running import Running, Traced
from kinst.runtime.tracing.tracer import Output
from kinst.runtime.tracing.tracing import Tracing
from kinst.runtime.typed.image_objects import Objects
from kinst.runtime.typed.objects import Object
from kinst.targets.errors import UsageError
from kinst.targets.nearest import nearest
from kinst.targets.signals import caught
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.coverage.output_form import CoverageOutput
    from kinst.runtime.machine.calling.called import Called
    from kinst.runtime.machine.calling.template import Call
    from kinst.runtime.tracing.calls.call_records import CallRecord, Row


@dataclass(frozen=True, slots=True)
class _Machine:
    """What is released when a trace is closed."""

    traced: Traced
    guest: Guest | None  # None: QEMU runs it
    objects: Callable[[], Objects]
    running: Running
    kept: Kept
    files: ExitStack  # of report and coverage, which are in their places when this is closed


class Trace(Reader):
    """An image in a machine, with probes enabled. It can run, stop and run again. What its probes record can be read by
    actions, and whenever it does not run."""

    def __init__(
        self,
        tracing: Tracing,
        messages: list[str],
        report: Path | None = None,
        coverage: "CoverageOutput | None" = None,
    ) -> None:
        """Made by `ImageFile.trace`. `report` is the file of the page about the run, `coverage` that of what ran.

        Raises:
            KinstError: the image has no lines of source, and the format of `coverage` needs them.
            OSError: one cannot be written.
        """
        kept = Kept(tracing.tracer, messages)
        with ExitStack() as opened:  # closed if the files cannot be written
            output = _with_files(kept, tracing, opened, report, coverage)
            files = opened.pop_all()
        super().__init__(tracing.tracer, kept, output)
        self._machine: _Machine | None = _Machine(
            tracing.traced, tracing.guest, lambda: tracing.objects, tracing.start(output), kept, files
        )
        self._is_asked_to_stop = False
        self._last: End | None = None
        self.refusals = tracing.refusals  # a line for each description of which sites were refused

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Free the guest's memory, and forget what was recorded."""
        if self._machine is not None:
            self.finish()
            self._machine.traced.surroundings.providers.close()
            self._machine = None
            super().close()
            gc.collect()  # engine and machine refer to each other

    @property
    def _let(self) -> "_Machine":
        if self._machine is None:
            raise UsageError("the trace was closed: there is no guest any more")
        return self._machine

    @property
    def guest(self) -> Guest:
        """The machine and the image in it. Raises UsageError after `close`, and under QEMU."""
        if (guest := self._let.guest) is None:
            raise UsageError("the guest runs under QEMU: its machine is not here")
        return guest

    @property
    def _surroundings(self) -> Surroundings:
        return self._let.traced.surroundings

    @property
    def _keyboard(self) -> Keyboard:
        keyboard = self._let.traced.keyboard
        assert keyboard is not None, "there is a guest"
        return keyboard

    @property
    def ql(self) -> BareQiling:
        """The machine as a Qiling object: memory by physical address, registers, hooks, snapshots. From then on the
        clock `icount` counts instructions one by one, for up to five times the CPU: hooks see each of them once."""
        return self.guest.system.engine.ql

    @property
    def memory(self) -> GuestView:
        """The guest's memory, as the CPU sees it that ran last; under QEMU what never changes in the image."""
        return GuestView(self._surroundings.memory)

    @property
    def objects(self) -> Objects:
        """The image's variables, functions, constants and types, as typed values over the guest's memory."""
        return self._let.objects()

    def __getitem__(self, name: str) -> Object:
        """A variable, function or constant of the image, as a typed value: `trace["init_task"].comm`. See `Objects`."""
        return self.objects[name]

    def __contains__(self, name: object) -> bool:
        return name in self.objects

    def _ipython_key_completions_(self) -> list[str]:
        """What IPython offers in `trace["`."""
        return self.objects._ipython_key_completions_()

    @property
    def machine(self) -> str:
        """The guest's architecture: amd64, arm64 or riscv64."""
        return self._surroundings.host.arch.name

    def symbol(self, address: int) -> str:
        """An address in the form in which dtrace shows it: module`function+0x1c."""
        return self._surroundings.symbols.describe(address, "stack")

    def physical_address(self, symbol: str) -> int:
        """The physical address of a function or variable of the image, which memory and hooks of `ql` take.

        Raises:
            UsageError: the image has no such symbol, or it was not loaded.
        """
        loaded, symbols = self.guest.loaded, self.guest.loaded.image.symbols
        address = symbols.address_of(symbol)
        found = None if address is None else loaded.physical(address)
        if found is None:
            alike = symbols.names(symbols.rows_beginning(symbol[:1].encode()))
            raise UsageError(f"{symbol}: no function or variable that was loaded{nearest(symbol, alike)}")
        return found

    @property
    def result(self) -> int | None:
        """With `call`: what the function returned, as 64 unsigned bits. Otherwise None."""
        return None if self._let.guest is None else self._let.guest.result

    @property
    def ending(self) -> Ending | None:
        """How the run ended, and where each CPU was; None if it can continue."""
        return self._let.running.ending

    def run(self, *, seconds: float | None = None, wall_seconds: float | None = None, until: str | None = None) -> End:
        """Let the guest run or continue until it ends, or until one of these: that many seconds of the machine's time
        or of the host's, a line of its console that matches a regular expression, `stop`, or D's stop() under QEMU.

        Returns which of them it was. After TIMEOUT, WALL_TIMEOUT, UNTIL, STOPPED and PAUSED the guest can continue;
        after all others the run is over, and D's END has fired.

        Raises:
            KeyboardInterrupt: Ctrl-C, in the main thread; the guest can continue.
            MachineError: the guest stopped for good.
            KinstError: the run was already over.
            Exception: what an action raised, which ends the run.

        Example:
            >>> with open_image("samples/kernel-arm64.elf") as image:
            ...     trace = image.trace("fbt::vfs_create:entry { trace(cpu); }", machine=Machine(clock="icount"))
            ...     trace.run(seconds=0.01), trace.run(seconds=10), trace.take()[0].values, trace.ending.reason
            (<End.TIMEOUT: 'timeout'>, <End.POWER_OFF: 'power-off'>, (0,), 'power-off')
        """
        return self._go(limits(seconds, wall_seconds, until))

    def records(
        self, *, seconds: float | None = None, wall_seconds: float | None = None, until: str | None = None
    ) -> Iterator[Record]:
        """As `run`, but yields what clauses record: at D's `switchrate` (once a second of the machine's time), or
        earlier if there is much. The guest waits while a record is processed."""
        host, kept = self._surroundings.host, self._let.kept
        start, wall_start, bounds = host.now(), time.monotonic_ns(), limits(seconds, wall_seconds, until)
        with kept.calling(lambda: host.finish(End.STOPPED)):
            while True:
                end = self._go(bounds)
                yield from self.take()
                if end is not End.STOPPED or self._is_asked_to_stop:
                    return
                bounds = bounds.later(host.now() - start, time.monotonic_ns() - wall_start)
                start, wall_start = host.now(), time.monotonic_ns()

    def _go(self, bounds: Limits) -> End:
        running = self._let.running
        if running.ending is not None:
            raise UsageError(f"the run is over: {running.ending.reason}")
        self._is_asked_to_stop = False
        finish = self._surroundings.host.finish
        try:
            with caught(lambda _number: finish(End.INTERRUPTED), signal.SIGINT):
                end = self._last = running.go(bounds)
        finally:
            if running.ending is not None:
                self._let.files.close()
        if end is End.INTERRUPTED:
            raise KeyboardInterrupt
        return end

    def call_each(
        self, call: str, rows: Iterable["Row"], *, seconds: float = 0.1
    ) -> Generator["CallRecord", None, None]:
        """Call functions of the guest, each from its present state, in place of letting it run: that of a snapshot
        (`Machine(start=...)`), or as it stopped; or of an image that was loaded for calls (`trace(call=...)`, whose own
        arguments do not matter then). All that a call does is undone behind it. D programs see all of them: BEGIN fires
        before the first call and END behind the last, which ends the run.

        Args:
            call: a call with `$1`, `$2` or `$name` in place of arguments, 'f($1, "text", {u32 2})', or `f()`.
            rows: for each call a value, a sequence of values, or a mapping from names to values; read one by one. See
                `Sweep.call` for values.
            seconds: of the machine's time that a call may take.

        Raises:
            KinstError: no such function, a row that does not fit, or no function can be called in this state.

        Example:
            >>> with open_image("samples/kernel-arm64.elf") as image:
            ...     trace = image.trace("fbt::fibonacci:return { trace(arg1); }", call="fibonacci(0)")
            ...     for one in trace.call_each("fibonacci($n)", ({"n": n} for n in (1, 3))):
            ...         print(one.text, one.result, [record.values for record in one.records])
            fibonacci(1) 1 [(1,)]
            fibonacci(3) 2 [(1,), (1,), (2,)]
        """
        from kinst.runtime.tracing.calls.call_records import CallRecord, calls_of_rows  # few runs call

        made, given = list["tuple[Call, Called]"](), list["Row"]()

        def calls() -> "Iterator[Call]":
            for row, one in calls_of_rows(call, rows):
                given.append(row)
                yield one

        self.guest.call_each(calls(), lambda one, called: made.append((one, called)), pauses=True)
        try:
            while self._go(limits(seconds, None, None)) is End.PAUSED:
                one, called = made.pop()
                yield CallRecord(given.pop(), one.text, called, self.take())
        finally:
            self.finish()

    def snapshot(self, file: Path | str | None = None) -> Snapshot:
        """The guest as it is now, between two runs: memory, CPUs, devices, disks and time. What was recorded, and D's
        variables, are not part of it. With `file`, it is written there as well, for `Machine(start=...)` and
        `kinst-run --from`.

        Raises:
            MachineError: something of it cannot be kept, such as a disk that is written itself.
            UsageError: the guest runs under QEMU, or was called and not booted.

        Example:
            >>> with open_image("samples/kernel-arm64.elf") as image:
            ...     trace = image.trace(machine=Machine(clock="icount"))
            ...     _ = trace.run(seconds=0.01)
            ...     before, _ = trace.snapshot(), trace.run(seconds=0.005)
            ...     first = trace.console
            ...     trace.restore(before)
            ...     _ = trace.run(seconds=0.005)
            ...     trace.guest.system.clock.now() - before.time
            5000000
        """
        snapshots = self.guest.snapshots
        if file is not None:
            snapshots.begin()
            snapshots.write(Path(file))
        return snapshots.take()

    def restore(self, snapshot: Snapshot) -> None:
        """Return the guest to a snapshot of this trace, between two runs. Probes stay as they are, and what was
        recorded and printed is not taken back.

        Raises:
            UsageError: the run is over.
        """
        if self._let.running.ending is not None:
            raise UsageError(f"the run is over: {self._let.running.ending.reason}")
        self.guest.snapshots.restore(snapshot)
        self.guest.went_back()

    def type(self, data: bytes) -> None:
        """Type keys on the guest's console, at once."""
        self._keyboard.serial_line.type(data)

    def type_lines(self, text: bytes, *, prompt: str | None = None) -> None:
        """Let lines be typed on the guest's console while it runs, each with Enter if it has an end: when the console's
        last line matches the regular expression `prompt`, or without one when the guest waits for input and has printed
        nothing for 20 ms.

        Raises:
            UsageError: `prompt` is not a regular expression.
        """
        awaited = None if prompt is None else expression("prompt", prompt)
        self._keyboard.typist.add(lines_to_type(text), awaited)

    def stop(self) -> None:
        """Called from an action: stop the guest after the current instruction, or under QEMU within 20 ms. It can
        continue."""
        self._is_asked_to_stop = True
        self._surroundings.host.finish(End.STOPPED)

    def finish(self) -> Ending:
        """End the run, if it is not over: D's END fires. Returns how the run ended."""
        ending = self._let.running.finish(self._last or End.STOPPED)
        self._let.files.close()
        return ending


def _with_files(
    kept: Kept, tracing: Tracing, files: ExitStack, report: Path | None, coverage: "CoverageOutput | None"
) -> Output:
    """The output that also writes files about the run, which `files` puts in their places."""
    if report is None and coverage is None:
        return kept
    from kinst.runtime.tracing.results.files_beside import files_beside  # few runs have any

    page, covered = (
        None if path is None else files.enter_context(replaced_file(path))
        for path in (report, None if coverage is None else coverage.path)
    )
    return files_beside(kept, tracing, (), page, (coverage, covered), lambda line: kept.notices([line]))
