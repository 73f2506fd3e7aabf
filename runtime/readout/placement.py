"""An image and memory -> where in that memory the image's counters or records are.

That depends on who loaded the image, and on whether it moved itself. Its trampolines show it: they are made for this
image and these probes, nothing writes to them, and the counters are at a fixed distance from them. If they are neither
where they were linked nor where they are to be loaded, a file is searched for them (the core of a process says where
its files were mapped, and need not have their code), and through a stub the addresses in
its machine's RAM are tried at which firmware and kernels are loaded.
"""

from collections.abc import Callable, Iterator
from typing import Final

from kinst.runtime.readout.files import CoreDump
from kinst.runtime.readout.memory import Memory, Space, UnreadableError
from kinst.runtime.tracing.standalone.steady_code import SteadyCode
from kinst.targets.columns import unique
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import MachineError
from kinst.targets.image import Image
from kinst.targets.kernels.leading_records import led_elsewhere
from kinst.targets.manifest.packed import Manifest
from kinst.targets.standalone import WORD, Standalone
from kinst.targets.values import dataclass

Read = Callable[[int, int], bytes]  # link address, size -> bytes
_SAMPLES: Final = 32  # trampolines that are compared, about
_SAMPLE: Final = 12  # bytes of each; none is shorter
_SHOWN: Final = 2  # reasons in the message, of those for all places
_APART: Final = 2 << 20  # bytes between places where a boot loader puts a kernel


class AbsentError(MachineError):
    """The image is not in this memory."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an image is: how far from the addresses that its file has in this space."""

    space: Space
    distance: int


class Placement:
    """The place of one image, once it is known."""

    def __init__(self, image: Image, manifest: Manifest, standalone: Standalone, ram: range) -> None:
        """`image` is the file with the trampolines; `ram` are the physical addresses of its machine's memory."""
        self._image, self._path = image, image.path
        self._ram = ram
        self._standalone = standalone
        self._loads = [one for one in image.segments if one.kind == PT_LOAD and one.size]
        self._samples = _samples(image, manifest)
        self._place: Place | None = None

    def reader(self, memory: Memory) -> Read:
        """A function that reads the image's memory by link addresses. The guest may have been started again since the
        last time, and the image be elsewhere.

        Raises:
            AbsentError: the image is not there.
            MachineError: memory cannot be read.
        """
        place = self._place = self._found(memory)
        return lambda address, size: memory.read(place.space, self._address(place, address), size)

    def physical(self, link: int) -> int:
        """The physical address of a link address, if `reader` has found the image in physical memory."""
        assert self._place is not None, "reader() comes first"
        assert self._place.space is Space.PHYSICAL, "it was found by physical addresses"
        return self._address(self._place, link)

    def _address(self, place: Place, link: int) -> int:
        """The address of a link address, for an image at a place."""
        return self._in_file(place.space, link) + place.distance

    def _in_file(self, space: Space, link: int) -> int:
        """The address that a link address has in a space according to the file."""
        kept = self._standalone
        if space is Space.VIRTUAL:
            return link
        if 0 <= link - kept.address < kept.size:
            return link - kept.address + kept.load_address
        segment = next(one for one in self._loads if 0 <= link - one.address < one.size)
        return link - segment.address + segment.load_address

    def _found(self, memory: Memory) -> Place:
        unknown: list[Place] = []
        whys: list[str] = []
        for place in self._tried(memory):
            is_it, why = self._is_at(memory, place)
            if is_it:
                return place
            if is_it is None:
                unknown.append(place)
            whys.append(why)
        if unknown:  # the dump may be of nothing but the cells
            return unknown[0]
        raise AbsentError(f"{self._path}: is not in this memory: {'; '.join(dict.fromkeys(whys[:_SHOWN]))}")

    def _tried(self, memory: Memory) -> Iterator[Place]:
        """The places to try, those that cost least first: where it was, where a process says, where the file says,
        where the content of a trampoline is, and through a stub each multiple of 2 MiB, with the image at its own
        offset in that."""
        if self._place is not None:
            yield self._place
        if isinstance(memory, CoreDump):
            yield from (Place(Space.VIRTUAL, distance) for distance in memory.distances(self._image))
        for space in memory.spaces:
            yield Place(space, 0)
        if self._samples:
            link, content = self._samples[0]
            found = Space.PHYSICAL if Space.PHYSICAL in memory.spaces else Space.VIRTUAL
            for address in memory.find(content):
                yield Place(found, address - self._in_file(found, link))
        if memory.is_slow and Space.PHYSICAL in memory.spaces:
            lowest = min(one.load_address for one in self._loads)
            for start in self._ram[::_APART]:
                yield Place(Space.PHYSICAL, start + lowest % _APART - lowest)

    def _is_at(self, memory: Memory, place: Place) -> tuple[bool | None, str]:
        """Empty if the image is at a place, or else why not; None: its trampolines cannot be read, but what they write
        can."""
        kept, is_any = self._standalone, False
        for link, content in self._samples:
            try:
                found = memory.read(place.space, self._address(place, link), len(content))
            except UnreadableError:
                continue
            if found != content:
                where = self._address(place, link)
                return False, f"other bytes than its trampolines are at {place.space.value} address {where:#x}"
            is_any = True
        try:
            for end in (kept.address, kept.address + kept.size - WORD):
                memory.read(place.space, self._address(place, end), WORD)
        except UnreadableError as error:
            return False, str(error)
        return is_any or None, ""


def _samples(image: Image, manifest: Manifest) -> list[tuple[int, bytes]]:
    """The beginnings of some trampolines, by link address: what lies between them may be the guest's own."""
    starts = unique(manifest.sites["trampoline"])
    chosen, written = starts[:: max(1, len(starts) // _SAMPLES)].tolist(), led_elsewhere(image, manifest)
    found = [(one, SteadyCode.of(one, image.read(one, _SAMPLE), written).beginning) for one in chosen]
    return [(address, content) for address, content in found if content]
