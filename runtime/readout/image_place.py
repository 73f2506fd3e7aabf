"""An image that was not patched, and memory -> where it is in that, by texts which nothing changes."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from kinst.runtime.readout.files import CoreDump
from kinst.runtime.readout.memory import Memory, Space, UnreadableError
from kinst.runtime.readout.placement import AbsentError, Place
from kinst.targets.elf.header import PT_LOAD, SHT_PROGBITS
from kinst.targets.image import Image
from kinst.targets.machines.registry import default_machine, machine_facts

_LENGTH: Final = 48  # bytes of a text
_PRINTABLE: Final = 44  # of them that are characters: others may be NULs between texts
_SAMPLES: Final = 16
_ENOUGH: Final = 8  # that are as in the file: the image may have changed some
_APART: Final = 2 << 20  # bytes between places where a boot loader puts a kernel
_SLOTS: Final = 64  # of these that are tried where memory cannot be searched
_FOUND: Final = 64  # places of one text that are tried


class ImagePlace:
    """Where an image is in one memory. Raises AbsentError: it is not there."""

    def __init__(self, image: Image, memory: Memory, name: str) -> None:
        """`name` is the memory's in messages."""
        self._image, self._memory = image, memory
        board = machine_facts(default_machine(image.facts.name))
        self._ram = range(board.ram_base, board.ram_base + board.ram_size)
        self._loads = [one for one in image.segments if one.kind == PT_LOAD and one.size]
        self._samples = _samples(image)
        found = next((one for one in self._tried() if self._is_at(one)), None)
        if found is None:
            raise AbsentError(f"{image.path}: is not in {name}, neither where it was linked nor elsewhere")
        self.place = found

    def address(self, link: int) -> int | None:
        """The address of a link address, in the space of `place`; None: the image has nothing there."""
        return self._address(self.place, link)

    def _address(self, place: Place, link: int) -> int | None:
        if place.space is Space.VIRTUAL:
            return link + place.distance
        for one in self._loads:
            if 0 <= link - one.address < one.size:
                return link - one.address + one.load_address + place.distance
        return None

    def _tried(self) -> Iterator[Place]:
        memory = self._memory
        if isinstance(memory, CoreDump):
            yield from (Place(Space.VIRTUAL, distance) for distance in memory.distances(self._image))
        for space in memory.spaces:
            yield Place(space, 0)
        space = Space.PHYSICAL if Space.PHYSICAL in memory.spaces else Space.VIRTUAL
        for link, content in self._samples[:1]:
            own = self._address(Place(space, 0), link) or 0
            for _, address in zip(range(_FOUND), memory.find(content), strict=False):
                yield Place(space, address - own)
        if memory.is_slow and Space.PHYSICAL in memory.spaces:
            lowest = min((one.load_address for one in self._loads), default=0)
            for start in self._ram[: _SLOTS * _APART : _APART]:
                yield Place(Space.PHYSICAL, start + lowest % _APART - lowest)

    def _is_at(self, place: Place) -> bool:
        return sum(self._has(place, link, content) for link, content in self._samples) >= min(
            _ENOUGH, len(self._samples)
        )

    def _has(self, place: Place, link: int, content: bytes) -> bool:
        address = self._address(place, link)
        try:
            return address is not None and self._memory.read(place.space, address, len(content)) == content
        except UnreadableError:
            return False


def _samples(image: Image) -> list[tuple[int, bytes]]:
    """Texts in the file, by link address, about as far from each other as they can be; of a file without any its first
    bytes."""
    found = list[tuple[int, bytes]]()
    for address, offset, size in _steady(image):
        data = image.data[offset : offset + size]
        is_shown = np.concatenate([[0], np.cumsum((data >= ord(" ")) & (data < 127))])
        if len(is_shown) <= _LENGTH:
            continue
        rows = np.flatnonzero(is_shown[_LENGTH:] - is_shown[:-_LENGTH] >= _PRINTABLE).tolist()
        chosen = rows[:: max(1, len(rows) // _SAMPLES)]
        found += [(address + row, data[row : row + _LENGTH].tobytes()) for row in chosen]
    first = (one for one in image.in_file if one[2])
    found = found or [(at, image.data[offset : offset + min(size, _LENGTH)].tobytes()) for at, offset, size in first]
    return found[:: max(1, len(found) // _SAMPLES)]


def _steady(image: Image) -> list[tuple[int, int, int]]:
    """(address, file offset, size) of what is only read; of an image that does not say what that is, of all: kernels
    change texts in their data, and free what only their start needs."""
    found = [
        (one.address, one.offset, one.size)
        for one in image.sections
        if one.kind == SHT_PROGBITS and one.name.startswith(".rodata")
    ]
    return found or image.in_file
