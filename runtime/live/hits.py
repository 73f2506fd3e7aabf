"""The memory of a guest that runs elsewhere -> the counters and records of its image, as long as nothing else stores to
them."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import numpy as np

from kinst.runtime.live.ram import SharedRam
from kinst.runtime.live.standalone_image import StandaloneImage
from kinst.runtime.readout.memory import Space, UnreadableError
from kinst.runtime.readout.placement import Placement, Read
from kinst.runtime.tracing.host.contract import TIME_BASE
from kinst.runtime.tracing.standalone.drawn_counters import CLEARED, first_wrong, is_of_image, start_values
from kinst.runtime.tracing.standalone.findings import Part
from kinst.runtime.tracing.standalone.probes import KeptProbes
from kinst.runtime.tracing.standalone.steady_code import SteadyCode
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import MachineError
from kinst.targets.kernels.leading_records import led_elsewhere
from kinst.targets.standalone import WORD

_SOONEST, _LATEST = 20_000_000, 1_000_000_000  # ns between searches for an image that is not in memory yet
_SELDOM, _OFTEN = 10_000_000, 1_000_000  # ns between looks at records
_SMALL: Final = 1 << 12  # records
# Looks in which a record is awaited: the host may let a CPU of the guest wait in the middle of one.
_PATIENCE: Final = 64
_CHECKED: Final = 1_000_000_000  # ns between comparisons of all trampolines
_SAMPLES: Final = 32  # of trampolines inside the image
_GAVE_UP: Final = (
    "--lossless: hits waited for room in the ring for a second, and the guest would have stood still: it went on, and "
    "hits were lost"
)
_SAMPLE: Final = 12  # bytes of each; no trampoline is shorter


class Hits:
    """The hits of one image. A boot loader may put it into memory later; from then on its trampolines have to stay as
    they are."""

    def __init__(
        self,
        probes: KeptProbes,
        alone: StandaloneImage,
        placement: Placement,
        memory: SharedRam,
        now: Callable[[], int],
        warn: Callable[[str], None],
    ) -> None:
        """`now` is the host's time in ns; `warn` is called once if hits are lost. The guest is paused and has not
        begun."""
        standalone = alone.manifest.standalone
        assert standalone is not None, "it was made so"
        self.has_counters, self.has_ring = standalone.has_counters, standalone.has_ring
        # How often to look, in ns: a ring for which the image has little room is soon full.
        self._capacity, self._waits = standalone.capacity, standalone.waits
        is_small = self._capacity < _SMALL and self.has_ring
        self.interval = _OFTEN if is_small or self._waits else _SELDOM
        self._probes, self._placement, self._memory, self._now, self._warn = probes, placement, memory, now, warn
        self._code = _trampolines(alone)
        self._read: Read | None = None
        self._read_code: Read | None = None  # of a copy's trampolines, by physical addresses
        self._pause, self._next = _SOONEST, 0
        self._has_warned = self._gave_up = False
        self._base, self._paused_at = TIME_BASE, 0
        self._address = standalone.address
        may_clear = is_of_image(alone.image, alone.manifest, self._address)
        self._begun = start_values(standalone, len(alone.manifest.sites), may_clear=may_clear)
        # Before the guest can change anything. Where a boot loader loads the image later, it stores zeros there.
        if self._search(is_last=False) is None:
            self._begun = self._begun.as_loaded
        elif self._begun.size:
            memory.write(placement.physical(self._address + self._begun.offset), self._begun.data)
        if self._waits:
            self.find()  # makes room: nothing else is there

    def physical(self, link: int) -> int:
        """The physical address of a link address of the trampolines. Raises MachineError: the image was not in memory
        when the guest began."""
        if self._read is None:
            raise MachineError("QEMU has left it to firmware to put the kernel into memory: leave -bios out")
        return self._placement.physical(link)

    @property
    def is_loaded(self) -> bool:
        """Whether the image was found in memory."""
        return self._read is not None

    def follow(self, start: int, code: bytes) -> None:
        """The image goes on in a copy of itself, whose trampolines are at a physical address. Raises MachineError: its
        own were not what they should be until now."""
        if self._read is not None:
            self._check(self._read)
        self._code = [SteadyCode.of(start, code, np.zeros(0, np.uint64))]
        self._read_code = lambda address, size: self._memory.read(Space.PHYSICAL, address, size)

    def go_on(self) -> None:
        """Called before the guest begins, or continues after a pause, in which its clock stood still. What was recorded
        before that has been read."""
        self._base += self._now() - self._paused_at
        self._probes.begin_at(self._base)

    def pause(self) -> None:
        """Called when the guest was paused."""
        self._paused_at = self._now()

    def poll(self) -> None:
        """Called often: records have to be read before the ring is full. Counters are folded when they are read, but
        checked every second, so that a run whose counters the guest has overwritten ends soon. Raises MachineError: as
        `find`."""
        is_due = self._now() >= self._next
        if self.has_ring:
            self.find(Part.RECORDS)
        if is_due and self.has_counters and (read := self._read or self._search(is_last=False)) is not None:
            self._check(read)
            self._counted(read, self._address, self._begun.size)

    def find(self, part: Part = Part.ALL, *, is_last: bool = False) -> None:
        """Let probes fire for new records and counts, or a part of these.

        Raises:
            MachineError: this is the last time, and the image is not there; or something else has stored to its
                trampolines or counters, and what it did and counted since means nothing.
        """
        read = self._read or self._search(is_last=is_last)
        if read is None:
            return
        if is_last or self._now() >= self._next:
            self._check(read)
        if is_last and not self._has_warned:
            self._has_warned = self._begun.is_cleared(read(self._address + self._begun.offset, self._begun.size))
            if self._has_warned:
                self._warn(CLEARED)
        found = self._probes.find(
            lambda address, size: self._counted(read, address, size),
            part,
            is_last=is_last,
            store=self._store if self._waits and not is_last else None,
            patience=_PATIENCE,
        )
        if self._waits and part is not Part.COUNTS:
            self.interval = 0 if len(found.records) >= min(self._capacity // 2, _SMALL) else _OFTEN
        if found.gave_up and not self._gave_up:
            self._gave_up = True
            self._warn(_GAVE_UP)
        self._probes.fire(found)

    def _store(self, address: int, word: int) -> None:
        self._memory.store(self._placement.physical(address), word)

    def _counted(self, read: Read, address: int, size: int) -> bytes:
        """The bytes at a link address; counters without the values that they began with."""
        data = read(address, size)
        if not self.has_counters or address != self._address:
            return data
        data = self._begun.counted(data)
        if (wrong := first_wrong(data)) is not None:
            raise self._spoiled(f"a counter at {self._address + WORD * wrong:#x}")
        return data

    def _search(self, *, is_last: bool) -> Read | None:
        """Search the image in memory, at growing intervals. Raises MachineError: the last time it is not there."""
        if not is_last and self._now() < self._next:
            return None
        try:
            self._read = self._placement.reader(self._memory)
        except MachineError:
            if is_last:
                raise
            self._next, self._pause = self._now() + self._pause, min(2 * self._pause, _LATEST)
        return self._read

    def _check(self, read: Read) -> None:
        read = self._read_code or read
        for one in self._code:
            with suppress(UnreadableError):  # in flash, to which a guest does not store by chance
                if (address := one.difference(read(one.address, len(one.code)))) is not None:
                    raise self._spoiled(f"a trampoline at {address:#x}")
        self._next = self._now() + _CHECKED

    def _spoiled(self, what: str) -> MachineError:
        return MachineError(
            f"the guest itself stored to {what}: what it did and counted then means nothing: kinst-rewrite "
            "--standalone --trampoline-base makes an image for memory that it leaves alone, which --on runs as well"
        )


def _trampolines(alone: StandaloneImage) -> list[SteadyCode]:
    """Trampolines to compare: all of a segment of their own, without the counters and records in it; a sample of those
    inside the image."""
    image, manifest, standalone = alone.image, alone.manifest, alone.manifest.standalone
    assert standalone is not None, "it was made so"
    written, (start, size) = led_elsewhere(image, manifest), manifest.trampolines
    if any(one.kind == PT_LOAD and one.address == start for one in image.segments):
        end = min(start + size, standalone.address) if standalone.address >= start else start + size
        return [SteadyCode.of(start, image.read(start, end - start), written)]
    starts = sorted({*manifest.sites["trampoline"].tolist()})
    chosen = starts[:: max(1, len(starts) // _SAMPLES)]
    return [SteadyCode.of(one, image.read(one, _SAMPLE), written) for one in chosen]
