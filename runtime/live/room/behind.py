"""A Linux image for a PC whose trampolines are behind it -> the room there: what is where.

    start    trampolines
    data     counters, or the ring
    spare    a page for a table that is in use for a moment
    end

All of it is as far from its physical addresses as the kernel is, so that its jumps are right before the kernel runs at
its link addresses, too. Code and data are in large pages of their own: a kernel has one table of these for its last
2 GiB of addresses, and nothing but itself in its first half.
"""

import re
from typing import Final

from kinst.rewriter.planning.slots import physical_distance
from kinst.targets.errors import PlacementError
from kinst.targets.image import Image
from kinst.targets.manifest.packed import Manifest
from kinst.targets.values import dataclass

CLEANUP: Final = "cleanup_highmap"  # takes what is not the kernel out of its table (arch/x86/mm/init_64.c)
FREEING: Final = "free_initmem"  # comes before the kernel's text is read-only; nothing is written to it directly then
_START: Final = "startup_64"
_REACH: Final = 1 << 29  # bytes from the first address of the kernel's half: modules may be behind that
_SPARE: Final = 1 << 12
_NEAR: Final = 1 << 12  # bytes behind the entry: the code that runs at physical addresses is there (.head.text)
_LOAD: Final = re.compile(rb"\x41?\x0f\x22[\xd8-\xdf]", re.DOTALL)  # 0f 22 /3: mov %rax, %cr3; with 41 %r8 and on
_EXTENDS: Final = 0x41


@dataclass(frozen=True, slots=True)
class Behind:
    """Link addresses, multiples of a large page but for the ends of `code` and `data`; and how far they are from
    physical ones."""

    code: range
    data: range
    end: int
    distance: int

    @property
    def spare(self) -> int:
        """The link address of a page that nothing else uses."""
        return self.end - _SPARE

    def physical(self, link: int) -> int:
        """The physical address of a link address, also of the kernel's."""
        return link - self.distance


def first_loads(image: Image) -> dict[int, str]:
    """The instructions near a kernel's entry that load CR3, by physical address, and their registers."""
    distance, names = physical_distance(image.segments, _start_of(image) or 0), image.facts.registers
    code = image.read((image.entry + distance) % (1 << 64), _NEAR)
    found = {}
    for one in _LOAD.finditer(code):
        number = (one[0][-1] & 7) + (8 if one[0][0] == _EXTENDS else 0)
        found[image.entry + one.start()] = names[number]
    return found


def may_be_behind(image: Image) -> bool:
    """Whether an image is a kernel that may have such a room: what has to be known of it is."""
    if not image.facts.linux.room.is_behind:
        return False
    start, symbols = _start_of(image), image.symbols
    if start is None or None in (symbols.address_of(name) for name in (CLEANUP, FREEING)):
        return False
    # The entry is a physical address, and that of the 64-bit boot protocol.
    return start - physical_distance(image.segments, start) == image.entry and bool(first_loads(image))


def behind_of(image: Image, manifest: Manifest) -> Behind | None:
    """The room that an image has been made for; None: it needs none. Raises PlacementError: it is too large."""
    kept, page = manifest.standalone, image.facts.linux.room.page
    start, size = manifest.trampolines
    if kept is None or not may_be_behind(image) or start % page or kept.address != (end := start + size) + -end % page:
        return None
    data = range(kept.address, kept.address + kept.size)
    end = data.stop + _SPARE
    end += -end % page
    if end > (start & -2 * _REACH) + _REACH:
        raise PlacementError(
            f"{image.path}: {end - start:,} bytes for trampolines and hits are more than fits between the kernel and "
            "its modules: ask for fewer probes, or let clauses read less"
        )
    return Behind(range(start, start + size), data, end, physical_distance(image.segments, _start_of(image) or 0))


def _start_of(image: Image) -> int | None:
    return image.symbols.address_of(_START)
