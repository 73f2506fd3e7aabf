"""An image that is loaded so that its functions can be called without booting, and where these are.

This works with any image, also with kernels linked at high addresses: a map that the guest does not see makes its
segments reachable at their link addresses, and stack and text arguments have memory of their own. There are no devices,
and nothing handles exceptions: a function that needs either ends with an error that says what it did and where.
"""

import difflib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from kinst.runtime.machine.calling.places import ARENA, add_call_memory
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.physical.frames import PAGE
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import MachineError, UsageError

if TYPE_CHECKING:
    from kinst.runtime.machine.system import System
    from kinst.targets.image import Image


def _address(text: str) -> int:
    try:
        address = int(text, 16)
    except ValueError:
        raise UsageError(f"--call {text}: not an address") from None
    if address >> 64:
        raise UsageError(f"--call {text}: an address has 64 bits")
    return address


def find_function(image: "Image", name: str, functions: Callable[[], Mapping[str, int]]) -> int:
    """The link address of a function: by address, by symbol, or by the names `functions` discovers."""
    if name[:2] in ("0x", "0X"):
        return _address(name)
    address = image.symbols.address_of(name)
    if address is not None:
        return address
    known = functions()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, 3)
    hint = f"; the nearest are {', '.join(near)}" if near else ""
    raise UsageError(f"--call {name}: no such function{hint}")


def load_for_call(image: "Image", system: "System", *, skip: int | None = None) -> Loaded:
    """Put the segments into memory of their own, where their link addresses reach them."""
    segments = [s for s in image.segments if s.kind == PT_LOAD and s.size and s.address != skip]
    if not segments:
        raise MachineError(f"{image.path}: nothing to load: it has no PT_LOAD segment")
    placed: list[tuple[int, int, int]] = []
    end = ARENA
    for segment in segments:
        physical = end + segment.address % PAGE
        placed.append((segment.address, physical, segment.size))
        end = -(-(physical + segment.size) // PAGE) * PAGE
    system.memory.add_ram(ARENA, end - ARENA)
    own = add_call_memory(system.memory, has_stack=True)
    for segment, (_, physical, _) in zip(segments, placed, strict=True):
        content = image.data[segment.offset : segment.offset + segment.file_size]
        system.memory.write(physical, content.data)
    loaded = Loaded(image, 0, image.entry, tuple(placed))
    _relocate(loaded, system)
    pages = [(virtual & -PAGE, physical & -PAGE, size + virtual % PAGE) for virtual, physical, size in placed]
    system.space.alias([*pages, *own], is_all=True)
    return loaded


def _relocate(loaded: Loaded, system: "System") -> None:
    """Apply relative relocations, as the image does itself when it starts."""
    table = loaded.image.relocations
    rows = np.flatnonzero(table.relative & (table.addend != 0) & (table.size == 8))
    for address, addend in zip(table.address[rows].tolist(), table.addend[rows].tolist(), strict=True):
        physical = loaded.physical(address)
        if physical is not None:
            system.memory.store(physical, 8, addend)
