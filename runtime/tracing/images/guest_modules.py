"""The modules that a guest loads: those in which there are probes, the names of all, and how to unwind them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.patched.modules.loaded_sites import LoadedSites, distances_of
from kinst.runtime.patched.modules.module_watch import LOADED, ModuleWatch
from kinst.runtime.patched.moved_trampolines import moved_trampolines
from kinst.runtime.patched.sites import Patched, SiteHooks, SiteTable
from kinst.runtime.systems.linux_modules import LinuxModules
from kinst.runtime.tracing.images.module_files import kernel_name
from kinst.runtime.tracing.images.modules import PatchedModule, trampolines_end
from kinst.runtime.trap.arch.registry import emulator
from kinst.runtime.trap.faults import Fault
from kinst.targets.kernels.kernel_module import KernelModule
from kinst.targets.manifest.packed import TEXT_SECTION

if TYPE_CHECKING:
    from kinst.runtime.machine.system import System
    from kinst.runtime.tracing.images.loading_modules import LoadingModule
    from kinst.runtime.tracing.images.patched_code import PatchedCode
    from kinst.targets.elf.symbols import Symbols

Warn = Callable[[str], None]


class GuestModules:
    """All modules of one guest."""

    def __init__(
        self,
        loading: "Sequence[LoadingModule]",
        patched: "Sequence[PatchedModule]",
        system: "System",
        kernel: Loaded,
        symbols: "Symbols",
        code: "PatchedCode | None",
        reader: LinuxModules,
        warn: Warn,
    ) -> None:
        """None is loaded.

        Args:
            loading: those that are to be patched when they are.
            patched: those that have breakpoints in their files, with handlers.
            system: the machine.
            kernel: the image that loads them.
            symbols: of that image.
            code: of that image; None: it has no sites.
            reader: what reads the kernel's own records of them.
            warn: called at once with what cannot wait for the output.
        """
        self._system, self._reader, self._warn = system, reader, warn
        self._trap = system.trap
        self._loading = tuple(loading)
        self._handled = {kernel_name(one.image) or one.image.module for one in patched}
        self.sites = [] if code is None else [_sites(one, system, kernel, code, reader) for one in loading]
        self._told: set[tuple[str, str]] = set()
        self._known: dict[int, KernelModule] = {}  # those that are in memory, by their struct module
        self._changed: Callable[[Sequence[KernelModule]], None] = lambda _modules: None

        self._watch = ModuleWatch(system, kernel, symbols.address_of, self._loaded, self._freed)

    def on_change(self, changed: Callable[[Sequence[KernelModule]], None]) -> None:
        """Call `changed` when code has come or gone, with the modules that are there."""
        self._changed = changed

    def arm(self) -> None:
        """Take over what is enabled."""
        for one in self.sites:
            one.arm()

    # -- what the kernel does -----------------------------------------------------------------------------------------

    def _loaded(self, address: int) -> None:
        known = self._known.get(address)
        if self.sites and self._reader.obstacle():
            return  # it is said at the end
        try:
            module = self._reader.read(address)
        except Fault:
            return
        if known is not None and known.core == module.core and not self._reader.is_live(address):
            return  # the block began again, after an interrupt
        self._forget(module)
        self._known[address] = module
        if module.name not in self._handled and TEXT_SECTION in self._sections(address):
            self._warn(
                f"{module.name}: was patched by kinst-rewrite, and its breakpoints have no handler: name the "
                f"guest's file, --module {module.name}=FILE"
            )
        for sites, loading in zip(self.sites, self._loading, strict=True):
            if loading.file.kernel_name == module.name:
                self._arrived(sites, loading, module)
        self._changed(tuple(self._known.values()))

    def _sections(self, address: int) -> list[str]:
        try:
            return self._reader.sections(address)
        except Fault:
            return []

    def _arrived(self, sites: LoadedSites, loading: "LoadingModule", module: KernelModule) -> None:
        distances = distances_of(loading.file.opened.image, module)
        if distances is None:
            sites.pass_over()
            self._warn(f"{module.name}: the guest has loaded another file than {loading.file.where}: it has no probes")
            return
        sites.arrive(module, distances)
        left = sites.left_alone()
        if left and (module.name, left) not in self._told:
            self._told.add((module.name, left))
            self._warn(f"{module.name}: sites of enabled probes were left alone when it was loaded: {left}")

    def _forget(self, module: KernelModule) -> None:
        """Forget those whose memory another one has by now."""
        for at, other in tuple(self._known.items()):
            if at == module.address or _overlap(other.core, (*module.core, *module.init)):
                self._freed(at)

    def _freed(self, address: int) -> None:
        module = self._known.pop(address, None)
        if module is None:
            return
        for one in self.sites:
            if one.module is not None and one.module.address == address:
                one.leave()
        self._changed(tuple(self._known.values()))

    # -- the end ------------------------------------------------------------------------------------------------------

    def missed(self) -> tuple[str, ...]:
        """A line for each module with probes that was not loaded."""
        return tuple(
            f"{one.file.name}: {self._why()}"
            for sites, one in zip(self.sites, self._loading, strict=True)
            if not sites.has_arrived
        )

    def _why(self) -> str:
        if not self._watch.can_see:
            return f"nothing was probed: the kernel's symbols have no {LOADED}, at which modules are found"
        return self._reader.obstacle() or "the guest has not loaded it"


def _sites(
    loading: "LoadingModule", system: "System", kernel: Loaded, code: "PatchedCode", reader: LinuxModules
) -> LoadedSites:
    """The sites of a module. Where trampolines end in a breakpoint, one set serves it wherever it is loaded, below all
    others; where they jump back, they are made when it is loaded."""
    image, manifest = loading.file.opened.image, loading.manifest
    end = trampolines_end(kernel.image)
    trampolines = moved_trampolines(system, kernel, end)
    address, size = manifest.trampolines
    if trampolines is None:
        start = (system.trap.trampolines.start if system.trap.trampolines else end) - size
        rows = manifest.sites.copy()
        rows["trampoline"] += np.uint64((start - address) % (1 << 64))
        manifest = replace(manifest, sites=rows, trampolines=(start, size))
    patched = Patched(manifest, Loaded(image, 0, 0, ()), loading.trampolines)
    hooks = SiteHooks(returning=code.pending_returns.waiting)
    table = SiteTable(patched, system.arch, emulator(system.arch), hooks, is_module=True)
    if trampolines is None:
        table.map_trampolines(system.space, system.trap, system.engine)
    found = LoadedSites(table, image, system, trampolines, reader.is_live)
    system.trap.dtrace_invop_add(found.claim)
    system.attach_original(found.pristine)
    return found


def _overlap(some: Sequence[range], others: Sequence[range]) -> bool:
    return any(one.start < other.stop and other.start < one.stop for one in some for other in others)
