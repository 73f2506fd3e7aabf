"""A standalone image, wherever it runs -> its probes, which fire for what is found in its memory.

Nothing is known of a hit but what the image kept: no stacks, no threads, and of memory only what never changes.
"""

from collections.abc import Callable
from typing import Final

from kinst.runtime.clauses.guest.no_guest import NoStacks, NoUserSymbols
from kinst.runtime.clauses.guest.symbols import ImageSymbols
from kinst.runtime.clauses.profiles import BareProfile
from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.machine.boards.registry import new_board
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.patched.sites import Patched, SiteTable
from kinst.runtime.providers.dtrace import DtraceProvider
from kinst.runtime.tracing.host.contract import Host, blank_firing
from kinst.runtime.tracing.host.surroundings import SCRATCH, Surroundings
from kinst.runtime.tracing.images.image_probes import providers_of
from kinst.runtime.tracing.images.preparing import Prepared
from kinst.runtime.tracing.standalone.admission import Admission
from kinst.runtime.tracing.standalone.constants import ConstantMemory
from kinst.runtime.tracing.standalone.findings import Findings, Found, Read
from kinst.runtime.tracing.standalone.recorded import RecordedHits
from kinst.runtime.trap.arch.registry import emulator
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.targets.c_types import ImageTypes
from kinst.targets.errors import KinstError
from kinst.targets.machines.registry import default_machine
from kinst.targets.manifest.packed import Manifest
from kinst.targets.standalone import Action, Standalone

_CPU: Final = 0  # the one that is shown for all


class StandaloneProbes:
    """The probes of one image."""

    def __init__(self, prepared: Prepared, manifest: Manifest, kept: Standalone) -> None:
        """`manifest` is the one of the prepared image, and `kept` what that says about what it keeps."""
        self.kept, self.manifest = kept, manifest
        self._prepared = prepared
        self._hits = RecordedHits(prepared.image.facts, kept, prepared.facts.timebase)
        self._findings = Findings(kept, len(manifest.sites))
        self._lost = 0

    @property
    def frame(self) -> TrapFrame:
        """What clauses see of registers."""
        return self._hits.frame

    def surroundings(
        self, host: Host, loaded: Loaded, types: ImageTypes, arm: Callable[[], None], warn: Callable[[str], None]
    ) -> Surroundings:
        """What clauses can see.

        Args:
            host: the machine whose time passes.
            loaded: the image.
            types: prototypes of functions, for args[].
            arm: called before the run.
            warn: called with what may surprise.
        """
        prepared, arch, dtrace = self._prepared, host.arch, DtraceProvider()
        exceptions = new_board(default_machine(arch.name)).exceptions
        sites = SiteTable(Patched(self.manifest, loaded, b""), arch, emulator(arch), exceptions)
        providers = providers_of(dtrace, host, sites, loaded, types)
        self._hits.attach(sites, host.now)
        scratch = Scratch(SCRATCH)
        symbols = ImageSymbols(prepared.original, lambda: prepared.program().functions)
        return Surroundings(
            host=host,
            providers=providers,
            dtrace=dtrace,
            scratch=scratch,
            memory=ConstantMemory(prepared.original, scratch),
            stacks=NoStacks(),
            user_stacks=NoStacks(),
            symbols=symbols,
            user_symbols=NoUserSymbols(symbols.object_start),
            locate=lambda link, _site: link,
            profile=BareProfile(prepared.path.name),
            arm=lambda: self._begin(sites, arm),
            fold=lambda: None,
            admit=Admission(
                *(self.manifest, self.kept, arch, warn),
                is_made_here=prepared.planned.plan is not None,
                cpus=prepared.request.configuration.cpus,
            ),
            timestamp=self._hits.now,
            take_drops=self._take_drops,
        )

    def _begin(self, sites: SiteTable, arm: Callable[[], None]) -> None:
        """Clauses were admitted. Raises KinstError: what is done in Python cannot be."""
        if self.kept.action is Action.COUNT and not sites.is_counted:
            raise KinstError("an action in Python is called for each hit, and the image only counts")
        arm()

    def find(self, read: Read, *, is_last: bool) -> Found:
        """What is new in memory, which `read` reads by link addresses. Raises MachineError."""
        found = self._findings.take(read, is_last=is_last)
        self._lost += found.lost
        self._hits.begin(found)
        return found

    def fire(self, found: Found) -> None:
        """Let probes fire for it."""
        self._hits.fire(found, blank_firing(self.frame, _CPU, _CPU))

    def _take_drops(self) -> dict[int, int]:
        """Records that were lost since the last time, by CPU."""
        lost, self._lost = self._lost, 0
        return {_CPU: lost} if lost else {}
