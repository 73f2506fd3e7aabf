"""A guest that may copy its image elsewhere -> the trampolines of the copy, which are there before it runs.

Nothing reads the jumps at probed sites as data but who copies them. QEMU's gdb stub watches some of these, and stops
the guest when it reads one: what was copied until then is found in its memory, and with it how far away the copy is.
The trampolines for that are stored behind it, and the guest is left alone from there on.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from kinst.runtime.live.ram import SharedRam
from kinst.runtime.live.room.debugger import Debugger
from kinst.runtime.readout.memory import Space
from kinst.targets.errors import MachineError
from kinst.targets.image import Image
from kinst.targets.manifest.packed import Manifest
from kinst.targets.values import dataclass

_WATCHED: Final = 8  # jumps, from the first to the last: most often others were copied before one of them
_SEARCHED: Final = 32  # bytes from a jump on: each jump has a different displacement
_AT_ONCE: Final = 128  # bytes that it may have read before it stores them
_PAGE: Final = 4096
_MOST_STOPS: Final = 256  # of a guest that reads its code for another reason


@dataclass(frozen=True, slots=True)
class Copy:
    """What copies of an image need. `code` makes their trampolines, given the distance in bytes; None: they can have
    none. `places` are the physical addresses where these may be, and `start` is that of the image's own."""

    code: Callable[[int], bytes] | None
    places: range
    start: int


class Follower:
    """Follows one guest's image to its copy; implements `kinst.runtime.live.room.driving.Follows`."""

    def __init__(
        self,
        image: Image,
        manifest: Manifest,
        bias: int,
        copy: Copy,
        memory: SharedRam,
        debugger: Debugger,
        tell: Callable[[int, bytes], None],
    ) -> None:
        """Watch; the guest has not begun.

        Args:
            image: the standalone image.
            manifest: its own.
            bias: from its link addresses to where it is now.
            copy: what its copy needs.
            memory: the guest's.
            debugger: connected to QEMU.
            tell: called with the physical address and the bytes of the copy's trampolines.

        Raises:
            StubError: QEMU cannot watch.
        """
        self._copy, self._memory, self._debugger, self._tell = copy, memory, debugger, tell
        needles = (_needle(image, address) for address in _chosen(manifest))
        self._needles = {start + bias: code for start, code in needles}
        self._stops, self._is_followed = 0, False
        debugger.watch_reads(self._needles)

    def check(self) -> None:
        """Called at the end. Raises MachineError: there is a copy that nobody was seen to make."""
        if not self._is_followed and (distance := self._distance()) is not None:
            raise MachineError(f"{self._went(distance)} unseen: what it did and counted then means nothing")

    def at_stop(self) -> None:
        """See `Follows`. Raises MachineError: the image cannot be followed to its copy, or QEMU is gone."""
        self._stops += 1
        distance = self._distance()
        if distance is not None:
            self._follow(distance)
        if distance is not None or self._stops >= _MOST_STOPS:
            self._debugger.leave()
        else:
            self._debugger.go_on_watching((*self._beside(self._debugger.watched), *self._needles))

    def _beside(self, jump: int | None) -> tuple[int, ...]:
        """What is read when the bytes of a jump have been copied, upwards or downwards, though not read yet when that
        one is. It may be data, which is no harm."""
        return () if jump not in self._needles else (jump + _SEARCHED + _AT_ONCE, jump - _AT_ONCE)

    def _distance(self) -> int | None:
        """How far from the image a copy of some of its code is; None: there is none."""
        return next(self._distances(), None)

    def _distances(self) -> Iterator[int]:
        own = {*self._needles}
        for address, code in self._needles.items():
            yield from (found - address for found in self._memory.find(code) if found not in own)

    def _follow(self, distance: int) -> None:
        start = self._copy.start + distance
        if self._copy.code is None:
            raise MachineError(
                f"{self._went(distance)}, without its trampolines: our own machine (without --on) follows the original"
            )
        if distance % _PAGE:
            raise MachineError(f"{self._went(distance)}, which is no multiple of a page: probes cannot follow it")
        code = self._copy.code(distance)
        if not (self._copy.places.start <= start and start + len(code) <= self._copy.places.stop):
            raise MachineError(
                f"{self._went(distance)}: the trampolines for that would be at {start:#x}, and what is free is "
                f"{self._copy.places.start:#x} to {self._copy.places.stop - 1:#x}"
            )
        if re.search(rb"[^\0]", self._memory.read(Space.PHYSICAL, start, len(code))):
            raise MachineError(f"{self._went(distance)}: something else is at {start:#x}, where its trampolines belong")
        self._memory.write(start, code)
        self._tell(start, code)
        self._is_followed = True

    def _went(self, distance: int) -> str:
        place = min(self._needles) + distance
        return f"the image copied itself to {place:#x} and what follows, by {distance:#x} bytes"


def _needle(image: Image, jump: int) -> tuple[int, bytes]:
    """The bytes with a jump by which a copy is found, and their address: from the jump on, unless its segment ends
    before that."""
    segment = next(one for one in image.segments if one.address <= jump < one.address + one.file_size)
    start = max(segment.address, min(jump, segment.address + segment.file_size - _SEARCHED))
    return start, image.read(start, min(_SEARCHED, segment.file_size))


def _chosen(manifest: Manifest) -> list[int]:
    """Link addresses of some jumps: the last and the first one before others, since there may be few watched."""
    jumps = np.sort(manifest.jumps["address"][manifest.jumps["size"] > 0]).tolist()
    between = (jumps[(len(jumps) - 1) * number // (_WATCHED - 1)] for number in range(1, _WATCHED - 1))
    return [*dict.fromkeys((jumps[-1], jumps[0], *between))] if jumps else []
