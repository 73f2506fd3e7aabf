"""Files for physical memory, `--load` -> RAM; and whether something else that a loader writes overlaps one of them."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from kinst.runtime.machine.configuration import FileAt
from kinst.runtime.machine.loading.linux_image import HEADER_SIZE, size_in_ram
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.loading.u_boot import tree_place
from kinst.runtime.machine.memory import PhysicalMemory
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.errors import MachineError

_MOST_SHOWN: Final = 60  # characters of a file's name


class PlacedFiles:
    """The files of `--load`, in the order of the command line."""

    def __init__(self, files: Sequence[FileAt], arch: ArchFacts) -> None:
        """Nothing is written yet."""
        self._files = files
        self._ranges = [_range(file, arch) for file in files]

    @property
    def first(self) -> int | None:
        """The entry of the first file, for firmware that starts what it is given; None: there is no file."""
        return next((file.address if file.entry is None else file.entry for file in self._files), None)

    @property
    def first_tree(self) -> int | None:
        """Where the first file looks for its device tree, if it is an arm64 U-Boot."""
        return next((tree_place(file.content, file.address) for file in self._files), None)

    @property
    def first_end(self) -> int | None:
        """The address behind the bytes of the first file, where its .bss is; None: there is no file."""
        sizes = (len(one.content) if one.filled is None else one.filled for one in self._files)
        return next((file.address + size for file, size in zip(self._files, sizes, strict=True)), None)

    @property
    def starts(self) -> frozenset[int]:
        """The first addresses of the files."""
        return frozenset(where.start for where in self._ranges)

    def write(self, image: Loaded, memory: PhysicalMemory) -> None:
        """Write the files, besides the image.

        Raises:
            MachineError: a file is not in RAM, or over the image or another file.
        """
        for number, (file, where) in enumerate(zip(self._files, self._ranges, strict=True)):
            if memory.find(where.start, len(where)) is None:
                ram = memory.regions[0]
                raise MachineError(
                    f"{_described(file, where)} is not in RAM, {ram.base:#x} to {ram.base + ram.size:#x}: see --memory"
                )
            for _, physical, size in image.segments:
                _refuse(file, where, range(physical, physical + size), image.image.path.name)
            for other, taken in zip(self._files[:number], self._ranges, strict=False):
                _refuse(file, where, taken, other.name)
            memory.write(file.address, file.content)

    def refuse(self, place: range, what: str) -> None:
        """Raise MachineError if something else that a loader writes, at these physical addresses, overlaps a file."""
        for file, where in zip(self._files, self._ranges, strict=True):
            _refuse(file, where, place, what)

    def changes(
        self,
        address: int,
        memory: PhysicalMemory,
        pristine: Callable[[int, bytes], bytes] = lambda _address, found: found,
    ) -> str | None:
        """What the guest has changed of the file at an address, and of the space after it that it needs; None if
        nothing. `pristine` restores what armed sites replace."""
        file, where = next(one for one in zip(self._files, self._ranges, strict=True) if one[1].start == address)
        size = len(where) if file.filled is None else file.filled  # what starts clears its .bss itself
        before = np.zeros(size, np.uint8)
        before[: len(file.content)] = np.frombuffer(file.content, np.uint8)[:size]
        now = pristine(address, memory.read(address, size))
        changed = np.flatnonzero(np.frombuffer(now, np.uint8) != before)
        if not len(changed):
            return None
        first, last = (address + int(changed[row]) for row in (0, -1))
        return f"{_described(file, where)}: before it started, the guest wrote over {first:#x} to {last + 1:#x} of it"


def _range(file: FileAt, arch: ArchFacts) -> range:
    """The addresses that a file needs: a Linux kernel has .bss after it, whose size is in its header."""
    size = max(len(file.content), size_in_ram(bytes(file.content[:HEADER_SIZE]), arch))
    return range(file.address, file.address + size)


def _refuse(file: FileAt, where: range, place: range, what: str) -> None:
    if max(where.start, place.start) < min(where.stop, place.stop):
        raise MachineError(f"{_described(file, where)} overlaps {what}, {place.start:#x} to {place.stop:#x}")


def _described(file: FileAt, where: range) -> str:
    return f"--load {file.name[-_MOST_SHOWN:]}@{file.address:#x}: {where.start:#x} to {where.stop:#x}"
