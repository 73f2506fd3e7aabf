"""A guest that is traced in a thread of its own, and the interface of that thread to the screen's."""

import io
import threading
from typing import BinaryIO

from kinst.runtime.machine.configuration import ClockKind, End
from kinst.runtime.top.door import Door
from kinst.runtime.top.interludes import Interludes
from kinst.runtime.top.machines import WatchedMachine
from kinst.runtime.top.sample import Sample
from kinst.runtime.top.sampler import Sampler
from kinst.runtime.top.scrollback import Scrollback
from kinst.runtime.tracing.host.ending import Ending
from kinst.runtime.tracing.host.limits import Limits
from kinst.runtime.tracing.tracer import Output
from kinst.runtime.tracing.tracing import Tracing


class Copied(io.BytesIO):
    """A stream that writes both to the screen and to a file."""

    def __init__(self, shown: Scrollback, file: BinaryIO | None) -> None:
        """The file is closed by the caller."""
        super().__init__()
        self._shown, self._file = shown, file

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        """Write to both."""
        if self._file is not None:
            self._file.write(data)
        return self._shown.write(data)

    def flush(self) -> None:
        """Flush both."""
        if self._file is not None:
            self._file.flush()


class GuestRun:
    """One run. Nothing that the screen reads here waits for the guest."""

    def __init__(self, tracing: Tracing, machine: WatchedMachine, output: Output, limits: Limits) -> None:
        """Programs are enabled. Nothing runs yet."""
        self.host = tracing.traced.surroundings.host
        self._sampler = Sampler(machine, tracing.tracer, output)
        self._limits = limits
        self._running = tracing.start(output, is_live=True)
        end = lambda: self.host.finish(End.INTERRUPTED)  # noqa: E731
        self.door = Door(self._between, end, machine.pause, self._sampler.stood_still)
        machine.serial_line.attach(self.door)
        guest, is_counted = tracing.guest, tracing.request.configuration.clock is ClockKind.ICOUNT
        self._interludes = Interludes(guest.system, self.door.look) if guest is not None and is_counted else None
        self.ending: Ending | None = None
        self.is_left = False  # it was ended because the user left
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._go, name="guest")

    def start(self) -> None:
        """Start the run."""
        if self._interludes is not None:
            self._interludes.start()
        self._thread.start()

    def leave(self) -> None:
        """The user has left: the run will be ended."""
        self.is_left = True

    def stop(self) -> None:
        """End the run, if it is not over, and wait until its last output is printed."""
        self.door.end()
        self._thread.join()
        if self._interludes is not None:
            self._interludes.close()
        self.door.close()

    @property
    def sample(self) -> Sample | None:
        """The latest sample."""
        return self._sampler.latest

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, with or without an error."""
        return self.ending is not None or self.error is not None

    def _between(self) -> None:
        self._sampler.take_if_due(is_due=lambda: self.door.is_paused)

    def _go(self) -> None:
        try:
            ending = self._running.finish(self._running.go(self._limits))
            self._sampler.take()
            self.ending = ending
        except BaseException as error:  # the main thread raises it
            self.error = error
