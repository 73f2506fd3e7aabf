"""A standalone image, wherever it runs -> its probes, which fire for what it counted or recorded in its memory.

Nothing is known of a hit but what the image kept: of memory the words of its record, and what is read-only.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.clauses.environment import GuestProfile
from kinst.runtime.clauses.guest.no_guest import NoUserSymbols
from kinst.runtime.clauses.guest.symbols import ImageSymbols
from kinst.runtime.clauses.profiles import Guest, profile_for
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.patched.sites import Patched, SiteHooks, SiteTable
from kinst.runtime.providers.dtrace import DtraceProvider
from kinst.runtime.systems.registry import SYSTEMS
from kinst.runtime.tracing.host.contract import Host, blank_firing
from kinst.runtime.tracing.host.surroundings import Admit, Surroundings
from kinst.runtime.tracing.images.image_probes import providers_of
from kinst.runtime.tracing.images.plug_ins import PlugIns
from kinst.runtime.tracing.images.preparing import Prepared
from kinst.runtime.tracing.standalone.admission import Admission
from kinst.runtime.tracing.standalone.columns import CpuSource, own_number
from kinst.runtime.tracing.standalone.findings import Findings, Found, Part, Read, Store
from kinst.runtime.tracing.standalone.forms import Forms
from kinst.runtime.tracing.standalone.record_threads import RecordThreads
from kinst.runtime.tracing.standalone.recorded import RecordedHits
from kinst.runtime.trap.arch.registry import emulator
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.runtime.unwinding.stack_regions import StackRegions, stack_size
from kinst.targets.c_types import ImageTypes
from kinst.targets.errors import KinstError
from kinst.targets.manifest.packed import Manifest
from kinst.targets.standalone import Standalone

_CPU: Final = 0  # that of counts and drops, and of records that do not have theirs
_TOO_LATE: Final = (
    "the guest has gone on since the hit: our own machine with breakpoints can: leave out --on and --method jump, and"
    " give an image that is not standalone"
)


class Following(Protocol):
    """What follows calls from one record to another, and so has to know what is lost."""

    def begin(self, *, is_behind: bool, has_gaps: bool) -> None:
        """Records come: `is_behind`, records were lost before them; `has_gaps`: or between them, nobody knows where."""
        ...

    def take_lost(self) -> int:
        """How many hits of its own probes were lost since the last time."""
        ...


class KeptProbes:
    """The probes of one image. What it keeps of hits may be decided later (`expect`)."""

    def __init__(self, prepared: Prepared, manifest: Manifest | None, warn: Callable[[str], None]) -> None:
        """`manifest` names the probes; None: there are none. `warn` is called with what is not shown whole."""
        self.manifest = manifest
        self._prepared = prepared
        self._hits = RecordedHits(prepared.original, prepared.program, warn)
        self._findings: Findings | None = None
        self._rows: NDArray[np.intp] | None = None
        self._counts = np.zeros(0, np.uint64)  # of the sites of the image that was made
        self._lost = 0
        self._following: Following | None = None

    def follow(self, following: Following) -> None:
        """Tell this of records that come, and of those that are lost."""
        self._following = following

    @property
    def frame(self) -> TrapFrame:
        """The registers, as clauses see them."""
        return self._hits.frame

    def surroundings(
        self,
        host: Host,
        loaded: Loaded,
        types: ImageTypes,
        arm: Callable[[SiteTable | None], None],
        admit: Admit,
        plug_ins: PlugIns | None = None,
    ) -> Surroundings:
        """What clauses can see.

        Args:
            host: the machine whose time passes.
            loaded: the image.
            types: prototypes of functions, for args[].
            arm: called with the sites before the run.
            admit: see `Surroundings`.
            plug_ins: providers that plant points.
        """
        prepared, arch, dtrace = self._prepared, host.arch, DtraceProvider()
        sites = None
        if self.manifest is not None:
            # No site is left by a jump, unless the manifest lies.
            hooks = SiteHooks(returning=lambda enablings, _size: enablings[0])
            sites = SiteTable(Patched(self.manifest, loaded, b""), arch, emulator(arch), hooks)
        providers = providers_of(dtrace, host, sites, loaded, types)
        if plug_ins is not None:
            plug_ins.register(providers, sites, self._hits.memory, loaded.bias, host.now)
        if sites is not None:
            self._hits.attach(sites, host.now)
        stacks, profile = self._hits.stacks, self._profile(types)
        stacks.cross(profile.interrupted)
        symbols = ImageSymbols(
            *(prepared.original, lambda: prepared.program().functions),
            moved=self._hits.moved.link,
            follows_call=stacks.follows_call,
        )
        return Surroundings(
            host=host,
            providers=providers,
            dtrace=dtrace,
            scratch=self._hits.scratch,
            memory=self._hits.memory,
            stacks=stacks,
            symbols=symbols,
            locate=self._hits.moved.locate,
            user_symbols=NoUserSymbols(symbols.object_start),
            profile=profile,
            intervene=_TOO_LATE,
            arm=lambda: arm(sites),
            admit=admit,
            timestamp=self._hits.now,
            take_drops=self._take_drops,
        )

    def _profile(self, types: ImageTypes) -> GuestProfile:
        """What records show of the system in the image."""
        prepared, hits = self._prepared, self._hits
        arch, size = prepared.image.facts, stack_size(prepared.original.symbols)
        memory = hits.memory
        regions = StackRegions(lambda _address: True, size)
        known = Guest(
            name=prepared.path.name,
            arch=arch,
            types=types,
            memory=memory,
            is_user=lambda _firing: False,
            threads=RecordThreads(regions, arch.stack_pointer, hits.stacks.reach, lambda: memory.task),
            symbol=prepared.original.symbols.address_of,
            stack_size=size,
            task=lambda: memory.task,
        )
        return profile_for(known, SYSTEMS, prepared.request.system)

    def expect(
        self,
        kept: Standalone,
        forms: NDArray[np.intp],
        timebase: int,
        rows: NDArray[np.intp] | None = None,
        cpu: CpuSource | None = None,
    ) -> None:
        """Set what memory holds from now on.

        Args:
            kept: what the image keeps.
            forms: of its sites, as `Manifest.site_forms`.
            timebase: the frequency of the clock in records, in Hz.
            rows: for each of its sites the row in the manifest; None: the rows are equal.
            cpu: where records have the number of their CPU; None: the CPU's own number.
        """
        arch = self._prepared.image.facts
        self._findings, self._rows, cpu = Findings(kept, forms), rows, cpu or own_number(arch)
        self._counts = np.zeros(len(forms), np.uint64)
        of_sites = forms if rows is None else np.full(int(rows.max(initial=-1)) + 1, -1)
        if rows is not None:
            of_sites[rows] = forms
        self._hits.expect(Forms(kept.record_forms, of_sites, cpu, arch), timebase, cpu)

    def move(self, by: int) -> None:
        """Set by how many bytes the image was moved from its link addresses in the guest, which is not known before."""
        self._hits.moved.move(by)

    def begin_at(self, time: int) -> None:
        """Set at which time (ns) of the host in `surroundings` the clock in records was 0."""
        self._hits.begin_at(time)

    def find(
        self, read: Read, part: Part = Part.ALL, *, is_last: bool, store: Store | None = None, patience: int = 1
    ) -> Found:
        """What is new in memory, which `read` reads by link addresses; with `store` there is room for more then.
        `patience`: see `Findings`. Raises MachineError."""
        assert self._findings is not None, "expect() comes first"
        found = self._findings.take(read, part, is_last=is_last, store=store, patience=patience)
        self._lost += found.lost
        self._counts += found.hits
        found = found if self._rows is None else _by_rows(found, self._rows)
        found = replace(found, records=self._hits.forms.in_order(found.records))
        self._hits.begin(found)
        return found

    @property
    def counted(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The addresses of the sites that the image has, and how many hits of each were found."""
        assert self.manifest is not None, "there are probes"
        addresses = self.manifest.sites["address"].astype(np.uint64)
        return addresses if self._rows is None else addresses[self._rows], self._counts.astype(np.int64)

    def fire(self, found: Found) -> None:
        """Let probes fire for what `find` found."""
        if self._following is not None:
            self._following.begin(is_behind=found.lost > 0, has_gaps=found.has_gaps)
        self._hits.fire(found, blank_firing(self.frame, _CPU, _CPU))

    def _take_drops(self) -> dict[int, int]:
        """Records that were lost since the last time, by CPU."""
        lost, self._lost = self._lost, 0
        lost += 0 if self._following is None else self._following.take_lost()
        return {_CPU: lost} if lost else {}


