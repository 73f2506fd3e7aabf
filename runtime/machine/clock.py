"""The machine's time: the host's, or the number of executed guest instructions."""

import ctypes
import select
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol, assert_never

from kinst.runtime.engine.hit_records import ClockWord
from kinst.runtime.engine.native_hooks import InstructionCounter
from kinst.runtime.machine.configuration import ClockKind, Configuration

LONGEST_SLEEP: Final = 100_000_000  # ns, so that Ctrl-C takes effect soon
_KEPT: Final = 1.0  # s after which a thread without a deadline ends
NANOSECONDS_PER_INSTRUCTION: Final = 10  # icount: a guest CPU of 100 MIPS


class MachineClock(Protocol):
    """A clock that can also wait, and limit a run."""

    @property
    def word(self) -> ClockWord:
        """How the host code of the engine reads the time that `now` gives."""
        ...

    def now(self) -> int:
        """Nanoseconds since the machine was switched on."""
        ...

    def begin(self, limit: int) -> None:
        """A run starts. It should end when `limit` nanoseconds have passed."""
        ...

    def begin_one(self) -> None:
        """A run of one instruction starts."""
        ...

    def end(self) -> None:
        """The run ended."""
        ...

    def wait(self, until: int, descriptors: Sequence[int]) -> None:
        """Wait until this time, or less: the caller checks and calls again. All CPUs are waiting. `descriptors`: the
        wait ends when one of these files can be read."""
        ...

    def skip(self, until: int) -> None:
        """Advance to this time."""
        ...

    def restart(self) -> None:
        """Begin at 0, between two runs: the machine is switched on again. Runs are short from now on."""
        ...

    def set(self, now: int) -> None:
        """Between two runs, let it be another time: that of a snapshot."""
        ...

    def stand_still(self, duration: int) -> None:
        """Take back so many nanoseconds of the host's time, which have passed between two turns, so that the guest does
        not notice them."""
        ...

    def interrupt(self) -> None:
        """End the run now, if possible after the instruction that is being executed."""
        ...

    def rest(self) -> None:
        """Release what only a running machine needs: it stops, for now or for good."""
        ...

    def close(self) -> None:
        """Release everything: the machine stops for good, or for long."""
        ...


class HostClock:
    """Real time. A thread stops the engine when a run's time is over."""

    def __init__(self, stop: Callable[[], None], counter: InstructionCounter | None = None) -> None:
        """With a `counter` runs can end after any instruction, which a debugger needs."""
        self._stop, self._counter = stop, counter
        self._start = time.monotonic_ns()
        self._condition = threading.Condition()
        self._deadline: int | None = None
        self._wakes: int | None = None  # when the thread will wake and check the deadline; None: when it is notified
        self._thread: threading.Thread | None = None
        self._is_closed = self._is_kept = False
        self._word = ctypes.c_uint64(-self._start)
        self.word = ClockWord(ctypes.addressof(self._word), is_host=True)

    def now(self) -> int:
        """Nanoseconds since the machine was switched on."""
        return time.monotonic_ns() - self._start

    def begin(self, limit: int) -> None:
        """Let the thread stop the run `limit` nanoseconds from now. It is not woken if it wakes by itself before that,
        since switches between threads would take longer than a short run."""
        if self._counter is not None:
            self._counter.grant()
        with self._condition:
            self._deadline = self.now() + limit
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="machine clock", daemon=True)
                self._thread.start()
            elif self._wakes is None or self._wakes > self._deadline:
                self._condition.notify()

    def begin_one(self) -> None:
        """Grant it, if instructions are counted. If not, the engine ends the run."""
        if self._counter is not None:
            self._counter.grant(1)

    def end(self) -> None:
        """The run ended: the thread has nothing to stop."""
        with self._condition:
            self._deadline = None

    def wait(self, until: int, descriptors: Sequence[int]) -> None:
        """Sleep until this time, but not too long."""
        left = max(0, min(until - self.now(), LONGEST_SLEEP))
        select.select(descriptors, (), (), left / 1e9)

    def skip(self, until: int) -> None:
        """Sleep until this time."""
        time.sleep(max(0, until - self.now()) / 1e9)

    def restart(self) -> None:
        """Begin at 0. To start and end a thread would take longer than a short run: it is kept for the next one, if
        that comes soon."""
        self._is_kept = True
        if self._thread is not None and not self._thread.is_alive():  # a fork has only the thread that called it
            self._thread, self._condition = None, threading.Condition()
        with self._condition:
            passed = self.now()
            self._start += passed
            self._word.value = -self._start
            if self._wakes is not None:
                self._wakes -= passed

    def set(self, now: int) -> None:
        """Let it be another time."""
        self._start = time.monotonic_ns() - now
        self._word.value = -self._start

    def stand_still(self, duration: int) -> None:
        """Set the clock back."""
        self._start += duration
        self._word.value = -self._start

    def interrupt(self) -> None:
        """Stop at the end of the translated block; where instructions are counted, before the next one."""
        if self._counter is None:
            self._stop()
        else:
            self._counter.grant(0)

    def rest(self) -> None:
        """End the thread, unless it is kept."""
        if not self._is_kept:
            self.close()

    def close(self) -> None:
        """End the thread; the next run has another."""
        with self._condition:
            thread, self._is_closed = self._thread, True
            self._condition.notify()
        if thread is not None:
            thread.join()
        self._thread, self._is_closed = None, False

    def _watch(self) -> None:
        with self._condition:
            while not self._is_closed:
                now = self.now()
                if self._deadline is not None and self._deadline <= now:
                    self._stop()
                    self._deadline = None
                self._wakes = self._deadline
                left = _KEPT if self._wakes is None else (self._wakes - now) / 1e9
                if not self._condition.wait(left) and self._wakes is None and self._deadline is None:
                    self._thread = None
                    return


