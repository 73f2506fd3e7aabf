"""kinst-run from Python: an image, what to trace in it, and values in place of text. `kinst.runtime` exports it.

    from kinst.runtime import open_image

    with open_image("kernel.elf") as image, image.trace("fbt:::entry { @calls[probefunc] = count(); }") as trace:
        trace.run(seconds=5)
        print(trace.aggregation("calls"))

Nothing here prints. Every error that a user can cause is a `KinstError`. Several guests may be open in one process,
each used by one thread.
"""

import gc
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from kinst.rewriter.commandline.code_range import code_ranges
from kinst.rewriter.outcome_report import summary_lines
from kinst.rewriter.probe_choice import check_outcomes, default_specs, probe_names
from kinst.rewriter.resolve import Resolution, resolve
from kinst.rewriter.rewriting import Opened, Source, listed_probes, open_source, plan_probes
from kinst.rewriter.write import write_image
from kinst.runtime.engine.bare_qiling import BareQiling
from kinst.runtime.input.expression import expression
from kinst.runtime.input.typist import lines_to_type
from kinst.runtime.machine.configuration import ClockKind, Configuration, End
from kinst.runtime.machine.disk import Disk
from kinst.runtime.providers.probe_table import Probe
from kinst.runtime.tracing.ending import Ending
from kinst.runtime.tracing.given import Action, actions_of, files_of, modules_of, options_of, path_of, program_of
from kinst.runtime.tracing.guest import Guest
from kinst.runtime.tracing.guest_view import GuestView
from kinst.runtime.tracing.limits import Limits, limits
from kinst.runtime.tracing.program_text import ProgramText
from kinst.runtime.tracing.records import Kept, Reader
from kinst.runtime.tracing.request import Request
from kinst.runtime.tracing.results import Probes, Record
from kinst.runtime.tracing.running import Running
from kinst.runtime.tracing.sweep import Sweep
from kinst.runtime.tracing.tracing import Tracing
from kinst.targets.errors import MachineError, UsageError
from kinst.targets.method import Method
from kinst.targets.nearest import nearest
from kinst.targets.signals import caught


def open_image(
    path: Path | str,
    *,
    name: str | None = None,
    symbols: Path | str | None = None,
    debug_file: Path | str | None = None,
    modules: Mapping[str, Path | str] | None = None,
    code: Sequence[tuple[int, int]] = (),
) -> "ImageFile":
    """Read an image, patched or not.

    Args:
        path: an ELF file for amd64, arm64 or riscv64.
        name: the module in its probes' names; default: the name of the file.
        symbols: names for its code: System.map, the output of nm, or an ELF file.
        debug_file: debug information and symbols, if they are not in the image.
        modules: kernel modules by name: programs may use their types, and the probes of those that were patched.
        code: start and end of ranges that are code, whatever they look like (--force-code).

    Raises:
        KinstError: the image cannot be used.
    """
    source = Source(Path(path), name, path_of(symbols), path_of(debug_file), code_ranges(code))
    return ImageFile(source, modules_of(modules))


