"""An address space of Linux -> which file is mapped where, read from the kernel's own structures.

Since 6.1 the areas of an address space are in a maple tree (include/linux/maple_tree.h): a node is aligned to 256
bytes, and the low bits of a pointer to one say what kind it is. Readers of the kernel need no lock for it, so that it
can be read whenever the guest is stopped.
"""

import struct
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Final

from kinst.runtime.providers.host import GuestMemory
from kinst.runtime.providers.structures import Way, find_way, followed
from kinst.targets.c_types import ImageTypes
from kinst.targets.values import dataclass

_SPACE, _AREA, _TASK = "struct mm_struct", "struct vm_area_struct", "struct task_struct"
_WORD: Final = 8
_INTERNAL, _LOW = 2, 3  # xa_is_internal: a root that is a node
_FIRST_NODE: Final = 4096  # xa_is_node: numbers below it are values of the tree's own
_NODE: Final = ~0xFF & (1 << 64) - 1  # MAPLE_NODE_MASK
_KIND_AT, _KIND = 3, 0xF  # MAPLE_NODE_TYPE_SHIFT, MAPLE_NODE_TYPE_MASK
_LEAF, _RANGE, _WIDE_RANGE = 1, 2, 3  # maple_leaf_64, maple_range_64, maple_arange_64
_DEEPEST: Final = 16  # nodes above each other
_MOST: Final = 1 << 17  # areas that are read: twice what a process may have (sysctl_max_map_count)
_KERNEL: Final = 1 << 63  # set in every address of the kernel's


@dataclass(frozen=True, slots=True)
class Mapping:
    """A part of an address space that shows a file; `offset` is that of its first byte in the file, `file` the address
    of the kernel's struct file."""

    start: int
    end: int
    offset: int
    file: int

    def offset_of(self, address: int) -> int:
        """Where in the file an address is."""
        return address - self.start + self.offset

    def address_of(self, offset: int) -> int | None:
        """Where a byte of the file is; None: it is not mapped here."""
        address = self.start + offset - self.offset
        return address if self.start <= address < self.end else None


@dataclass(frozen=True, slots=True)
class _Shape:
    """Where in a kind of node its pivots and slots are, in bytes, and how many slots there are."""

    pivots: int
    slots: int
    count: int


class LinuxMappings:
    """The mappings of all address spaces of one kernel."""

    def __init__(self, types: ImageTypes, memory: GuestMemory, page: int) -> None:
        """Nothing is read yet. `page`: the bytes of a page, in which the kernel counts places in files."""
        self._types, self._memory, self._page = types, memory, page
        self._way = cache(lambda start, *members: find_way(types, start, members))  # types are large
        self._shape = cache(self._shape_of)

    def obstacle(self) -> str:
        """Why no mapping can be read; empty: nothing is missing."""
        wanted = ((_TASK, "mm"), (_SPACE, "mm_mt", "ma_root"), (_AREA, "vm_start"), (_AREA, "vm_file"))
        missing = next((" ".join(one) for one in wanted if self._way(*one) is None), "")
        if not missing and self._shape(_WIDE_RANGE) is None:
            missing = "struct maple_arange_64"
        return self._types.obstacle() or (missing and f"its types do not have {missing} (Linux 6.1 and later do)")

    def space_of(self, task: int) -> int:
        """The address space of a task, by its address; 0: it has none of its own."""
        return self._number(task, _TASK, "mm")

    def at(self, space: int, address: int) -> Mapping | None:
        """What is mapped at an address; None: nothing, or no file."""
        area = self._found(self._root(space), address)
        mapping = self._mapping(area) if area else None
        return mapping if mapping is not None and mapping.start <= address < mapping.end else None

    def each(self, space: int) -> Iterator[Mapping]:
        """All that show a file."""
        for area in islice(self._entries(self._root(space)), _MOST):
            mapping = self._mapping(area)
            if mapping is not None:
                yield mapping

    def of_area(self, area: int) -> Mapping | None:
        """The mapping of a struct vm_area_struct, by its address."""
        return self._mapping(area)

    def _mapping(self, area: int) -> Mapping | None:
        if not _is_pointer(area):
            return None
        start, end, page, file = (self._number(area, _AREA, f"vm_{name}") for name in ("start", "end", "pgoff", "file"))
        return Mapping(start, end, page * self._page, file) if file else None

    def _root(self, space: int) -> int:
        return self._number(space, _SPACE, "mm_mt", "ma_root") if space else 0

    def _found(self, entry: int, index: int) -> int:
        """The entry of a tree for an index."""
        if entry & _LOW != _INTERNAL or entry <= _FIRST_NODE:
            return entry
        for _ in range(_DEEPEST):
            kind, pivots, slots = self._node(entry)
            if not slots:
                return 0
            # A pivot of 0 is not used, since areas end with pages: the slot goes on to the end of the node.
            at = next((row for row, pivot in enumerate(pivots) if pivot >= index or not pivot), len(pivots))
            entry = slots[at]
            if kind <= _LEAF or not entry:
                return entry
        return 0

    def _entries(self, root: int) -> Iterator[int]:
        """All entries of a tree, ascending; a node that is reached twice counts once."""
        if root & _LOW != _INTERNAL or root <= _FIRST_NODE:
            yield root
            return
        waiting, seen = [(root, False)], {0}
        while waiting:
            entry, is_area = waiting.pop()
            if is_area:
                yield entry
            elif entry & _NODE not in seen:
                seen.add(entry & _NODE)
                kind, pivots, slots = self._node(entry)
                used = next((row for row, pivot in enumerate(pivots) if not pivot), len(slots) - 1)
                waiting += [(slot, kind <= _LEAF) for slot in reversed(slots[: used + 1]) if slot]

    def _node(self, entry: int) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """The kind of a node, its pivots and its slots; no slots: it is of no kind that areas are in."""
        kind, shape = entry >> _KIND_AT & _KIND, self._shape(entry >> _KIND_AT & _KIND)
        if shape is None:
            return kind, (), ()
        node = entry & _NODE
        words = struct.unpack_from(
            f"<{shape.count - 1}Q", self._memory.read(node + shape.pivots, (shape.count - 1) * 8)
        )
        slots = struct.unpack(f"<{shape.count}Q", self._memory.read(node + shape.slots, shape.count * _WORD))
        return kind, words, slots

    def _shape_of(self, kind: int) -> _Shape | None:
        names = {_LEAF: "struct maple_range_64", _RANGE: "struct maple_range_64", _WIDE_RANGE: "struct maple_arange_64"}
        ways = [self._way(names[kind], name) for name in ("pivot", "slot")] if kind in names else []
        if len(ways) != 2 or ways[0] is None or ways[1] is None:
            return None
        (pivots, _), (slots, size) = ways[0][0], ways[1][0]
        return _Shape(pivots, slots, size // _WORD)

    def _number(self, address: int, start: str, *members: str) -> int:
        way: Way | None = self._way(start, *members)
        return followed(self._memory, address, way) if way else 0


def _is_pointer(entry: int) -> bool:
    return bool(entry & _KERNEL) and not entry & _LOW


# arch/arm64/include/asm/image.h: bits 1 and 2 of the flags of an Image, which its linker script has as a symbol.
_FLAGS: Final = "_kernel_flags_le_lo32"
_PAGES: Final = {2: 16384, 3: 65536}


def page_size(symbol: Callable[[str], int | None]) -> int:
    """The bytes of a kernel's pages, from its symbols. Kernels of machines that have one size do not say it."""
    return _PAGES.get((symbol(_FLAGS) or 0) >> 1 & 3, 4096)
