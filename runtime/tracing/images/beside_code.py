"""Images beside the first one, in a machine: nowhere at first; once their code is there, with names and sites."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kinst.runtime.clauses.guest.moved_image import MovedImage
from kinst.runtime.machine.loading.arriving import Arriving
from kinst.runtime.patched.arrivals import Arrivals, Awaited
from kinst.runtime.patched.beside_table import BesideTable
from kinst.runtime.patched.own_copies import OwnCopies
from kinst.runtime.patched.sites import Patched
from kinst.runtime.tracing.images.patched_code import PatchedCode
from kinst.runtime.tracing.images.placed_images import PlacedImage, PlacedImages
from kinst.runtime.unwinding.frame_rules import FrameRules

if TYPE_CHECKING:
    from kinst.rewriter.program import Program
    from kinst.runtime.machine.loading.loaded import Loaded
    from kinst.runtime.machine.system import System
    from kinst.runtime.tracing.images.beside_images import PreparedBeside
    from kinst.targets.manifest.packed import Manifest

Warn = Callable[[str], None]


class BesideCode:
    """One of them."""

    def __init__(self, prepared: "PreparedBeside", system: "System", warn: Warn) -> None:
        """Map its trampolines; it has not arrived."""
        self.prepared, self._system, self._warn = prepared, system, warn
        image = prepared.image.opened.image
        self.loaded = Arriving(image)
        self._distances: list[int] = []  # of its copies, if it has no sites
        self.code: PatchedCode | None = None
        if prepared.manifest is not None:
            manifest = _below(prepared.manifest, system)
            patched = Patched(manifest, self.loaded, prepared.trampolines)
            self.code = PatchedCode(patched, system, self.program, warn, table=BesideTable)
        moved = self._moved() if self.code is None else self.code.moved
        rules = FrameRules(system.arch, self.program, lambda address: moved.original(address) - self.loaded.bias)
        self.placed = PlacedImage(
            image, self.program, self.loaded, moved, rules if self.code is None else self.code.frame_rules
        )

    def program(self) -> "Program":
        """The image, analysed."""
        return self.prepared.image.opened.program

    def _moved(self) -> MovedImage:
        system, distances = self._system, self._distances
        find = OwnCopies(self.loaded, system.memory, system.space.observe).finder(lambda: distances, distances.append)
        return MovedImage(self.loaded.image, lambda: distances, find)

    def arrive(self, place: "Loaded") -> None:
        """Its code is there, and is about to be executed."""
        self.loaded.arrive(place)
        self._distances.append(place.bias)
        code = self.code
        if code is None:
            return
        code.begin(has_own=self._system.arch.return_breakpoint is not None)
        assert isinstance(code.sites, BesideTable)
        missing = code.sites.settle(self._system.memory)
        code.arm()
        if missing:
            self._warn(
                f"{self.prepared.image.module}: {missing:,} sites of enabled probes have other code in memory than in "
                f"{self.prepared.image.file.path}, and are left as they are"
            )

    def arm(self) -> None:
        """Take over what is enabled; if it has not arrived, that is done then."""
        if self.code is not None and self.loaded.has_arrived:
            self.code.arm()


def _below(manifest: "Manifest", system: "System") -> "Manifest":
    """The manifest with its trampolines below all others: they are one range."""
    address, size = manifest.trampolines
    start = (system.trap.trampolines.start if system.trap.trampolines else system.facts.ram_base) - size
    sites = manifest.sites.copy()
    sites["trampoline"] += np.uint64((start - address) % (1 << 64))
    return replace(manifest, sites=sites, trampolines=(start, size))


class BesideImages:
    """All of them."""

    def __init__(
        self,
        first: Arriving,
        prepared: "Sequence[PreparedBeside]",
        system: "System",
        warn: Warn,
    ) -> None:
        """Look for them when the machine runs. `first`: where the image is that the machine begins with."""
        self._system = system
        self._changed: Callable[[], None] = lambda: None
        self.images = [BesideCode(one, system, warn) for one in prepared]
        self._places = [first, *(one.loaded for one in self.images)]
        self._awaited = list(map(self._await, self.images))
        Arrivals(system, list(self._awaited))

    def _await(self, one: BesideCode) -> Awaited:
        image = one.prepared.image
        return Awaited(image.in_file, image.expected, lambda place: self._arrived(one, place))

    def _arrived(self, image: BesideCode, place: "Loaded") -> None:
        where = [range(physical, physical + size) for _, physical, size in place.segments]
        for other in self._places:
            lost = other.lose(where)
            if lost:
                hits = self._system.trap.hits
                self._system.trap.remove([at for at in hits if any(at in one for one in lost)])
        image.arrive(place)
        self._changed()

    def on_arrival(self, changed: Callable[[], None]) -> None:
        """Call `changed` when one has arrived."""
        self._changed = changed

    def placed(self, first: PlacedImage) -> PlacedImages:
        """All images, the first one among them."""
        return PlacedImages([first, *(one.placed for one in self.images)], self._system.space.observe)

    def fold(self) -> None:
        """Run the actions of hits that were counted or recorded."""
        if self._system.trap.counted is not None:
            self._system.trap.counted.fold()

    def explained(self) -> list[str]:
        """How the hits of sites are delivered, and why: a line each."""
        lines = [(one.prepared.image.module, one.code.explained()) for one in self.images if one.code is not None]
        return [f"{module}: {line}" for module, found in lines for line in found]

    def missed(self) -> tuple[str, ...]:
        """A line for each image that has probes, or that the guest was to bring, and that did not arrive."""
        pairs = zip(self.images, self._awaited, strict=True)
        return tuple(
            _missed(one, awaited)
            for one, awaited in pairs
            if not one.loaded.has_arrived and (one.code is not None or one.prepared.image.file.loaded is None)
        )


def _missed(one: BesideCode, awaited: Awaited) -> str:
    best, file = awaited.pages.best, one.prepared.image.file
    why = f": something like it did, with {best:.0%} of its code: is it from this build?" if best else ""
    return f"{file.option}: {one.prepared.image.module} did not arrive in memory{why}"
