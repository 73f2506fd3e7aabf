"""An image and how much there is to place -> where trampolines, counters and the ring go.

They must be where the guest has memory, leaves it alone, and finds it by the same address map as its code; jumps must
reach. Only the user knows a board. The default is behind the image, as far as jumps reach, and from `_NEAREST` to
`_FARTHEST` bytes: guests put stacks and heaps right behind their .bss.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from kinst.rewriter.jumps.decide import end_of
from kinst.rewriter.plan import probed_code
from kinst.rewriter.slots import CHUNK, GRANULE, Placement, place
from kinst.rewriter.standalone.request import Request
from kinst.targets.errors import PlacementError
from kinst.targets.image import Image
from kinst.targets.manifest import Manifest
from kinst.targets.standalone import RING_HEAD, WORD, Action, Standalone

_NEAREST: Final = 1 << 18
_FARTHEST: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Places:
    """The segment, `room` bytes of it for trampolines, and behind them the data, if they are in it."""

    placement: Placement
    room: int
    standalone: Standalone

    @property
    def data_size(self) -> int:
        """Bytes of data in the segment."""
        return self.placement.size - self.room


def placed(image: Image, manifest: Manifest, request: Request, room: int, base: int | None) -> Places:
    """Find the places.

    Args:
        image: the original.
        manifest: its sites count.
        request: what they shall do.
        room: bytes for trampolines, a multiple of `CHUNK`.
        base: where the user wants them.

    Raises:
        PlacementError: something else is there.
    """
    size = _data_size(manifest, request)
    code = probed_code(manifest.sites["address"], image.facts.trampoline_window)
    inside = 0 if request.data_base is not None else size + -size % CHUNK
    start = _start(image, code, room) if base is None else base
    segment = _free(image, code, room + inside, start, "--trampoline-base")
    address, load_address = segment.address + room, segment.load_address + room
    if request.data_base is not None:
        data = _free(image, code, size + -size % CHUNK, request.data_base, "--data-base")
        address, load_address = data.address, data.load_address
        if address < segment.end and segment.address < data.end:
            raise PlacementError(f"--data-base: {size:#x} bytes at {address:#x} are where the trampolines are")
    found = Standalone(request.action, address, load_address, size, request.capacity, request.fields)
    return Places(segment, room, found)


def _data_size(manifest: Manifest, request: Request) -> int:
    if request.action is Action.COUNT:
        return WORD * len(manifest.sites)
    return RING_HEAD + request.capacity * Standalone(request.action, 0, 0, 0, 0, request.fields).stride


def _start(image: Image, lowest: int, room: int) -> int:
    end = int(end_of(image, np.array([lowest], np.uint64))[0])
    start = min(max(lowest + image.facts.jump.reach - room, end + _NEAREST), end + _FARTHEST)
    return start - start % GRANULE


def _free(image: Image, code: int, size: int, base: int, option: str) -> Placement:
    try:
        return place(image.segments, code, size, image.facts.trampoline_window, base)
    except PlacementError as error:
        raise PlacementError(f"{error}: name another place with {option}") from None
