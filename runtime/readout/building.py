"""A prepared standalone image, and memory that is somewhere else -> probes that fire for what is in that memory.

Like `kinst.runtime.tracing.guests.building`, for a guest that runs elsewhere, or ran.
"""

import math
from collections.abc import Callable
from typing import ClassVar

from kinst.runtime.machine.configuration import ClockKind, End
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.patched.sites import SiteTable
from kinst.runtime.readout.memory import Source
from kinst.runtime.readout.placement import Placement
from kinst.runtime.readout.readings import Readings
from kinst.runtime.tracing.host.contract import NoGuest
from kinst.runtime.tracing.host.ending import Ending, Outcome, bare_ending
from kinst.runtime.tracing.host.limits import Limits
from kinst.runtime.tracing.host.surroundings import Surroundings
from kinst.runtime.tracing.images.plug_ins import PlugIns
from kinst.runtime.tracing.images.preparing import Prepared
from kinst.runtime.tracing.standalone.probes import StandaloneProbes
from kinst.targets.c_types import ImageTypes
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Readout:
    """See `kinst.runtime.tracing.guests.built.Built`."""

    prepared: Prepared
    surroundings: Surroundings
    readings: Readings
    inlines: ClassVar = None
    has_guest: ClassVar = False
    keyboard: ClassVar = None
    exit_code: ClassVar = 0
    answer: ClassVar = ""

    def go(self, limits: Limits, console: Callable[[bytes], None], after_turn: Callable[[], None]) -> End:
        """Let probes fire for what was found; live, until a limit ends it. Raises MachineError: memory cannot be read
        any more."""
        return self.readings.run(limits, after_turn)

    def ending(self, outcome: Outcome) -> Ending:
        """The end of the readings. The guest itself may go on."""
        return bare_ending(outcome)


class ReadoutBuilding:
    """Makes a `Readout` of a prepared image: a `kinst.runtime.tracing.guests.built.Build`."""

    def __init__(self, source: Source, interval: int | None, end: float = math.inf) -> None:
        """Read `source` once, or again every `interval` ns, up to `end`, of time.monotonic()."""
        self._source, self._interval, self._end = source, interval, end

    def __call__(
        self, prepared: Prepared, types: ImageTypes, plug_ins: PlugIns, warn: Callable[[str], None]
    ) -> Readout:
        """Nothing is read yet. Raises KinstError: the image is not standalone, or memory is of another machine."""
        manifest = prepared.manifest
        if manifest is None or manifest.standalone is None:
            raise UsageError(
                f"{prepared.path}: is not standalone, and keeps nothing: kinst-rewrite --standalone makes one"
            )
        image, probes = prepared.image, StandaloneProbes(prepared, manifest, manifest.standalone, warn)
        host = NoGuest(ClockKind.HOST, image.facts, probes.frame)
        board = prepared.facts
        ram = range(board.ram_base, board.ram_base + board.ram_size)
        placement = Placement(image, manifest, manifest.standalone, ram)
        readings = Readings(self._source, self._interval, self._end, placement, probes, host, warn)
        segments = ((one.address, one.load_address, one.size) for one in image.segments if one.kind == PT_LOAD)
        loaded = Loaded(image, 0, image.entry, tuple(segments))

        def begin(sites: SiteTable | None) -> None:
            probes.check(sites)
            readings.begin()

        found = probes.surroundings(host, loaded, types, begin, probes.admitting(warn))
        return Readout(prepared, found, readings)
