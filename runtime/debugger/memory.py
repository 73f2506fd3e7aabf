"""The memory of a stopped machine as a debugger sees it: by the current CPU's translation, or physical; and the guest's
own code where probes are.

Devices are not accessed: to read a register of a device may change the device.
"""

from collections.abc import Iterator
from typing import Final

from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.physical.stage import Stage
from kinst.runtime.machine.system import System
from kinst.targets.errors import UsageError

_PAGE: Final = 4096
_WORD: Final = (1 << 64) - 1


class DebuggedMemory:
    """The memory of one machine."""

    def __init__(self, system: System, loaded: Loaded) -> None:
        """The image is loaded."""
        self._system, self._loaded = system, loaded
        self.is_physical = False

    def be_physical(self, *, is_wanted: bool) -> None:
        """Take addresses as physical ones from now on, or as those of the current CPU's translation."""
        self.is_physical = is_wanted

    def read(self, address: int, size: int) -> bytes:
        """What is there, up to the first byte that cannot be read. Empty: none can."""
        found = bytearray()
        for virtual, physical, length in self._pieces(address, size):
            if physical is None or not self._system.memory.has(physical, length):
                break
            content = self._system.memory.read(physical, length)
            found += content if self.is_physical else self._system.pristine(virtual, content)
        return bytes(found)

    def write(self, address: int, content: bytes) -> None:
        """Write all of it or nothing, tables of the guest that forbid it notwithstanding. Where a probe is, only what
        is there already can be written. Raises UsageError."""
        pieces = list(self._pieces(address, len(content)))
        for virtual, physical, length in pieces:
            if physical is None or not self._system.memory.has(physical, length):
                raise UsageError(f"there is no memory at {virtual:#x}")
        done, writes = 0, list[tuple[int, bytes]]()
        for virtual, physical, length in pieces:
            assert physical is not None
            before = self._system.memory.read(physical, length)
            writes.append((physical, self._kept(virtual, before, content[done : done + length])))
            done += length
        for physical, piece in writes:
            self._system.memory.write(physical, piece)

    def _kept(self, address: int, before: bytes, content: bytes) -> bytes:
        """What is written for `content`: a probe's own bytes stay."""
        own = before if self.is_physical else self._system.pristine(address, before)
        if own == before:
            return content
        kept = bytearray(content)
        for at, (was, armed) in enumerate(zip(own, before, strict=True)):
            if was != armed and kept[at] != was:
                raise UsageError(f"a probe is at {address + at:#x}, whose instruction cannot be changed")
            if was != armed:
                kept[at] = armed
        return bytes(kept)

    def physical(self, address: int) -> int | None:
        """The physical address for one of the debugger's; None: nothing is mapped there. Before a kernel has made its
        tables, an address of the image is where it was loaded."""
        if self.is_physical:
            return address
        space, memory = self._system.space, self._system.memory
        found = space.observe(address)
        if space.stage() is Stage.TRANSLATED or (found is not None and memory.has(found, 1)):
            return found
        loaded = self._loaded.physical(address - self._loaded.bias)
        return found if loaded is None else loaded

    def _pieces(self, address: int, size: int) -> Iterator[tuple[int, int | None, int]]:
        """Address, physical address and size, by pages."""
        while size > 0:
            length = min(size, _PAGE - address % _PAGE)
            yield address, self.physical(address), length
            address, size = (address + length) & _WORD, size - length
