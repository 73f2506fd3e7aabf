"""A guest that is about to run -> which blocks of its images do, for --coverage.

Each block is looked up in the images when it runs for the first time: its code is in memory then, and the address space
is its own. So copies are followed that an image makes of itself, and a kernel's first code at physical addresses. Once
programs run in user mode, only the places are counted at which images are known to be: a program may have any address.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.clauses.profiles import user_mode_register
from kinst.runtime.coverage.attributing import ImageRun, attributed
from kinst.runtime.coverage.call_order import NOWHERE, CallOrder, call_orders
from kinst.runtime.coverage.document import Coverage, CoverageRequest
from kinst.runtime.coverage.executed import Executed, executed
from kinst.runtime.engine.covered.block_coverage import BlockRuns

if TYPE_CHECKING:
    from kinst.runtime.machine.system import System
    from kinst.runtime.tracing.images.placed_images import PlacedImage, PlacedImages

_ELSEWHERE, _OWN = -1, -2  # a block of no image; of our own trampolines
_PAGE: Final = 4096
_WORD: Final = 1 << 64


class Covering:
    """The blocks of one guest."""

    def __init__(self, system: "System", images: "PlacedImages", wanted: CoverageRequest) -> None:
        """Count from now on."""
        self._system, self._images, self._granularity = system, images, wanted.granularity
        self._places: list[tuple[PlacedImage, int]] = []  # an image, and how far its code was from its link address
        self._sites: dict[int, int] = {}  # an address in a trampoline -> the instruction that it stands for
        self._known: dict[int, int] = {}  # page -> the place of its code
        self._is_user = user_mode_register(system.arch, system.engine.live.get)
        self._entries: dict[int, frozenset[int]] = {}  # where functions begin, by the number of the place
        self._blocks = system.engine.blocks.cover(self._place, self._is_call if wanted.is_ordered else None)

    def _place(self, address: int) -> int:
        if address in self._system.trap.trampolines:
            self._sites[address] = self._system.trap.shown(address)
            return _OWN
        if not self._blocks.is_confined and self._is_user():
            self.confine()
            return _ELSEWHERE
        # Of several images, another may have come to its place.
        known = self._known.get(address // _PAGE) if self._images.is_single else None
        return self._found(address) if known is None else known

    def _is_call(self, address: int, place: int) -> bool:
        """Whether a function begins there."""
        if place < 0:
            return False
        if place not in self._entries:
            image, distance = self._places[place]
            starts = image.program().functions.address + np.uint64(distance)
            self._entries[place] = frozenset(starts.tolist())
        return address in self._entries[place]

    def _found(self, address: int) -> int:
        found = self._images.of(address)
        if found is None:
            return _ELSEWHERE
        image, at = found
        place = image, (address - image.link_address(at)) % _WORD
        if place not in self._places:
            self._places.append(place)
            if self._blocks.is_confined:
                self.confine()
        number = self._known[address // _PAGE] = self._places.index(place)
        return number

    def confine(self) -> None:
        """Programs run: count only where images are, at their virtual addresses."""
        found = [one for image in self._images.arrived for one in self._code_of(image)]
        self._blocks.confine(found or [(0, 1)])

    def _code_of(self, image: "PlacedImage") -> Iterator[tuple[int, int]]:
        """Where the code of an image is, the newest copy first: start and size."""
        code = image.original.code_regions
        first = min((one.address for one in code), default=0)
        size = max((one.address + one.size for one in code), default=0) - first
        own = [distance for one, distance in self._places if one is image]
        for distance in dict.fromkeys([*reversed(own), *reversed(image.moved.distances)]):
            start = (first + distance) % _WORD
            if image.at_physical(start) is None or image.has(start):
                yield start, size

    def images_changed(self) -> None:
        """Another image has arrived."""
        if self._blocks.is_confined:
            self.confine()

    def coverage(self) -> Coverage:
        """What ran so far. Raises KinstError: an image cannot be read any more."""
        runs = self._blocks.taken()
        images: dict[int, PlacedImage] = {id(image): image for image in self._images.arrived}
        found = tuple(
            attributed(image.program(), self._run_of(image, runs), self._granularity) for image in images.values()
        )
        outside = int(((runs.place == _ELSEWHERE) & (runs.runs > 0)).sum())
        return Coverage(self._granularity, 1, found, outside, self._calls(list(images.values()), runs))

    def _calls(self, images: "list[PlacedImage]", runs: BlockRuns) -> tuple[CallOrder, ...]:
        """The calls in their order; the functions of all images count, one image after the other."""
        if self._blocks.log is None:
            return ()
        function_of = np.full(len(runs.address), NOWHERE, np.uint32)
        before = 0
        for image in images:
            starts = image.program().functions.address
            for number in (number for number, (one, _) in enumerate(self._places) if one is image):
                rows = np.flatnonzero(runs.place == number)
                link = runs.address[rows] - np.uint64(self._places[number][1])
                function = np.minimum(np.searchsorted(starts, link), max(len(starts) - 1, 0))
                begins = starts[function] == link
                function_of[rows[begins]] = before + function[begins]
            before += len(starts)
        return call_orders(self._blocks.log.taken(), function_of)

    def _run_of(self, image: "PlacedImage", runs: BlockRuns) -> ImageRun:
        own = [number for number, (one, _) in enumerate(self._places) if one is image]
        is_own = np.isin(runs.place, own) & (runs.runs > 0)
        distances = np.array([distance for _, distance in self._places] or [0], np.uint64)
        start = runs.address - distances[np.maximum(runs.place, 0)]
        changes = list(_changes(runs, start, is_own))
        repeated = list(self._repeated(image, runs, executed(changes)))
        return ImageRun(executed([*changes, *repeated]), start[is_own])

    def _repeated(
        self, image: "PlacedImage", runs: BlockRuns, counts: Executed
    ) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
        """What ran more often in a trampoline than its breakpoint was hit: each iteration of a repeated string
        instruction of amd64 is a block, wherever it runs."""
        rows = np.flatnonzero(runs.place == _OWN)
        for address, times in zip(runs.address[rows].tolist(), runs.runs[rows].tolist(), strict=True):
            site = self._sites[address]
            number = self._known.get(site // _PAGE, _ELSEWHERE)
            if site == address or number < 0 or self._places[number][0] is not image:
                continue
            at = np.array([(site - self._places[number][1]) % _WORD], np.uint64)
            more = times - int(counts.at(at)[0])
            if more > 0:
                yield np.append(at, at + np.uint64(1)), np.array([more, -more], np.int64)


def _changes(
    runs: BlockRuns, start: NDArray[np.uint64], is_own: NDArray[np.bool_]
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Where the count changes: it is more from where a block begins to where it ends, but for runs that left it."""
    times = runs.runs[is_own].astype(np.int64)
    yield start[is_own], times
    yield (start + runs.size)[is_own], -times
    left = [one for one in runs.left if is_own[one[0]]]
    if left:
        row, offset, times = np.array(left, np.int64).T
        yield start[row] + offset.astype(np.uint64), -times
        yield start[row] + runs.size[row], times
