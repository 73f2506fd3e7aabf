"""An image that relocates itself: where its code and data are now, and what is at an address in a copy of the image."""

from collections.abc import Callable, Sequence

from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import Image


class MovedImage:
    """What was loaded, and the copies found since. A copy's *distance* is its address minus its link address."""

    def __init__(
        self, image: Image, distances: Callable[[], Sequence[int]], find: Callable[[int], bool] = lambda _address: False
    ) -> None:
        """
        Args:
            image: the image as it was loaded.
            distances: those of all copies: first what was loaded, last the newest copy.
            find: searches for a copy that has an address which is in none of them, and adds it; whether there is one.
        """
        loads = [segment for segment in image.segments if segment.kind == PT_LOAD and segment.size]
        self._spans = [range(segment.address, segment.address + segment.size) for segment in loads]
        self._distances, self._find = distances, find

    @property
    def distances(self) -> Sequence[int]:
        """Those of all copies: first what was loaded, last the newest."""
        return self._distances()

    def original(self, address: int) -> int:
        """The same place in what was loaded; an address outside every copy is returned as it is."""
        known = self._distances()
        for distance in known:
            if self._is_linked(address - distance):
                return address - distance + known[0]
        return self.original(address) if self._find(address) else address

    def locate(self, link: int, site: int) -> int:
        """The address of what was linked at `link`, for the code at `site`: in the copy that contains the code, or in
        the newest one if none does, as for BEGIN and user programs."""
        known = self._distances()
        own = (distance for distance in reversed(known) if self._is_linked(site - distance))
        return link + (known[0] if len(known) == 1 else next(own, known[-1]))

    def _is_linked(self, address: int) -> bool:
        """Whether a segment of the image was linked at the address. Segments may be far apart: Linux on amd64 has one
        at 0."""
        return any(address in span for span in self._spans)
