"""Physical pages that neither RAM nor a device answers -> the pages of the engine that stand for them.

All of them are one window: reads give ones, writes are ignored. Each has a page of its own there, so that an access
through a translation that the TLB has kept still tells which address the guest meant.
"""

from collections.abc import Callable
from typing import Final

from kinst.runtime.machine.physical.frames import OPEN_BUS, OPEN_BUS_SIZE, PAGE

_MOST: Final = OPEN_BUS_SIZE // PAGE


class OpenPages:
    """The pages that were accessed so far."""

    def __init__(self, forget: Callable[[], None]) -> None:
        """`forget` drops all translations that the engine keeps."""
        self._forget = forget
        self._numbers: dict[int, int] = {}  # of the window's pages, by physical page
        self._pages: list[int] = []

    def frame(self, physical: int) -> int:
        """The engine's physical address for one of the guest's."""
        page = physical // PAGE
        number = self._numbers.get(page)
        if number is None:
            if len(self._pages) == _MOST:
                self._numbers.clear()
                self._pages.clear()
                self._forget()
            number = self._numbers[page] = len(self._pages)
            self._pages.append(page)
        return OPEN_BUS + number * PAGE | physical % PAGE

    def physical(self, frame: int) -> int:
        """The guest's physical address for one of the engine's in the window; any other as it is."""
        number = frame - OPEN_BUS >> PAGE.bit_length() - 1
        return self._pages[number] * PAGE | frame % PAGE if 0 <= number < len(self._pages) else frame
