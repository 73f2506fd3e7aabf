"""D programs and Python functions on any Qiling object: its owner makes it, loads it and runs it.

    ql = Qiling(["rootfs/bin/program"], "rootfs")
    with kinst.runtime.attach(ql, "fbt:::entry { @calls[probefunc] = count(); }") as tracing:
        ql.run()
        print(tracing.aggregations)

The image on disk stays as it is: probes are in the guest's memory only, and gone after `detach`.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TextIO

from kinst.rewriter.rewriting import Opened
from kinst.runtime.api import ImageFile, requested
from kinst.runtime.attached.building import AttachedBuilding
from kinst.runtime.clauses.environment import ErrorRecord
from kinst.runtime.clauses.environment import Record as Recorded
from kinst.runtime.consumer.messages import Drop
from kinst.runtime.consumer.output import TextOutput
from kinst.runtime.machine.configuration import End
from kinst.runtime.tracing.given import Action, Options, PathLike, actions_of, method_of, options_of, programs_of
from kinst.runtime.tracing.host.guest_view import GuestView
from kinst.runtime.tracing.host.limits import Limits
from kinst.runtime.tracing.image_subject import ImageSubject
from kinst.runtime.tracing.programs.program_text import ProgramText
from kinst.runtime.tracing.request import Request
from kinst.runtime.tracing.results.records import Kept, Reader
from kinst.runtime.tracing.tracer import Tracer
from kinst.runtime.tracing.tracing import Tracing
from kinst.targets.errors import UsageError


def attach(
    ql: Any,
    *programs: PathLike | ProgramText,
    actions: Mapping[str, Action] | None = None,
    arguments: Sequence[str] = (),
    options: Options | None = None,
    image: ImageFile | PathLike | None = None,
    bias: int | None = None,
    output: TextIO | BinaryIO | None = None,
) -> "Attached":
    """Trace the guest of a Qiling object, between two runs of it. BEGIN fires now.

    Args:
        ql: an object of stock Qiling, for amd64, arm64 or riscv64: a program under its OS layer, or a bare image.
        programs: in D; a Path names a file. Without programs and actions a patched image fires the probes that it was
            patched with.
        actions: Python functions by the description of the probes that call them, each with a `Hit`.
        arguments: $1, $2, ... of the programs.
        options: how it is traced; default: `Options()`. The method "jump" is for machines of ours.
        image: the ELF file that is in the guest's memory, or `open_image` of it, which says where its names come from;
            default: the file that Qiling loaded.
        bias: what was added to its link addresses; default: found by searching for its code.
        output: where to print as dtrace does, while the guest runs; else records are kept for `take`.

    Raises:
        KinstError: no machine for it, its image is not in memory, a program is wrong, a description matches nothing.

    Example:
        >>> with attach(ql, "fbt:::entry { @calls[probefunc] = count(); }") as tracing:
        ...     ql.run()
        >>> tracing.aggregation("calls")["total"]
        2
    """
    options = options or Options()
    if options.method == "jump":
        raise UsageError("method jump: is for open_image(...).trace(): this guest's code has another owner")
    if options.report is not None:
        raise UsageError("report: is for open_image(...).trace(), whose runs have an end")
    building = AttachedBuilding(ql, bias)
    request = Request(
        programs=programs_of(programs),
        actions=actions_of(actions),
        arguments=tuple(arguments),
        options=options_of(options),
        method=method_of(options.method),
        records_time=True,
    )
    request, opened = _of_image(request, image, building)
    messages: list[str] = []
    try:
        subject = ImageSubject(request, opened, building)
        tracing = Tracing(request, messages.append, subject=subject)
        for _ in tracing.enable():
            pass
        return Attached(tracing, building, messages, output)
    except BaseException:
        building.undo()
        raise


def _of_image(
    request: Request, image: ImageFile | PathLike | None, building: AttachedBuilding
) -> tuple[Request, Opened | None]:
    """The request for that image, and the image itself if it is open already."""
    if isinstance(image, ImageFile):
        return replace(requested(image, request), modules=image.modules), image.opened
    path = building.guest.path if image is None else Path(image)
    if path is None:
        raise UsageError("Qiling was given bytes and no file: name the ELF file that they are of: attach(..., image=)")
    return replace(request, image=path), None


class Attached(Reader):
    """A Qiling object with probes enabled. What they record can be read at any time, after `detach`, too."""

    def __init__(
        self,
        tracing: Tracing,
        building: AttachedBuilding,
        messages: list[str],
        output: TextIO | BinaryIO | None,
    ) -> None:
        """Made by `attach`."""
        tracer = tracing.tracer
        kept = Kept(tracer, messages) if output is None else _Printed(tracer, messages, output)
        super().__init__(tracer, kept)
        self._building = building
        self._running = tracing.start(kept)
        self.is_attached = True
        self.bias = building.bias  # what was added to the image's link addresses
        self.refusals = tracing.refusals  # why what programs and actions describe cannot be probed: a line each
        self.memory = GuestView(tracer.memory)  # the guest's
        self._running.go(Limits())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.detach()

    def detach(self) -> None:
        """End tracing: END fires, what is left is printed, and memory, hooks and traps are as they were before. The
        guest can continue. To be called between two runs."""
        if self.is_attached:
            self.is_attached = False
            try:
                self._running.finish(End.STOPPED)
            finally:
                self._building.undo()


class _Printed(Kept):
    """Prints what it consumes; only aggregations are kept, which are read by name."""

    def __init__(self, tracer: Tracer, messages: list[str], output: TextIO | BinaryIO) -> None:
        super().__init__(tracer, messages)
        stream: Any = getattr(output, "buffer", output)
        self._text = TextOutput(stream, sys.stderr, tracer)

    @property
    def status(self) -> int | None:
        """The status of the last exit() that was consumed."""
        return self._text.status

    def consume(self, taken: Sequence[Recorded | ErrorRecord | bytes]) -> None:
        """Print records and perform their actions, in this order."""
        self._text.consume(taken)

    def drops(self, drops: Iterable[Drop]) -> None:
        """Report what was lost."""
        self._text.drops(drops)

    def notices(self, notices: Iterable[str]) -> None:
        """Report what destructive actions did."""
        self._text.notices(notices)

    def flush(self) -> None:
        """Flush the output."""
        self._text.flush()

    def finish(self, end: Mapping[str, Any] | None) -> None:
        """Print the aggregations that no printa() has printed."""
        self._text.finish(end)
