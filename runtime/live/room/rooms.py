"""An image -> whether it may have a room beside it, where that is, and who maps it."""

import socket
from collections.abc import Callable
from dataclasses import replace

from kinst.runtime.live.ram import SharedRam
from kinst.runtime.live.room.behind import Behind, behind_of, may_be_behind
from kinst.runtime.live.room.debugger import Debugger
from kinst.runtime.live.room.driving import Driver
from kinst.runtime.live.room.high_map import COUNTER, HighMap
from kinst.runtime.live.room.layout import Layout, kernel_of, layout_of
from kinst.runtime.live.room.mapping import Mapper, Place
from kinst.runtime.live.room.reserving import reserve
from kinst.runtime.live.room.stopping import Stopping
from kinst.targets.image import Image
from kinst.targets.kernels.kernel_names import own_names
from kinst.targets.manifest.packed import Manifest

Room = Layout | Behind


def labelled(image: Image) -> Image:
    """The image with the labels by which a room is mapped: its symbols, or those that Linux keeps for itself, which is
    all that an installed kernel has."""
    return image if len(image.symbols) else replace(image, symbols=own_names(image))


def may_have_room(image: Image) -> bool:
    """Whether an image is a kernel that may have a room."""
    return kernel_of(image) is not None or may_be_behind(image)


def room_of(image: Image, manifest: Manifest) -> Room | None:
    """The room that an image has been made for; None: it needs none. Raises PlacementError: it is too large."""
    return layout_of(image, manifest) or behind_of(image, manifest)


def mapper_of(
    image: Image,
    manifest: Manifest,
    room: Room,
    code: int,
    memory: SharedRam,
    stub: socket.socket,
    *,
    on_moved: Callable[[int], None],
    keeps_seed: bool,
) -> Driver:
    """Keeps the room free, and maps it in a guest that has not begun. `code`: the physical address of its trampolines.
    `on_moved`: see `Mapper`; `keeps_seed`: see `reserve`. Raises MachineError."""
    sites = manifest.sites["address"]
    text = int(sites[len(sites) // 2])
    match room:
        case Layout():
            end = max(one.address + one.size for one in image.segments)
            place = Place(room, code, text, end - room.start)
            reserve(memory, place.physical(room.start), room.size, keeps_seed=keeps_seed)
            debugger = Debugger(stub)
            return Driver(debugger, Mapper(image, manifest, place, memory, debugger, on_moved))
        case Behind():
            debugger = Debugger(stub)
            high_map = HighMap(image, room, text, memory, debugger)
            return Driver(debugger, Stopping(high_map.stops(), COUNTER, debugger))
