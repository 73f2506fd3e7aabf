"""Modules that the guest may load -> the patched ones among them, each with its name and a range of identifiers."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kinst.rewriter.planning.slots import GRANULE, place
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.patched.moved_trampolines import moved_trampolines
from kinst.runtime.patched.sites import Patched, SiteHooks, SiteTable
from kinst.runtime.trap.arch.registry import emulator
from kinst.targets.errors import UsageError
from kinst.targets.image import Image, open_to_run
from kinst.targets.manifest.packed import Manifest, find_manifest
from kinst.targets.manifest.probe_ids import FIRST_PROBE_ID
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.machine.system import System
    from kinst.runtime.patched.modules.module_sites import ModuleSites
    from kinst.runtime.tracing.images.patched_code import PatchedCode


@dataclass(frozen=True, slots=True)
class PatchedModule:
    """A module's file, and the manifest in it."""

    image: Image
    manifest: Manifest


def has_sites(path: Path) -> bool:
    """Whether a module's file was patched. Raises ImageError, ManifestError: it cannot be read."""
    manifest = find_manifest(open_to_run(path))
    return manifest is not None and manifest.standalone is None


def patched_modules(modules: Sequence[tuple[str, Path]], arch: str, identifier: int) -> Iterator[PatchedModule]:
    """Those that have sites.

    Args:
        modules: names and files.
        arch: the machine of the image that loads them.
        identifier: the first that their probes may have.

    Raises:
        ImageError, ManifestError, UsageError: a file cannot be such a module.
    """
    for name, path in modules:
        image = open_to_run(path, module=name)
        manifest = find_manifest(image)
        if image.facts.name != arch:
            raise UsageError(f"{path}: is a module for {image.facts.name}, the image is for {arch}")
        if manifest is not None and manifest.standalone is None:
            manifest = renamed(manifest, name, identifier - FIRST_PROBE_ID)
            identifier = manifest.next_identifier
            yield PatchedModule(image, manifest)


def renamed(manifest: Manifest, name: str, distance: int) -> Manifest:
    """The manifest with this module name, and with all identifiers shifted by `distance`: each file was numbered
    alone."""
    numbers = manifest.numbers.copy()
    for column in ("fbt", "kinst"):
        numbers[column] += np.uint64(distance)
    static = tuple(number + distance for number in manifest.static_numbers)
    following = manifest.next_identifier + distance
    return replace(manifest, module=name, numbers=numbers, static_numbers=static, next_identifier=following)


def module_sites(module: PatchedModule, system: "System", kernel: Loaded, code: "PatchedCode") -> "ModuleSites":
    """The sites of a module in a machine. Where trampolines end in a breakpoint, one set serves the module wherever it
    is loaded, and is mapped below all others. Where they jump back, they are made when the module is loaded.

    Args:
        module: the module.
        system: the machine.
        kernel: the image that loads it.
        code: of that image.
    """
    from kinst.runtime.patched.modules.module_sites import ModuleSites  # of machines of ours: QEMU needs none of them

    end = trampolines_end(kernel.image)
    trampolines = moved_trampolines(system, kernel, end)
    manifest, image = module.manifest, module.image
    address, size = manifest.trampolines
    text = image.read(address, size) if size else b""
    if trampolines is None:
        start = (system.trap.trampolines.start if system.trap.trampolines else end) - size
        sites = manifest.sites.copy()
        sites["trampoline"] += np.uint64((start - address) % (1 << 64))
        manifest = replace(manifest, sites=sites, trampolines=(start, size))
    patched = Patched(manifest, Loaded(image, 0, 0, ()), text)
    hooks = SiteHooks(returning=code.pending_returns.waiting)
    table = SiteTable(patched, system.arch, emulator(system.arch), hooks, is_module=True)
    if trampolines is None:
        table.map_trampolines(system.space, system.trap, system.engine)
    found = ModuleSites(table, image, system, kernel, trampolines)
    system.trap.dtrace_invop_add(found.claim)
    return found


def trampolines_end(image: Image) -> int:
    """Where trampolines would end in an image that has none."""
    return place(image.segments, image.code_regions[0].address, GRANULE, image.facts.trampoline_window).end
