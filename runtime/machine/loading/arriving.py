"""Where one image of several in a machine is: nowhere before its code is there, and no longer where another one is."""

from typing import TYPE_CHECKING

from kinst.runtime.machine.loading.loaded import Loaded

if TYPE_CHECKING:
    from kinst.targets.image import Image


class Arriving(Loaded):
    """A `Loaded` that is told where it is. Who works with an image asks each time, so that all of them know at once."""

    __slots__ = ("_lost",)
    _lost: tuple[range, ...]

    def __init__(self, image: "Image", place: Loaded | None = None) -> None:
        """`place`: where it is; None: it has not arrived."""
        super().__init__(image, 0, image.entry, ())
        object.__setattr__(self, "_lost", ())
        if place is not None:
            self.arrive(place)

    @property
    def has_arrived(self) -> bool:
        """Whether it is, or was, in memory."""
        return bool(self.segments or self._lost)

    def arrive(self, place: Loaded) -> None:
        """It is there from now on."""
        for name in ("bias", "entry", "segments"):
            object.__setattr__(self, name, getattr(place, name))

    def lose(self, places: list[range]) -> list[range]:
        """Other code is at these physical addresses from now on. Returns the virtual addresses that this image had
        there."""
        lost, left = [], []
        for virtual, physical, size in self.segments:
            pieces = [range(physical, physical + size)]
            for place in places:
                taken = range(max(physical, place.start), min(physical + size, place.stop))
                pieces = [part for piece in pieces for part in _without(piece, place)]
                lost += [_moved(taken, virtual - physical)] if taken else []
            left += [(virtual + piece.start - physical, piece.start, len(piece)) for piece in pieces]
        object.__setattr__(self, "segments", tuple(left))
        object.__setattr__(self, "_lost", (*self._lost, *lost))
        return lost

    def has_lost(self, address: int) -> bool:
        """See `Loaded`."""
        return any(address in one for one in self._lost)


def _without(piece: range, place: range) -> list[range]:
    parts = (range(piece.start, min(piece.stop, place.start)), range(max(piece.start, place.stop), piece.stop))
    return [part for part in parts if part]


def _moved(piece: range, distance: int) -> range:
    return range(piece.start + distance, piece.stop + distance)
