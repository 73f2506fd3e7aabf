"""kinst-run from Python: an image, what to trace in it, and values in place of text. `kinst.runtime` exports it.

    from kinst.runtime import open_image

    with open_image("kernel.elf") as image, image.trace("fbt:::entry { @calls[probefunc] = count(); }") as trace:
        trace.run(seconds=5)
        print(trace.aggregation("calls"))

Nothing here prints. Every error that a user can cause is a `KinstError`. Several guests may be open in one process,
each used by one thread.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self
from weakref import finalize

from kinst.rewriter.commandline.code_range import code_ranges
from kinst.rewriter.naming.probe_choice import check_outcomes, default_specs, probe_names
from kinst.rewriter.naming.resolve import Resolution, resolve
from kinst.rewriter.outcome_report import summary_lines
from kinst.rewriter.rewriting import Opened, Source, listed_probes, open_source, plan_probes
from kinst.rewriter.writing.as_read import trampoline_place, write_as_read
from kinst.runtime.coverage.document import DEFAULT_GRANULARITY, CoverageRequest
from kinst.runtime.machine.calling.template import call_of, parse_call
from kinst.runtime.providers.probe_table import Probe
from kinst.runtime.trace import Trace
from kinst.runtime.tracing.calls.kept_calls import KeptCalls, Origin, files_of
from kinst.runtime.tracing.calls.sweep import Sweep
from kinst.runtime.tracing.given import (
    Action,
    Machine,
    MethodName,
    Options,
    PathLike,
    actions_of,
    beside_of,
    configuration_of,
    coverage_of,
    debugger_of,
    method_of,
    modules_of,
    options_of,
    path_of,
    program_of,
    programs_of,
)
from kinst.runtime.tracing.guests.guest import Guest
from kinst.runtime.tracing.host.limits import limits
from kinst.runtime.tracing.programs.program_text import ProgramText
from kinst.runtime.tracing.request import Request
from kinst.runtime.tracing.results.recorded import Probes
from kinst.runtime.tracing.subject import Subject
from kinst.runtime.tracing.tracing import Tracing
from kinst.runtime.typed.image_objects import Objects
from kinst.runtime.typed.objects import Object
from kinst.targets.c_types import ImageTypes
from kinst.targets.debuginfo.image_types import image_types
from kinst.targets.errors import UsageError
from kinst.targets.image import check_twice, open_to_run
from kinst.targets.packed.reading import reading_of


def open_image(
    path: PathLike,
    *,
    name: str | None = None,
    symbols: PathLike | None = None,
    debug_file: PathLike | None = None,
    modules: Mapping[str, PathLike] | None = None,
    code: Sequence[tuple[int, int]] = (),
    raw: str | None = None,
    entry: int | None = None,
    payload: str | None = None,
) -> "ImageFile":
    """Read an image, patched or not.

    Args:
        path: an ELF file for amd64, arm64 or riscv64; or another file that holds an image (docs/guide/image-files.md).
        name: the module in its probes' names; default: the name of the file.
        symbols: names for its code: System.map, the output of nm, or an ELF file.
        debug_file: debug information and symbols, if they are not in the image.
        modules: kernel modules by name: programs may use their types, and the probes of those that were patched.
        code: start and end of ranges that are code, whatever they look like (--force-code).
        raw: "MACHINE@ADDRESS" of a file without headers, "MACHINE" of Intel HEX or S-records (--raw).
        entry: where such a file starts; default: at its first byte, or where its records say.
        payload: which of the images in a file of several (--payload).

    Raises:
        KinstError: the image cannot be used.

    Example:
        >>> with open_image("samples/kernel-arm64.elf") as image:
        ...     print(*image.probes("fbt::vfs_*:entry")[:2])
        fbt:kernel-arm64:vfs_walk:entry fbt:kernel-arm64:vfs_read:entry
    """
    reading = reading_of(raw, None if entry is None else hex(entry), payload)
    source = Source(Path(path), name, path_of(symbols), path_of(debug_file), code_ranges(code), reading=reading)
    return ImageFile(source, modules_of(modules))


class ImageFile:
    """An image that was opened. Everything is read from it at most once."""

    def __init__(self, source: Source, modules: tuple[tuple[str, Path], ...]) -> None:
        """Made by `open_image`."""
        self.source = source  # the file, and where names for its code come from
        self.modules = modules  # kernel modules that it may load: names and files
        self._opened: Opened | None = open_source(source, read=open_to_run)
        self._objects: Objects | None = None
        self._calls = KeptCalls()
        finalize(self, self._calls.close).atexit = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Forget what was read, and the machine of `call`. Runs that have begun keep what they need."""
        self._opened = self._objects = None
        self._calls.close()

    @property
    def opened(self) -> Opened:
        """The rewriter's analysis of the image. Raises UsageError after `close`."""
        if self._opened is None:
            raise UsageError(f"{self.source.path}: was closed")
        return self._opened

    @property
    def objects(self) -> Objects:
        """The image's variables, functions, constants and types, as typed values over what its file has: what they are
        before anything runs. At link addresses.

        Example:
            >>> with open_image("samples/kernel-arm64.elf") as image:
            ...     print(image.objects["dir_ops"])
            {vop_read = 0x40083020 <dir_read>, vop_write = 0x40083030 <dir_write>}
        """
        if self._objects is None:
            from kinst.runtime.tracing.typed_values import objects_of_file  # few programs look at them
            from kinst.runtime.typed.image_memory import ImageMemory

            memory = ImageMemory(self.opened.program.original)
            self._objects = objects_of_file(self.opened, self._types(), memory, 0)
        return self._objects

    def _types(self) -> ImageTypes:
        return image_types(self.opened.image, debug_file=self.source.debug_file, modules=dict(self.modules))

    def __getitem__(self, name: str) -> Object:
        """A variable, function or constant of the image, as its file has it: see `objects`."""
        return self.objects[name]

    def _ipython_key_completions_(self) -> list[str]:
        """What IPython offers in `image["`."""
        return self.objects._ipython_key_completions_()

    @contextmanager
    def read(self, source: str, *, bias: int | None = None) -> Iterator[Objects]:
        """The image's variables, functions, constants and types, as typed values over memory that is elsewhere: a
        context, in which a guest behind a stub is halted. The image need not be patched.

        Args:
            source: as of `kinst-run --read`: an ELF core, FILE@ADDRESS, gdb:HOST:PORT, or qmp:SOCKET.
            bias: by how much it moved its virtual addresses; default: searched for.

        Raises:
            KinstError: the image is not in that memory, or it cannot be read.
        """
        from kinst.runtime.live.elsewhere import QmpSource  # few programs read what is elsewhere
        from kinst.runtime.readout.sources import source_of
        from kinst.runtime.readout.virtual_memory import VirtualMemory
        from kinst.runtime.tracing.typed_values import objects_of_file

        place = QmpSource(source) if source.startswith("qmp:") else source_of(source)
        with place.open() as memory:
            found = VirtualMemory(self.opened.program.original, memory, place.name, bias)
            yield objects_of_file(self.opened, self._types(), found, found.bias)

    def probes(self, *descriptions: str) -> Probes:
        """The probes that descriptions match, with the identifiers that every command shows. Without descriptions:
        those that the image was patched with, or else the entries and returns of all functions and all static probes.

        Raises:
            KinstError: a description matches nothing.
        """
        opened = self.opened
        if opened.manifest is not None and not descriptions:
            manifest, rows = opened.manifest, range(len(opened.manifest.probes))
        else:
            resolution = self.resolve(*descriptions)
            manifest, found, _ = listed_probes(opened, resolution)
            rows = found.tolist()
        identifiers = manifest.identifiers.tolist()
        return Probes(Probe(identifiers[row], *manifest.probe_fields(row)) for row in rows)

    def resolve(self, *descriptions: str) -> Resolution:
        """What descriptions mean: functions, sites and refusals. Without descriptions: the entries and returns of
        all functions and all static probes.

        Raises:
            KinstError: a description matches nothing.
        """
        opened = self.opened
        image = opened.image
        names = probe_names(descriptions or default_specs(image, disassemble=False), image)
        resolution = resolve(opened.program, names, inlines=opened.inlines())
        check_outcomes(resolution, strict=False)
        return resolution

    def rewrite(
        self,
        output: PathLike,
        *descriptions: str,
        method: MethodName | None = None,
        trampoline_base: int | None = None,
    ) -> tuple[str, ...]:
        """Write a copy with these probes in it.

        Args:
            output: the file.
            descriptions: of probes.
            method: how probed instructions are executed, a word of `kinst-rewrite --method`; "jump" makes the copy
                standalone.
            trampoline_base: the link address of the trampolines; None: where there is space.

        Returns:
            What was refused: a line for each description.

        Raises:
            KinstError: a description matches nothing, or there is no space for the trampolines.
            OSError: the file cannot be written.

        Example:
            >>> with open_image("samples/kernel-arm64.elf") as image:
            ...     image.rewrite("patched.elf", "kinst::fibonacci:", "fbt::fibonacci:return")
            ()
            >>> with open_image("patched.elf") as patched:
            ...     len(patched.probes())
            22
        """
        opened = self.opened
        check_twice(opened.image)
        names = probe_names(descriptions, opened.image)
        base = trampoline_place(opened.program.original) if trampoline_base is None else trampoline_base
        resolution, plan = plan_probes(opened, names, method=method_of(method), trampoline_base=base)
        write_as_read(plan, Path(output), is_apart=trampoline_base is not None)
        return tuple(summary_lines(resolution, plan.lost, len(plan.manifest.sites)))

    def trace(
        self,
        *programs: PathLike | ProgramText,
        actions: Mapping[str, Action] | None = None,
        arguments: Sequence[str] = (),
        options: Options | None = None,
        call: str | None = None,
        machine: Machine | None = None,
    ) -> Trace:
        """Load the image into a machine and enable probes; nothing runs yet.

        Args:
            programs: in D; a Path names a file. Without programs and actions a patched image fires its own probes.
            actions: Python functions by the description of the probes that call them, each with a `Hit`. One by
                "replace" and the description of functions, "replace fbt::f", is called in their place, and returns
                their result: a number, None if there is none, or `hit.original()` to let the function itself run.
            arguments: $1, $2, ... of the programs.
            options: how it is traced; default: `Options()`.
            call: a function to be called instead of booting: 'f(1, "text")'.
            machine: what it runs on; default: `Machine()`, whose time is the host's.

        Raises:
            KinstError: a program is wrong, a description matches nothing, or the image cannot run there.
            OSError: the file of the report, or of coverage, cannot be written.

        Example:
            >>> program = "fbt::fibonacci:entry { @calls[arg0] = count(); }"
            >>> with open_image("samples/kernel-arm64.elf") as image:
            ...     trace = image.trace(program, call="fibonacci(4)")
            ...     trace.run()
            ...     trace.aggregation("calls")
            <End.RETURNED: 'returned'>
            {2: 1, 3: 1, 4: 1, 1: 2}
        """
        options, machine = options or Options(), machine or Machine()
        beside = beside_of(machine)
        request = Request(
            programs=programs_of(programs),
            actions=actions_of(actions),
            arguments=tuple(arguments),
            options=options_of(options),
            configuration=configuration_of(machine, beside),
            start=path_of(machine.start),
            gdb=debugger_of(machine, call),
            machine=machine.board,
            on=machine.on,
            call=call,
            beside=beside,
            method=method_of(options.method),
            modules=self.modules,
            records_time=True,
            records_tasks=options.report is not None,
            records_hits=options.report is not None,
            ends_on_panic=machine.on_panic == "end",
            coverage=None if (covered := coverage_of(options)) is None else covered.request,
        )
        return Trace(*self._enabled(request), path_of(options.report), covered)

    def sweep(
        self,
        function: str,
        *,
        coverage: str | None = None,
        machine: Machine | None = None,
        counts_code: bool = False,
    ) -> Sweep:
        """A function to be called with many inputs, in one machine: every call finds the image as it was loaded, takes
        a millisecond or less, and counts the instructions that it reaches. To call one once: `call`.

        Args:
            function: its name, or its 0x address.
            coverage: the functions whose instructions are counted, as in probe names (globs too); default: that one.
                Empty, or for an address: nothing is counted.
            machine: what it runs on; default: `Machine(clock="icount")`, so that all calls are equal each time.
            counts_code: whether `Sweep.ran` can say what all calls ran of the image, as `kinst-run --coverage` does.

        Raises:
            KinstError: there is no such function, or none of its instructions can be probed.

        Example:
            >>> with open_image("samples/kernel-arm64.elf") as image:
            ...     sweep = image.sweep("fibonacci")
            ...     [sweep.call(number).result for number in range(1, 8)]
            [1, 1, 2, 3, 5, 8, 13]
        """
        counted = (function if function[:2] not in ("0x", "0X") else "") if coverage is None else coverage
        machine = machine or Machine(clock="icount")
        request = Request(
            programs=(program_of(f"kinst::{counted}: {{ @[id] = count(); }}"),) if counted else self._nothing_traced(),
            configuration=configuration_of(machine),
            machine=machine.board,
            on=machine.on,
            call=None if machine.start is not None else f"{function}()",
            start=path_of(machine.start),
            gdb=debugger_of(machine, function),
            coverage=CoverageRequest(DEFAULT_GRANULARITY) if counts_code else None,
        )
        tracing, _ = self._enabled(request)
        return Sweep(tracing, function)

    def call(
        self, function: str, *arguments: int | str | bytes, machine: Machine | None = None, seconds: float | None = 60
    ) -> int:
        """Call one function of the image, with a stack and memory of its own. Every call finds the image as it was
        loaded. To see what each call reaches: `sweep`, whose `Sweep.call` takes the same arguments.

        The first call makes a machine, which takes some tenths of a second. It is kept until the image is closed, or a
        call with another `machine` takes its place, so that the next calls take less than a millisecond; it holds a
        copy of what the image loads.

        Args:
            function: its name, or its 0x address.
            arguments: numbers, of which 64 bits count, and texts, which are passed by address, with a NUL.
            machine: what it runs on; default: `Machine()`.
            seconds: of the machine's time that it may take; None: no limit.

        Returns:
            What the function returned, as 64 unsigned bits.

        Raises:
            KinstError: there is no such function, it does something that nothing handles, or it takes longer than
                `seconds`.

        Example:
            >>> with open_image("samples/kernel-arm64.elf") as image:
            ...     image.call("fibonacci", 10)
            55
        """
        machine = machine or Machine()
        call = parse_call(call_of(function, arguments).text)
        request = Request(
            programs=self._nothing_traced(),
            configuration=configuration_of(machine),
            machine=machine.board,
            on=machine.on,
            call=call.text,
            gdb=debugger_of(machine, call.text),
            ends_on_panic=machine.on_panic == "end",
        )
        origin = Origin(request.configuration, request.machine, request.ends_on_panic, files_of(self.source))
        return self._calls.call(call, limits(seconds), origin, lambda: self._guest(request))

    def _nothing_traced(self) -> tuple[ProgramText, ...]:
        """A request without programs would enable the probes that a patched image has: this one enables none."""
        return () if self.opened.manifest is None else (program_of("BEGIN"),)

    def _guest(self, request: Request) -> Guest:
        """The image in a machine."""
        guest = self._enabled(request)[0].guest
        assert guest is not None, "there is an image"
        return guest

    def _enabled(self, request: Request) -> tuple[Tracing, list[str]]:
        """What is traced, with its probes enabled, and the list that receives messages."""
        messages: list[str] = []
        request = requested(self, request)
        tracing = Tracing(request, messages.append, self.opened, self._under_qemu(request))
        for _ in tracing.enable():
            pass
        return tracing, messages

    def _under_qemu(self, request: Request) -> Subject | None:
        """What programs are compiled against if QEMU runs the image; None: our own machine does. Raises UsageError."""
        if request.on is None:
            return None
        from kinst.runtime.live.building import live_building  # few traces need it
        from kinst.runtime.tracing.image_subject import ImageSubject

        return ImageSubject(request, self.opened, live_building(request, None))


def requested(image: ImageFile, request: Request) -> Request:
    """The same request, for this image."""
    source = image.source
    return replace(
        request,
        image=source.path,
        name=source.module,
        symbols=source.symbols,
        debug_file=source.debug_file,
        code=source.code,
        reading=source.reading,
    )
