"""A breakpoint where the manifest has no site -> the site it is a copy of, in an image that moved its own text.

U-Boot copies itself to the top of RAM, breakpoints and all; kernels run their first code at physical addresses. The
bytes around the breakpoint are looked for in the image's text as it was loaded; if they occur once, the code there is
a copy, and all of its sites are known by their distance.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from kinst.runtime.exceptions.exception_model import ExceptionModel
from kinst.runtime.loader import Loaded
from kinst.runtime.paging.walker import PageFault
from kinst.runtime.sites import SiteTable
from kinst.runtime.trap import Hit, TrapPath
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.elf_header import PT_LOAD
from kinst.targets.errors import MachineError

_CONTEXT: Final = 32  # bytes on either side that must agree
Fetch = Callable[[int, int], bytes]


class RelocatedCopies:
    """Part of the trap path's chain: knows every site, at its own address and in copies."""

    def __init__(
        self, sites: SiteTable, loaded: Loaded, trap: TrapPath, arch: ArchFacts, model: ExceptionModel, fetch: Fetch
    ) -> None:
        """`fetch` reads instruction bytes as they are, armed."""
        self._sites = sites
        self._loaded = loaded
        self._trap = trap
        self._model = model
        self._fetch = fetch
        self._has_return_breakpoint = arch.link_register is not None
        self._shortest = min(model.armed)
        self._distances: list[int] = [loaded.bias]
        self._texts: list[tuple[int, bytes]] = []
        self._unknown: set[bytes] = set()

    def claim(self, pc: int) -> Hit | None:
        """What to do at a breakpoint at `pc`; None: it is the guest's own."""
        for distance in self._distances:
            hit = self._hit(pc, distance)
            if hit is not None:
                return hit
        distance = self._find(pc)
        if distance is None:
            return None
        self._distances.append(distance)
        return self._hit(pc, distance)

    def _hit(self, pc: int, distance: int) -> Hit | None:
        row = self._sites.row_at(pc - distance)
        if row is None or not self._sites.is_armed[row]:
            return None
        site = self._sites.site(row)
        if distance != self._loaded.bias and site.emulation is None and not self._has_return_breakpoint:
            raise MachineError(f"the image moved its text: the trampoline of {site.address:#x} jumps to the original")
        self._trap.add(site, pc)
        return self._trap.hits[pc]

    def _find(self, pc: int) -> int | None:
        """How far the code at `pc` is from where it was linked."""
        try:
            armed = self._model.armed[self._shortest]
            if self._fetch(pc, len(armed)) != armed:
                return None  # not what a site is armed with: the guest's own
            content = self._fetch(pc - _CONTEXT, 2 * _CONTEXT)
        except PageFault:
            return None
        if content in self._unknown:
            return None
        found = [
            base + at + _CONTEXT for base, text in self._loaded_texts() for at in _occurrences(text, content, limit=2)
        ]
        if len(found) != 1 or self._sites.row_at(found[0]) is None:
            self._unknown.add(content)
            return None
        return pc - found[0]

    def _loaded_texts(self) -> list[tuple[int, bytes]]:
        """(link address, armed bytes) of the segments that hold sites."""
        if not self._texts:
            image, addresses = self._loaded.image, self._sites.manifest.sites["address"]
            for segment in image.segments:
                inside = addresses - np.uint64(segment.address) < np.uint64(segment.file_size)
                if segment.kind == PT_LOAD and inside.any():
                    content = image.data[segment.offset : segment.offset + segment.file_size].copy()
                    self._sites.show_armed(segment.address, content)
                    self._texts.append((segment.address, content.tobytes()))
        return self._texts


def _occurrences(text: bytes, content: bytes, limit: int) -> list[int]:
    found: list[int] = []
    at = text.find(content)
    while at >= 0 and len(found) < limit:
        found.append(at)
        at = text.find(content, at + 1)
    return found