class StandaloneProbes(KeptProbes):
    """The probes of an image whose file says what it keeps."""

    def __init__(self, prepared: Prepared, manifest: Manifest, kept: Standalone, warn: Callable[[str], None]) -> None:
        """`manifest` is the one of the prepared image, and `kept` is in it; `warn`: see `KeptProbes`."""
        super().__init__(prepared, manifest, warn)
        self.manifest: Manifest = manifest
        self.kept = kept
        self.expect(kept, manifest.site_forms, prepared.facts.timebase)

    def admitting(self, warn: Callable[[str], None]) -> Admission:
        """The check of clauses against what is kept. `warn` is called with warnings."""
        return Admission(
            *(self.manifest, self.kept, self._prepared.image.facts, warn),
            is_made_here=self._prepared.planned.plan is not None,
            cpus=self._prepared.request.configuration.cpus,
        )

    def check(self, sites: SiteTable | None) -> None:
        """Refuse actions in Python, which `admitting` does not see. Raises KinstError."""
        if sites is not None and (sites.is_recorded & (self.manifest.site_forms < 0)).any():
            raise KinstError("an action in Python is called for each hit, and the image only counts")


def _by_rows(found: Found, rows: NDArray[np.intp]) -> Found:
    """What was found, with the rows of the manifest in place of the image's own."""
    hits, records = np.zeros(int(rows.max(initial=-1)) + 1, np.uint64), found.records.copy()
    hits[rows] = found.hits
    records[:, 0] = rows[records[:, 0].astype(np.intp)]
    return replace(found, hits=hits, records=records)
