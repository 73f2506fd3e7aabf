"""An image that moves: where its code and data lie now, and what is at an address of a copy that it made of itself."""

from collections.abc import Callable, Sequence

from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import Image


class MovedImage:
    """What was loaded, and the copies found since. A *distance* is that of a copy from its link address."""

    def __init__(self, image: Image, distances: Callable[[], Sequence[int]]) -> None:
        """
        Args:
            image: the image as it was loaded.
            distances: of all copies: what was loaded first, the newest last.
        """
        loads = [segment for segment in image.segments if segment.kind == PT_LOAD and segment.size]
        self._spans = [range(segment.address, segment.address + segment.size) for segment in loads]
        self._distances = distances

    def original(self, address: int) -> int:
        """The same place in what was loaded; an address outside every copy as it is."""
        known = self._distances()
        for distance in known:
            if self._is_linked(address - distance):
                return address - distance + known[0]
        return address

    def locate(self, link: int, site: int) -> int:
        """Where the code at `site` finds what was linked at an address: in the copy that it is part of; in the newest
        one if it is part of none, as in BEGIN and in other programs."""
        known = self._distances()
        own = (distance for distance in reversed(known) if self._is_linked(site - distance))
        return link + (known[0] if len(known) == 1 else next(own, known[-1]))

    def _is_linked(self, address: int) -> bool:
        """They may be far apart: Linux on amd64 has a segment at 0."""
        return any(address in span for span in self._spans)
