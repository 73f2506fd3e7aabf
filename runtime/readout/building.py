"""All that was prepared, and memory that is somewhere else -> what its standalone image has found, traced.

Like `kinst.runtime.tracing.building`, for a guest that runs elsewhere, or ran.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from kinst.runtime.clauses.guest_memory import GuestMemory
from kinst.runtime.clauses.no_guest import NoStacks, NoUserSymbols
from kinst.runtime.clauses.profiles import BareProfile
from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.clauses.symbols import ImageSymbols
from kinst.runtime.machine.boards.registry import new_board
from kinst.runtime.machine.configuration import ClockKind, End
from kinst.runtime.machine.loaded import Loaded
from kinst.runtime.patched.recorded import RecordedHits
from kinst.runtime.patched.sites import Patched, SiteTable
from kinst.runtime.providers.dtrace import DtraceProvider
from kinst.runtime.readout.admission import Admission
from kinst.runtime.readout.constants import Constants
from kinst.runtime.readout.memory import Source
from kinst.runtime.readout.readings import Readings
from kinst.runtime.tracing.ending import Ending, Outcome, bare_ending
from kinst.runtime.tracing.host import NoGuest
from kinst.runtime.tracing.image_probes import providers_of
from kinst.runtime.tracing.limits import Limits
from kinst.runtime.tracing.plug_ins import PlugIns
from kinst.runtime.tracing.preparing import Prepared
from kinst.runtime.tracing.program_text import Origin, ProgramText
from kinst.runtime.tracing.request import Request
from kinst.runtime.tracing.surroundings import SCRATCH, Surroundings
from kinst.runtime.trap.arch.registry import emulator
from kinst.targets.c_types import ImageTypes
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import UsageError
from kinst.targets.machines.registry import default_machine

# What is run over an image if the user has no program: a line for each probe that was hit.
_SUMMARY: Final = """
::: { @hits[probeprov, probemod, probefunc, probename] = count(); }
END { printa("%@12d %s:%s:%s:%s\\n", @hits); }
"""


@dataclass(frozen=True, slots=True)
class Readout:
    """See `kinst.runtime.tracing.built.Built`."""

    prepared: Prepared
    surroundings: Surroundings
    readings: Readings
    inlines: ClassVar = None
    has_guest: ClassVar = False
    exit_code: ClassVar = 0
    answer: ClassVar = ""

    def on_turn(self, callback: Callable[[], None]) -> None:
        """Let `callback` be called now and then."""
        self.readings.on_turn(callback)

    def go(self, limits: Limits, console: Callable[[bytes], None]) -> End:
        """Let probes fire for what was found; live, until something ends it. Raises MachineError: memory cannot be read
        any more."""
        return self.readings.run(limits)

    def ending(self, outcome: Outcome) -> Ending:
        """Of the guest there is nothing to tell: it may go on."""
        return bare_ending(outcome)


def with_summary(request: Request) -> Request:
    """The request with a program that counts each probe's hits, the most first."""
    for option in ("aggsortrev", "quiet"):
        request.options.set(option, None)
    return replace(request, programs=(ProgramText(Origin.NAME, _SUMMARY, _SUMMARY),))


class ReadoutBuilding:
    """Makes a `Readout` of what was prepared: a `kinst.runtime.tracing.built.Build`."""

    def __init__(self, source: Source, interval: int | None) -> None:
        """Read `source` once, or again every `interval` ns."""
        self._source, self._interval = source, interval

    def __call__(
        self, prepared: Prepared, types: ImageTypes, plug_ins: PlugIns, warn: Callable[[str], None]
    ) -> Readout:
        """Nothing is read yet. Raises KinstError: the image is no standalone one, or memory is of another machine."""
        manifest = prepared.manifest
        if manifest is None or manifest.standalone is None:
            raise UsageError(
                f"{prepared.path}: is not standalone, and keeps nothing: kinst-rewrite --standalone makes one"
            )
        arch, kept = prepared.image.facts, manifest.standalone
        hits = RecordedHits(arch, kept, prepared.facts.timebase, lambda: host.now())
        host, dtrace = NoGuest(ClockKind.HOST, arch, hits.frame), DtraceProvider()
        places = ((one.address, one.load_address, one.size) for one in prepared.image.segments if one.kind == PT_LOAD)
        loaded = Loaded(prepared.image, 0, prepared.image.entry, tuple(places))
        exceptions = new_board(default_machine(arch.name)).exceptions
        sites = SiteTable(Patched(manifest, loaded, b""), arch, emulator(arch), exceptions)
        providers = providers_of(dtrace, host, sites, loaded, types)
        hits.attach(sites)
        readings = Readings(self._source, self._interval, prepared.image, manifest, kept, hits, host)
        scratch = Scratch(SCRATCH)
        constants = Constants(prepared.original)
        symbols = ImageSymbols(prepared.original, lambda: prepared.program().functions)
        surroundings = Surroundings(
            host=host,
            providers=providers,
            dtrace=dtrace,
            scratch=scratch,
            memory=GuestMemory(scratch, constants.translate, constants.translate, constants),
            stacks=NoStacks(),
            user_stacks=NoStacks(),
            symbols=symbols,
            user_symbols=NoUserSymbols(symbols.object_start),
            locate=lambda link, _site: link,
            profile=BareProfile(prepared.path.name),
            arm=readings.begin,
            fold=lambda: None,
            admit=Admission(manifest, kept, arch, warn),
            timestamp=hits.now,
            take_drops=readings.take_drops,
        )
        return Readout(prepared, surroundings, readings)
