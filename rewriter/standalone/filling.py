"""Rooms, and how much of them is taken -> where the next trampolines are."""

from collections.abc import Sequence

import numpy as np

from kinst.rewriter.standalone.code.parts import Addresses, Numbers
from kinst.rewriter.standalone.places.rooms import Room


class Filling:
    """Rooms that are filled one after the other. Behind the last one it goes on, so that all is known of what has no
    room."""

    def __init__(self, rooms: Sequence[Room]) -> None:
        self._rooms = rooms
        self._room = self._used = 0

    @property
    def needed(self) -> int:
        """Bytes of the last room, to which all belongs that has no room."""
        return self._used

    def addresses(self, sizes: Numbers) -> Addresses:
        """Where trampolines of so many bytes would be."""
        return self._places(sizes)[0]

    def put(self, sizes: Numbers) -> Numbers:
        """Take that room. Returns the number of each one's room, -1 where it has none."""
        _, room_of, self._room, self._used = self._places(sizes)
        return room_of

    def _places(self, sizes: Numbers) -> tuple[Addresses, Numbers, int, int]:
        address, room_of = np.zeros(len(sizes), np.uint64), np.full(len(sizes), -1)
        room, used, first = self._room, self._used, 0
        while True:
            start, end = self._rooms[room]
            ends = used + np.cumsum(sizes[first:])
            fitting = first + int(np.searchsorted(ends, end - start, "right"))
            last = fitting if room + 1 < len(self._rooms) else len(sizes)
            begins = (ends - sizes[first:])[: last - first]
            address[first:last] = np.uint64(start) + begins.astype(np.uint64)
            room_of[first:fitting] = room
            used = int(ends[last - first - 1]) if last > first else used
            if last == len(sizes):
                return address, room_of, room, used
            first, room, used = last, room + 1, 0
