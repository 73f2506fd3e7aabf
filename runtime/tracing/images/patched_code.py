"""A loaded image with probes -> its sites in the running machine: armed, found in moved code, or deferred."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kinst.rewriter.naming.refusals import summary
from kinst.runtime.clauses.guest.moved_image import MovedImage
from kinst.runtime.hits.explained import explained
from kinst.runtime.machine.calling.places import CALL_RETURNS_TO
from kinst.runtime.patched.block_choice import BlockChoice
from kinst.runtime.patched.block_sites import BlockSites
from kinst.runtime.patched.call_blocks import CallBlocks
from kinst.runtime.patched.join_points import JoinPoints
from kinst.runtime.patched.mode_check import ModeCheck
from kinst.runtime.patched.moved_trampolines import moved_trampolines
from kinst.runtime.patched.own_copies import OwnCopies
from kinst.runtime.patched.relocated import RelocatedCopies
from kinst.runtime.patched.second_cpu import SecondCpu
from kinst.runtime.patched.shadows.deferred import DeferredSites
from kinst.runtime.patched.sites import Patched, SiteHooks, SiteTable
from kinst.runtime.patched.spare_trampolines import spare_trampolines
from kinst.runtime.trap.arch.registry import emulator
from kinst.runtime.unwinding.arch.registry import stack_effects
from kinst.runtime.unwinding.frame_rules import FrameRules
from kinst.runtime.unwinding.pending_returns import PendingReturns
from kinst.runtime.unwinding.return_addresses import ReturnAddresses, named, reader
from kinst.targets.method import Method

if TYPE_CHECKING:
    from kinst.rewriter.program import Program
    from kinst.runtime.machine.system import System


class PatchedCode:
    """The sites of one image in one machine."""

    def __init__(
        self,
        patched: Patched,
        system: "System",
        program: Callable[[], "Program"],
        warn: Callable[[str], None],
        *,
        table: type[SiteTable] = SiteTable,
    ) -> None:
        """Map the trampolines. Nothing is armed yet; `begin` is next.

        Args:
            patched: the image as it was loaded, and its manifest. system: the machine. program: gives the analysed
            image, which is needed to know how functions are left. warn: called at once for a site that the CPU executes
            in another mode than it was decoded for (16 or 32 bits). table: what keeps its sites.
        """
        self._system, self._warn = system, warn
        loaded = self._loaded = patched.loaded
        # The bias of each copy of the image. The list is shared: a copy that one of the following finds, all know.
        distances = self._distances = list[int]()
        find = OwnCopies(loaded, system.memory, system.space.observe).finder(lambda: distances, distances.append)
        self.moved = MovedImage(loaded.image, lambda: distances, find)
        self.frame_rules = FrameRules(system.arch, program, self._link_address)
        self.pending_returns = self._pending_returns()
        choice = self._choice = None
        if patched.manifest.method == Method.BLOCK and system.trap.counted is not None:
            choice = self._choice = BlockChoice(patched.manifest, system.arch, loaded, system.memory)
        self.sites = table(patched, system.arch, emulator(system.arch), self._hooks(patched, program, choice))
        self.sites.map_trampolines(system.space, system.trap, system.engine)
        self._blocks: BlockSites | None = None
        self._deferred: DeferredSites | None = None

    def begin(self, *, has_own: bool = True, may_watch: bool = True) -> None:
        """The image is in memory: add the handlers to the trap path. `has_own`: see `RelocatedCopies`; `may_watch`: see
        `DeferredSites.are_for`."""
        system, loaded, choice = self._system, self._loaded, self._choice
        self._distances.append(loaded.bias)
        trampolines = moved_trampolines(system, loaded, self.sites.manifest.trampolines[0])
        # The trap path asks the newest handler first: deferred sites, whose code the guest wrote itself, then copies.
        copies = RelocatedCopies(
            self.sites, loaded, self._distances, system.trap, trampolines, system.space, has_own=has_own
        )
        system.attach_original(copies.pristine)
        system.trap.dtrace_invop_add(ModeCheck(copies.claim, copies.pristine, system, self._warn).claim)
        self._blocks = None if choice is None else BlockSites(self.sites, choice, loaded, system)
        if DeferredSites.are_for(self.sites, loaded, system, may_watch=may_watch):
            places = self._distances, copies.add
            self._deferred = DeferredSites(self.sites, loaded, system, trampolines, self._blocks, *places)
            system.trap.dtrace_invop_add(self._deferred.claim, self._deferred.at_guests)

    def _hooks(self, patched: Patched, program: Callable[[], "Program"], choice: BlockChoice | None) -> SiteHooks:
        system, loaded = self._system, self._loaded
        blocks = CallBlocks(SecondCpu(system, loaded), JoinPoints(program), system.arch.nops, loaded.image)
        return SiteHooks(
            self.pending_returns.waiting,
            blocks.enabling,
            spare_trampolines(system, loaded, patched.manifest.trampolines[0]),
            None if choice is None else choice.begins,
        )

    def _pending_returns(self) -> PendingReturns:
        system, arch = self._system, self._system.arch
        symbols = named(self._loaded.image, self._link_address)
        returns = ReturnAddresses(
            arch,
            stack_effects(arch),
            arch.engine.armed,
            reader(system, system.pristine),
            lambda address: address == CALL_RETURNS_TO or symbols(address),
            self.frame_rules.here,
        )
        look_at_blocks = system.engine.look_at_blocks
        return PendingReturns(arch, system.trap.firing, system.engine.frame.read, returns, look_at_blocks)

    def _link_address(self, address: int) -> int:
        return self.moved.original(address) - self._loaded.bias

    def arm(self) -> None:
        """Write the breakpoints of enabled probes into memory, and the original bytes at all other sites."""
        if self._blocks is not None:
            self._blocks.fold()
        self.sites.arm(self._system.memory, self._system.trap)
        if self._blocks is not None:
            self._blocks.arm()
        if self._deferred is not None:
            self._deferred.refresh()

    def fold(self) -> None:
        """Run the actions of hits that were counted, by block and by site, or recorded."""
        if self._blocks is not None:
            self._blocks.fold()
        if self._system.trap.counted is not None:
            self._system.trap.counted.fold()

    def explained(self) -> list[str]:
        """How the hits of sites are delivered, and why: a line each."""
        if self._system.trap.counted is None:
            return ["hits are dispatched everywhere: --method trap, or a host without the code for anything else"]
        return explained(self.sites.deliveries, self.sites.active_sites, self.sites.manifest.is_deferred)

    def passed_over(self) -> str:
        """A summary of enabled sites where the guest has written instructions that cannot be probed; empty: none."""
        return "" if self._deferred is None else summary(*self._deferred.passed_over())
