"""Physical memory of a kernel of Linux' and where its image is in it -> virtual addresses, by the kernel's own tables.

Their root is a variable of the kernel's. How a CPU reads them is in registers, which a dump of memory does not have:
that reading is taken by which the root's own address leads to the root.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from kinst.runtime.paging.registry import new_walker
from kinst.runtime.paging.walker import Access, PageFault, Walker
from kinst.runtime.readout.memory import Memory, Space, UnreadableError
from kinst.targets.image import Image
from kinst.targets.values import dataclass

_ROOTS: Final = ("init_top_pgt", "swapper_pg_dir")
_WORD: Final = 8
_SLOT: Final = 2 << 20  # what Linux moves itself by, on all machines
_MOST: Final = 1 << 14  # places that are tried
_SIZES: Final = (48, 39, 47, 42, 36)  # bits of arm64's virtual addresses: CONFIG_ARM64_VA_BITS
_GRANULES: Final = {2: 12, 1: 14, 3: 16}  # TCR_EL1.TG1


@dataclass(frozen=True, slots=True)
class _Reading:
    """A way in which a CPU may read the tables: its registers; how far up, in bytes, Linux may have moved itself; and
    for a walk that failed, how much is not mapped around there."""

    registers: Mapping[str, int]
    reach: int = _SLOT * 512
    hole: Callable[[int], int] = lambda _code: _SLOT


def _amd64(root: int) -> Iterator[_Reading]:
    """With four levels and with five: CR4.LA57."""
    for wide in (0, 1 << 12):
        values = {"cr0": 0x80010001, "cr3": root, "cr4": 1 << 5 | wide, "efer": 0xD00, "cs": 0x10, "rflags": 1 << 18}
        yield _Reading(values)


def _arm64(root: int) -> Iterator[_Reading]:
    """EL1's upper half, with each size of addresses and of pages. A fault's code has the level of the table that ended
    the walk."""
    for bits in _SIZES:
        for granule, shift in _GRANULES.items():
            control = (64 - bits) << 16 | granule << 30 | 5 << 32 | 1 << 7
            values = {"pstate": 1 << 2, "sctlr_el1": 1, "tcr_el1": control, "ttbr1_el1": root}
            yield _Reading(values, 1 << bits - 1, partial(_arm64_hole, shift))


def _arm64_hole(shift: int, code: int) -> int:
    return 1 << shift + (shift - 3) * (3 - (code & 3))


def _riscv64(root: int) -> Iterator[_Reading]:
    """Sv48, Sv57, Sv39; the supervisor reads user pages, too."""
    for mode in (9, 10, 8):
        yield _Reading({"priv": 1, "satp": mode << 60 | root >> 12, "sstatus": 3 << 18})


_READINGS: Final[Mapping[str, Callable[[int], Iterator[_Reading]]]] = {
    "amd64": _amd64,
    "arm64": _arm64,
    "riscv64": _riscv64,
}


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

    def leading_to(self, root: int, link: int, reading: "_Reading") -> Iterator[int]:
        """How far the kernel may be from where it was linked: where the tables have their own root, above that. What is
        mapped below is all of memory. Nothing, where they do not end."""
        moved, count = 0, 0
        while moved < reading.reach and link + moved < 1 << 64 and count < _MOST:
            try:
                found = self._walker.translate(self._registers, self._load, _unchanged, link + moved, Access.READ)
            except PageFault as fault:
                hole = reading.hole(fault.code)
                end = (link + moved | hole - 1) + 1
                moved += max(_SLOT, (end - link - moved) // _SLOT * _SLOT)
            except UnreadableError:
                moved += _SLOT
            else:
                if found.physical == root:
                    yield moved
                moved += _SLOT
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
        for reading in _READINGS[image.facts.name](root):
            tables = PageTables(0, walker, _Registers(reading.registers), memory)
            for moved in tables.leading_to(root, link, reading) if bias is None else (bias,):
                if tables.physical(link + moved) == root:
                    return replace(tables, bias=moved)
    return None


def _unchanged(_address: int, _entry: int) -> None:
    """Nothing is written: no accessed bits."""
