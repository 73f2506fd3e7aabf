"""A virtio device for every transport: the driver's status, its queues, and when they are served.

The registers of `virtio_mmio` and `virtio_pci` read and write the state here. What a chain of buffers means is known
to a `Model`. Queues are served between two turns of a CPU, a fixed time after the driver's notification, so that it is
the same in every run under the instruction clock. A request may name the same memory many times, and so be of any
size: it is served in pieces, with turns of the CPUs in between, at which limits of the run and Ctrl-C take effect.
"""

from collections.abc import Callable, Generator
from typing import Final, Protocol

from kinst.runtime.machine.device import Line
from kinst.runtime.machine.devices.virtio.split_queue import BrokenQueueError, Chain, SplitQueue
from kinst.runtime.machine.machine import Machine
from kinst.targets.errors import MachineError

# Bits of the status (virtio 1.2, 2.1)
DRIVER_OK, FEATURES_OK, NEEDS_RESET = 4, 8, 64
QUEUE_INTERRUPT, CONFIGURATION_INTERRUPT = 1, 2
INDIRECT, VERSION_1 = 1 << 28, 1 << 32  # features
_WORD: Final = 0xFFFF_FFFF
_LATENCY: Final = 10_000  # ns from a notification to the answer, and between two parts of a long one

# A request that is being served: it yields the bytes of each piece that it has moved, and returns how many were written
# to the chain.
Work = Generator[int, None, int]


class Model(Protocol):
    """What differs between kinds of devices."""

    @property
    def identity(self) -> int:
        """Its number (virtio 1.2, 5)."""
        ...

    @property
    def class_code(self) -> int:
        """Its class as a PCI device: base class and subclass."""
        ...

    @property
    def features(self) -> int:
        """Bits that it offers, without those that every device here has."""
        ...

    @property
    def configuration(self) -> bytes:
        """Its configuration space."""
        ...

    @property
    def queues(self) -> tuple[int, ...]:
        """The most entries of each queue, powers of 2."""
        ...

    @property
    def at_once(self) -> int:
        """The most bytes that it moves before the CPUs get their turn; no piece has more."""
        ...

    def attach(self, notify: Callable[[int], None]) -> None:
        """Called once: `notify` makes the device serve a queue, as a driver's notification does."""
        ...

    def can_serve(self, queue: int) -> bool:
        """Whether it can serve a queue now."""
        ...

    def serve(self, chain: Chain) -> Work:
        """Serve a chain. Raises BrokenQueueError."""
        ...


class Immediate:
    """What models have in common that can serve everything at once."""

    at_once = 4 << 20

    def attach(self, notify: Callable[[int], None]) -> None:
        """See `Model`."""

    def can_serve(self, queue: int) -> bool:
        """See `Model`."""
        return True


