"""Physical memory of a kernel of Linux' and where its image is in it -> virtual addresses, by the kernel's own tables.

Their root is a variable of the kernel's. How a CPU reads them is in registers, which a dump of memory does not have:
that reading is taken by which the root's own address leads to the root.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Final

from kinst.runtime.paging.registry import new_walker
from kinst.runtime.paging.walker import Access, PageFault, Walker
from kinst.runtime.readout.memory import Memory, Space, UnreadableError
from kinst.runtime.readout.tables.reading import SLOT, Reading, Readings
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.image import Image
from kinst.targets.values import dataclass

_ROOTS: Final = ("init_top_pgt", "swapper_pg_dir")
_WORD: Final = 8
_MOST: Final = 1 << 14  # places that are tried


def _readings(facts: ArchFacts) -> Readings:
    """What there is to try on a machine."""
    found: Readings = import_module(f"kinst.runtime.readout.tables.{facts.name}").READINGS
    return found


@dataclass(frozen=True, slots=True)
class _Registers:
    """What a walker asks of a CPU. Implements `Registers`."""

    values: Mapping[str, int]

    def get(self, name: str) -> int:
        """A register; 0: it has no say."""
        return self.values.get(name, 0)

    def set(self, name: str, value: int) -> None:
        """Nothing: there is no CPU."""


@dataclass(frozen=True, slots=True)
class PageTables:
    """The tables of one kernel. `bias`: how far it is from where it was linked."""

    bias: int
    _walker: Walker
    _registers: _Registers
    _memory: Memory

    def physical(self, address: int) -> int | None:
        """The physical address; None: nothing is mapped there, or the tables cannot be read."""
        try:
            return self._walker.translate(self._registers, self._load, _unchanged, address, Access.READ).physical
        except (PageFault, UnreadableError):
            return None

    def leading_to(self, root: int, link: int, reading: Reading) -> Iterator[int]:
        """How far the kernel may be from where it was linked: where the tables have their own root, above that. What is
        mapped below is all of memory. Nothing, where they do not end."""
        moved, count = 0, 0
        while moved < reading.reach and link + moved < 1 << 64 and count < _MOST:
            try:
                found = self._walker.translate(self._registers, self._load, _unchanged, link + moved, Access.READ)
            except PageFault as fault:
                hole = reading.hole(fault.code)
                end = (link + moved | hole - 1) + 1
                moved += max(SLOT, (end - link - moved) // SLOT * SLOT)
            except UnreadableError:
                moved += SLOT
            else:
                if found.physical == root:
                    yield moved
                moved += SLOT
            count += 1

    def _load(self, address: int) -> int:
        return int.from_bytes(self._memory.read(Space.PHYSICAL, address, _WORD), "little")


def page_tables(
    image: Image, memory: Memory, physical: Callable[[int], int | None], bias: int | None
) -> PageTables | None:
    """The tables of a kernel; None: it has none that are known, or they do not lead to themselves.

    Args:
        image: the kernel.
        memory: physical memory.
        physical: the physical address of a link address of the image.
        bias: how far it moved its virtual addresses; None: it is searched for.
    """
    walker = new_walker(image.facts)
    for link in filter(None, map(image.symbols.address_of, _ROOTS)):
        root = physical(link)
        if root is None:
            continue
        for reading in _readings(image.facts)(root):
            tables = PageTables(0, walker, _Registers(reading.registers), memory)
            for moved in tables.leading_to(root, link, reading) if bias is None else (bias,):
                if tables.physical(link + moved) == root:
                    return replace(tables, bias=moved)
    return None


def _unchanged(_address: int, _entry: int) -> None:
    """Nothing is written: no accessed bits."""