class ImageFile:
    """An image that was opened. What is read from it is read only once."""

    def __init__(self, source: Source, modules: tuple[tuple[str, Path], ...]) -> None:
        """Made by `open_image`."""
        self._source = source
        self._modules = modules
        self._opened: Opened | None = open_source(source)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Forget what was read. Runs that have begun keep what they need."""
        self._opened = None

    @property
    def _open(self) -> Opened:
        if self._opened is None:
            raise UsageError(f"{self._source.path}: was closed")
        return self._opened

    def probes(self, *descriptions: str) -> Probes:
        """The probes that descriptions match, with the identifiers that every command shows. Without descriptions:
        those that the image was patched with, or else the entries and returns of all functions and all static probes.

        Raises:
            KinstError: a description matches nothing.
        """
        opened = self._open
        if opened.manifest is not None and not descriptions:
            manifest, rows = opened.manifest, range(len(opened.manifest.probes))
        else:
            resolution = self.resolve(*descriptions)
            manifest, found, _ = listed_probes(opened, resolution)
            rows = found.tolist()
        identifiers = manifest.identifiers.tolist()
        return Probes(Probe(identifiers[row], *manifest.probe_fields(row)) for row in rows)

    def resolve(self, *descriptions: str) -> Resolution:
        """What descriptions stand for: functions, sites and refusals. Without descriptions: the entries and returns of
        all functions and all static probes.

        Raises:
            KinstError: a description matches nothing.
        """
        opened = self._open
        image = opened.program.image
        names = probe_names(descriptions or default_specs(image, disassemble=False), image)
        resolution = resolve(opened.program, names, inlines=opened.inlines())
        check_outcomes(resolution, strict=False)
        return resolution

    def rewrite(
        self,
        output: Path | str,
        *descriptions: str,
        method: Method | None = None,
        trampoline_base: int | None = None,
    ) -> tuple[str, ...]:
        """Write a copy with these probes in it. Returns what was refused, a line for each description.

        Args:
            output: the file.
            descriptions: of probes.
            method: how hits are carried on; `Method.JUMP` makes the copy standalone.
            trampoline_base: the link address of the trampolines; None: where there is room.

        Raises:
            KinstError: a description matches nothing, or there is no room for the trampolines.
            OSError: the file cannot be written.
        """
        opened = self._open
        names = probe_names(descriptions, opened.program.image)
        resolution, plan = plan_probes(opened, names, method=method, trampoline_base=trampoline_base)
        write_image(plan, Path(output))
        return tuple(summary_lines(resolution, plan.lost, len(plan.manifest.sites)))

    def trace(
        self,
        *programs: str | Path | ProgramText,
        actions: Mapping[str, Action] | None = None,
        arguments: tuple[str, ...] = (),
        options: Mapping[str, str | None] | None = None,
        call: str | None = None,
        machine: str | None = None,
        cpus: int = 1,
        memory: int | None = None,
        clock: ClockKind | str = ClockKind.HOST,
        command_line: str | None = None,
        initrd: bytes | None = None,
        kaslr_seed: int | None = None,
        device_tree: bytes | None = None,
        files: Mapping[int, bytes] | None = None,
        disks: Sequence[Disk] = (),
        rng_seed: int | None = None,
        virtio_console: bool = False,
        method: Method | None = None,
        on_panic: Literal["end", "continue"] = "end",
    ) -> "Trace":
        """Load the image into a machine and enable probes; nothing runs yet.

        Args:
            programs: in D; a Path names a file (`ProgramText`: its content). Without programs and actions a patched
                image fires its own probes.
            actions: Python functions by the description of the probes that call them.
            arguments: $1, $2, ... of the programs.
            options: of D by name, as `-x` has them: {"strsize": "1k", "destructive": None}.
            call: a function to be called instead of booting: 'f(1, "text")'.
            machine: its name; default: the one of the image's architecture.
            cpus: how many.
            memory: bytes of RAM; default: what the machine has.
            clock: "host", or "icount" for runs that are equal each time.
            command_line: for kernels that are given one.
            initrd: initial file system of a Linux kernel: a cpio archive, which may be compressed.
            kaslr_seed: lets a Linux kernel run at a random offset that follows from it.
            device_tree: a flattened one in place of the machine's own.
            files: raw bytes by the physical address where they are put.
            disks: of the guest (virtio), each from `open_disk`, for one trace.
            rng_seed: gives the guest a source of random numbers (virtio), which follow from it.
            virtio_console: gives it a console (virtio) beside the serial line.
            method: how probed instructions are carried out.
            on_panic: whether the run ends (GUEST_PANIC) when the guest's kernel has panicked and will not restart.

        Raises:
            KinstError: a program is wrong, a description matches nothing, or the image cannot run there.
        """
        request = Request(
            image=self._source.path,
            programs=tuple(map(program_of, programs)),
            actions=actions_of(actions),
            arguments=arguments,
            options=options_of(options),
            configuration=Configuration(
                *(cpus, memory, ClockKind(clock), command_line, initrd, kaslr_seed, device_tree, files_of(files)),
                *(tuple(disks), rng_seed, virtio_console),
            ),
            machine=machine,
            call=call,
            method=method,
            name=self._source.module,
            symbols=self._source.symbols,
            debug_file=self._source.debug_file,
            code=self._source.code,
            modules=self._modules,
            records_time=True,
            ends_on_panic=on_panic == "end",
        )
        messages: list[str] = []
        tracing = Tracing(request, messages.append, self._open)
        for _ in tracing.enable():
            pass
        return Trace(tracing, messages)

    def sweep(self, function: str, *, coverage: str | None = None, machine: str | None = None) -> Sweep:
        """A function, by its name or 0x address, to be called with many inputs. Every call finds the image as it was
        loaded, and counts the instructions that it reaches.

        Args:
            function: what is called.
            coverage: the functions whose instructions are counted, as in probe names (globs too); default: that one.
                Empty, or for an address: nothing is counted.
            machine: its name; default: the one of the image's architecture.

        Raises:
            KinstError: there is no such function, or none of its instructions can be probed.
        """
        counted = (function if function[:2] not in ("0x", "0X") else "") if coverage is None else coverage
        request = Request(
            image=self._source.path,
            programs=(program_of(f"kinst::{counted}: {{ @[id] = count(); }}"),) if counted else (),
            configuration=Configuration(clock=ClockKind.ICOUNT),
            machine=machine,
            call=f"{function}()",
            name=self._source.module,
            symbols=self._source.symbols,
            debug_file=self._source.debug_file,
            code=self._source.code,
        )
        messages: list[str] = []
        tracing = Tracing(request, messages.append, self._open)
        for _ in tracing.enable():
            pass
        return Sweep(tracing, function)

    def call(self, function: str, *arguments: int | str | bytes, seconds: float | None = 60) -> int:
        """Call one function of the image, by its name or 0x address, with a stack and memory of its own. Returns its
        result as 64 unsigned bits. Texts are passed by address, with a NUL.

        Raises:
            KinstError: there is no such function, it does something that nothing handles, or it takes longer than
            `seconds`.
        """
        text = f"{function}({', '.join(map(_literal, arguments))})"
        with self.trace(call=text) as trace:
            end = trace.run(seconds=seconds)
            if trace.result is None:
                raise MachineError(f"{text}: did not return: {end.value}")
            return trace.result


@dataclass(frozen=True, slots=True)
class _Machine:
    """What is given back when a trace is closed."""

    guest: Guest
    running: Running
    kept: Kept


class Trace(Reader):
    """An image in a machine, with probes enabled. It can run, stop and run again. What its probes record can be read by
    actions, and whenever it does not run."""

    def __init__(self, tracing: Tracing, messages: list[str]) -> None:
        """Made by `ImageFile.trace`."""
        assert tracing.guest is not None, "there is an image"
        kept = Kept(tracing.tracer, messages)
        super().__init__(tracing.tracer, kept)
        self._machine: _Machine | None = _Machine(tracing.guest, tracing.start(kept), kept)
        self._is_asked_to_stop = False
        self._last: End | None = None
        self.refusals = tracing.refusals  # what programs and actions describe but cannot have: a line each

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the guest's memory back, and forget what was recorded."""
        if self._machine is not None:
            self.finish()
            self._machine.guest.surroundings.providers.close()
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
        """The machine and the image in it, for a closer look. Raises UsageError after `close`."""
        return self._let.guest

    @property
    def ql(self) -> BareQiling:
        """The machine as a Qiling object: memory by physical address, registers, hooks, snapshots."""
        return self.guest.system.engine.ql

    @property
    def memory(self) -> GuestView:
        """The guest's memory, as the CPU sees it that ran last."""
        return GuestView(self.guest.surroundings.memory)

    def symbol(self, address: int) -> str:
        """An address in the form in which dtrace shows it: module`function+0x1c."""
        return self.guest.surroundings.symbols.describe(address, "stack")

    def physical_address(self, symbol: str) -> int:
        """Where a function or variable of the image was loaded: what memory and hooks of `ql` are asked for.

        Raises:
            UsageError: the image has no such symbol, or it is no part of what was loaded.
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
        return self.guest.result

    @property
    def ending(self) -> Ending | None:
        """How the run ended, and where each CPU was; None if it can continue."""
        return self._let.running.ending

    def run(self, *, seconds: float | None = None, wall_seconds: float | None = None, until: str | None = None) -> End:
        """Let the guest run or continue until it ends, or until one of these: that many seconds of the machine's time
        or of the host's, a line of its console that matches a regular expression, or `stop`.

        Returns which of them it was. After TIMEOUT, WALL_TIMEOUT, UNTIL and STOPPED the guest can continue; after all
        others the run is over, and D's END has fired.

        Raises:
            KeyboardInterrupt: Ctrl-C, in the main thread; the guest can continue.
            MachineError: the guest stopped for good.
            KinstError: the run was already over.
            Exception: what an action raised, which ends the run.
        """
        return self._go(limits(seconds, wall_seconds, until))

    def records(
        self, *, seconds: float | None = None, wall_seconds: float | None = None, until: str | None = None
    ) -> Iterator[Record]:
        """As `run`, but yields what clauses record: at D's `switchrate` (once a second of the machine's time), or
        earlier if there is much. The guest waits while a record is processed."""
        host, kept = self.guest.surroundings.host, self._let.kept
        start, wall_start, bounds = host.now(), time.monotonic_ns(), limits(seconds, wall_seconds, until)
        kept.on_records = lambda: host.finish(End.STOPPED)
        try:
            while True:
                end = self._go(bounds)
                yield from self.take()
                if end is not End.STOPPED or self._is_asked_to_stop:
                    return
                bounds = bounds.later(host.now() - start, time.monotonic_ns() - wall_start)
                start, wall_start = host.now(), time.monotonic_ns()
        finally:
            kept.on_records = None

    def _go(self, bounds: Limits) -> End:
        running = self._let.running
        if running.ending is not None:
            raise UsageError(f"the run is over: {running.ending.reason}")
        self._is_asked_to_stop = False
        finish = self.guest.surroundings.host.finish
        with caught(lambda _number: finish(End.INTERRUPTED), signal.SIGINT):
            end = self._last = running.go(bounds)
        if end is End.INTERRUPTED:
            raise KeyboardInterrupt
        return end

    def type(self, data: bytes) -> None:
        """Type keys on the guest's console, at once."""
        self.guest.system.serial_line.type(data)

    def type_lines(self, text: bytes, *, prompt: str | None = None) -> None:
        """Let lines be typed on the guest's console while it runs, each with Enter if it has an end: when the console's
        last line matches the regular expression `prompt`, or without one when the guest waits for input and has printed
        nothing for 20 ms.

        Raises:
            UsageError: `prompt` is no regular expression.
        """
        awaited = None if prompt is None else expression("prompt", prompt)
        self.guest.typist.add(lines_to_type(text), awaited)

    def stop(self) -> None:
        """Called from an action: stop the guest after the current instruction. It can continue."""
        self._is_asked_to_stop = True
        self.guest.surroundings.host.finish(End.STOPPED)

    def finish(self) -> Ending:
        """End the run, if it is not over: D's END fires. Returns how the run ended."""
        return self._let.running.finish(self._last or End.STOPPED)


def _literal(argument: int | str | bytes) -> str:
    """An argument in the form that `parse_call` reads."""
    if isinstance(argument, int):
        return str(argument)
    data = argument.encode() if isinstance(argument, str) else argument
    return '"' + "".join(f"\\x{byte:02x}" for byte in data) + '"'