class VirtioDevice:
    """A model with its driver's state; a `Timed` device, whose registers are a transport's."""

    def __init__(self, machine: Machine, model: Model, line: Line) -> None:
        """`line` is high while an interrupt is not acknowledged."""
        self._machine, self._line = machine, line
        self.model = model
        self.features = model.features | INDIRECT | VERSION_1
        self.queues = tuple(SplitQueue(machine.memory, size) for size in model.queues)
        self.status = self.interrupts = self._accepted = 0
        self.offered_half = self.accepted_half = self.queue_number = (
            0  # which part the registers show, as the driver has selected
        )
        self._notified = set[int]()
        self._begun: dict[int, tuple[Chain, Work]] = {}  # by queue: the chain that is partly served
        self._due: int | None = None
        machine.attach_timed(self)
        model.attach(self.notify)

    # -- what transports pass on --------------------------------------------------------------------------------------

    def show_offered(self, half: int) -> None:
        """Let the registers show these 32 of the features that the device has."""
        self.offered_half = half

    def show_accepted(self, half: int) -> None:
        """Let the registers show these 32 of the features that the driver accepts."""
        self.accepted_half = half

    def select_queue(self, number: int) -> None:
        """Let the registers be those of a queue."""
        self.queue_number = number

    def offered(self) -> int:
        """32 of the features that the device has."""
        return _half(self.features, self.offered_half)

    def accepted(self) -> int:
        """32 of the features that the driver accepts."""
        return _half(self._accepted, self.accepted_half)

    def accept(self, bits: int) -> None:
        """Accept 32 bits of features for the driver. They take effect with FEATURES_OK."""
        at = 32 * self.accepted_half
        if at <= 32 and not self.status & FEATURES_OK:
            self._accepted = self._accepted & ~(_WORD << at) | bits << at

    def set_status(self, value: int) -> None:
        """The driver's progress; 0 resets the device. The device refuses features by not showing FEATURES_OK."""
        if not value:
            self._reset()
            return
        if value & FEATURES_OK and not self._are_features_valid():
            value &= ~FEATURES_OK
        self.status = self.status | value

    def queue(self) -> SplitQueue | None:
        """The queue that the driver chose, if there is one with its number."""
        return self.queues[self.queue_number] if self.queue_number < len(self.queues) else None

    def notify(self, index: int) -> None:
        """Serve a queue soon: the driver has made chains available."""
        if index < len(self.queues):
            self._notified.add(index)
            if self._due is None:
                self._due = self._machine.clock.now() + _LATENCY
                self._machine.notice_deadline(self)

    def acknowledge(self, bits: int) -> None:
        """Clear these interrupts for the driver."""
        self._interrupt(self.interrupts & ~bits)

    def configuration(self, offset: int, size: int) -> int:
        """Bytes of the configuration space; zeros after its end."""
        return int.from_bytes(self.model.configuration[offset : offset + size], "little")

    # -- its own work -------------------------------------------------------------------------------------------------

    def deadline(self) -> int | None:
        """When it will serve its queues, in ns."""
        return self._due

    def advance(self) -> None:
        """Serve the queues that the driver has notified of, at most `at_once` bytes."""
        self._due = None
        left = self.model.at_once
        for index in sorted(self._notified):
            left = self._work(index, left)
            if left > 0:
                self._notified.discard(index)
        if self._notified:
            self._due = self._machine.clock.now() + _LATENCY

    def _work(self, index: int, left: int) -> int:
        """Serve chains of a queue until `left` bytes are moved or there are no more. Returns what is left of them."""
        queue, is_done = self.queues[index], False
        try:
            while left > 0 and self._is_at_work() and queue.is_ready:
                begun = self._begun.pop(index, None) or self._next(index)
                if begun is None:
                    break
                chain, work = begun
                left, written = _moved(work, left)
                if written is None:
                    self._begun[index] = chain, work
                else:
                    queue.give_back(chain, written)
                    is_done = True
            if is_done and queue.wants_interrupt():
                self._interrupt(self.interrupts | QUEUE_INTERRUPT)
        except (BrokenQueueError, MachineError):  # invalid numbers, or addresses without memory
            self.status |= NEEDS_RESET
            self._interrupt(self.interrupts | CONFIGURATION_INTERRUPT)
        return left

    def _next(self, index: int) -> tuple[Chain, Work] | None:
        """The next chain of a queue; None if there is none that can be served."""
        chain = self.queues[index].take() if self.model.can_serve(index) else None
        return None if chain is None else (chain, self.model.serve(chain))

    def _is_at_work(self) -> bool:
        return bool(self.status & DRIVER_OK) and not self.status & NEEDS_RESET

    def _are_features_valid(self) -> bool:
        """Whether the driver accepts only what is offered, and is not one for virtio before 1.0."""
        return not self._accepted & ~self.features and bool(self._accepted & VERSION_1)

    def _interrupt(self, bits: int) -> None:
        self.interrupts = bits
        self._line(bool(bits))

    def _reset(self) -> None:
        self.status = self._accepted = 0
        self._due = None
        self._notified.clear()
        self._begun.clear()
        for queue in self.queues:
            queue.reset()
        self._interrupt(0)


def _moved(work: Work, left: int) -> tuple[int, int | None]:
    """Serve a request until `left` bytes are moved: what is left of them, and what it returns if it is done, else
    None."""
    try:
        while left > 0:
            left -= next(work)
    except StopIteration as done:
        written: int = done.value
        return left, written
    return left, None


def _half(features: int, half: int) -> int:
    return features >> 32 * half & _WORD if half < 2 else 0