class InstructionClock:
    """Virtual time: every executed instruction takes the same time, whatever the trap path did for it. A plain and a
    patched image see the same times at the same instructions."""

    def __init__(self, counter: InstructionCounter) -> None:
        self._counter = counter
        self._skipped = 0
        self._word = ctypes.c_uint64()  # the time when the budget will be used up
        self.word = ClockWord(ctypes.addressof(self._word), NANOSECONDS_PER_INSTRUCTION)

    def now(self) -> int:
        """Nanoseconds since the machine was switched on."""
        return self._counter.executed * NANOSECONDS_PER_INSTRUCTION + self._skipped

    def begin(self, limit: int) -> None:
        """Give the run its budget of instructions."""
        self._grant(max(1, -(-limit // NANOSECONDS_PER_INSTRUCTION)))

    def begin_one(self) -> None:
        """Give the run a budget of one instruction."""
        self._grant(1)

    def end(self) -> None:
        """Do nothing: the budget is used up, or the next `begin` takes the rest of it back."""

    def wait(self, until: int, descriptors: Sequence[int]) -> None:
        """Set the time to `until`. If input may arrive meanwhile, this takes as long for the host as for the guest,
        which would otherwise idle as fast as it can; input ends it at the time at which it arrives."""
        if descriptors:
            start, left = time.monotonic_ns(), max(0, until - self.now())
            if select.select(descriptors, (), (), left / 1e9)[0]:
                until = min(until, self.now() + time.monotonic_ns() - start)
        self.skip(until)

    def skip(self, until: int) -> None:
        """Set the time to `until`."""
        self._skipped += max(0, until - self.now())
        self._note()

    def restart(self) -> None:
        """Begin at 0. The counter of instructions continues; those so far do not count any more."""
        self._skipped -= self.now()
        self._note()

    def set(self, now: int) -> None:
        """Let it be another time."""
        self._skipped += now - self.now()
        self._note()

    def stand_still(self, duration: int) -> None:
        """Do nothing: no instruction was executed."""

    def interrupt(self) -> None:
        """Take the budget back: the next instruction is not executed."""
        self._grant(0)

    def rest(self) -> None:
        """Do nothing: there is no thread."""

    def close(self) -> None:
        """Do nothing: there is no thread."""

    def _grant(self, instructions: int) -> None:
        self._counter.grant(instructions)
        self._note()

    def _note(self) -> None:
        self._word.value = self._counter.promised * NANOSECONDS_PER_INSTRUCTION + self._skipped


def new_clock(
    configuration: Configuration, stop: Callable[[], None], count: Callable[[], InstructionCounter]
) -> MachineClock:
    """The clock that a user has chosen. `stop` ends a run at its next block; `count` begins to count instructions."""
    match configuration.clock:
        case ClockKind.HOST:
            return HostClock(stop, count() if configuration.counts_instructions else None)
        case ClockKind.ICOUNT:
            return InstructionClock(count())
        case _:
            assert_never(configuration.clock)
