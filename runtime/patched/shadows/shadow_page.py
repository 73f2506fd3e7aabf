"""One physical page that is executed as a shadow, and what is known of it."""

import ctypes
from dataclasses import field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.machine.memory import PhysicalMemory
from kinst.runtime.patched.shadows.plain_sites import LONGEST, PageText
from kinst.targets.columns import unique
from kinst.targets.values import dataclass

PAGE: Final = 4096


@dataclass(frozen=True, slots=True)
class Text:
    """Code of functions that do not overlap, as the dissector takes it; `functions` are rows of the manifest."""

    code: NDArray[np.uint8]
    address: int  # where it is linked
    ranges: NDArray[np.int64]
    functions: NDArray[np.intp]


@dataclass(slots=True)
class ShadowPage:
    """A page that has sites whose breakpoints are not in memory. Rows are those whose instruction has a byte in it."""

    distance: int  # physical - link address
    rows: NDArray[np.intp]  # of sites that the guest's tables list
    plain: NDArray[np.intp]  # of others
    shared: tuple[int, ...] = ()  # functions of `rows` that are also in a page next to it
    # See `CodeWatcher.opened`: 1 from the guest's first store to it until it is executed again.
    is_open: ctypes.c_uint64 = field(default_factory=lambda: ctypes.c_uint64(0))
    is_stale: bool = True
    was_fetched: bool = False
    asks: ctypes.c_uint64 = field(default_factory=lambda: ctypes.c_uint64(1))  # see `CodeWatcher`; 0: shown as it is
    content: bytes = field(default=b"", repr=False)  # the guest's page when the shadow was made
    noted: dict[int, bytes] = field(default_factory=dict, repr=False)  # the bytes of functions that were decoded
    text: PageText | None = field(default=None, repr=False)  # the bytes that `plain` was last looked at with

    @property
    def has_rows(self) -> bool:
        """Whether it is executed as a shadow; else it has breakpoints in memory."""
        return bool(len(self.rows) or len(self.plain))

    def make_stale(self) -> None:
        """Let the page be shown again before it is executed."""
        self.is_stale, self.asks.value = True, 1

    def join(self, rows: NDArray[np.intp]) -> None:
        """Breakpoints of these sites have left memory."""
        self.plain = unique(np.concatenate([self.plain, rows])) if len(self.plain) else rows
        self.make_stale()

    def begin(self) -> None:
        """It is about to be shown."""
        self.is_stale = False

    def show(self, content: bytes) -> None:
        """Its shadow is made of this content."""
        self.content = content

    def fetch(self) -> None:
        """Its shadow is about to be executed."""
        self.was_fetched = True

    def note(self, functions: dict[int, bytes]) -> None:
        """These are the bytes of its functions that were decoded."""
        self.noted = functions

    def know(self, text: PageText) -> None:
        """`plain` is looked at with this from now on."""
        self.text = text

    def forget(self) -> None:
        """Let the page be decoded anew before it is executed, even if its bytes are the same."""
        self.make_stale()
        self.content = b""
        self.noted.clear()


def around(memory: PhysicalMemory, number: int) -> tuple[bytes, bytes]:
    """The bytes next to a page that can belong to instructions across its bounds; none where there is no RAM."""
    places = number * PAGE - LONGEST, (number + 1) * PAGE
    before, behind = (memory.read(at, LONGEST) if memory.find(at, LONGEST) is not None else b"" for at in places)
    return before, behind
