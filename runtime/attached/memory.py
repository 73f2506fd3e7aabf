"""Memory of a Qiling object -> what the trap path, clauses and arming read and write.

A program under Qiling's OS layer has a flat address space. A bare guest may turn its own paging on: the engine
translates.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.attached.guest import AttachedGuest
from kinst.runtime.engine.attached_engine import AttachedEngine
from kinst.runtime.paging.walker import Access, PageFault
from kinst.targets.errors import MachineError
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class _Changed:
    """A range of code: its bytes before anything was armed, and which of them arming has changed since."""

    before: NDArray[np.uint8]
    places: NDArray[np.bool_]


class AttachedMemory:
    """See `kinst.runtime.patched.guest_ram.GuestRam` and `kinst.runtime.clauses.guest.guest_memory.Ram`."""

    def __init__(self, engine: AttachedEngine, guest: AttachedGuest) -> None:
        """Nothing is changed yet. Under an OS layer virtual addresses are physical ones."""
        self._engine, self._guest = engine, guest
        self._physical: Callable[[int], int] = _same if guest.has_system else engine.translate
        self._changed: dict[int, _Changed] = {}  # by address

    # -- as the CPU sees it -------------------------------------------------------------------------------------------

    def translate(self, address: int) -> int | None:
        """The physical address of a virtual one; None if the guest's page tables have none."""
        try:
            return self._physical(address)
        except MachineError:
            return None

    def load_word(self, address: int, size: int) -> int:
        """Load for an emulated instruction. Raises PageFault."""
        try:
            return self._engine.load(self._physical(address), size)
        except MachineError:
            raise PageFault(address, Access.READ, 0) from None

    def store_word(self, address: int, size: int, value: int) -> None:
        """Store for an emulated instruction. Raises PageFault."""
        data = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        try:
            self._engine.write(self._physical(address), data)
        except MachineError:
            raise PageFault(address, Access.WRITE, 0) from None

    # -- as clauses see it --------------------------------------------------------------------------------------------

    def load(self, address: int, size: int) -> int:
        """A little-endian word; MachineError where there is no memory, or a device."""
        self._check(address)
        return self._engine.load(address, size)

    def read(self, address: int, size: int) -> bytes:
        """Bytes within a page; MachineError likewise."""
        self._check(address)
        return self._engine.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Write bytes within a page; code among them is translated anew."""
        self._check(address)
        self._engine.write(address, data)
        self._engine.forget_code(address, len(data))

    def _check(self, address: int) -> None:
        if self._guest.is_device(address):
            raise MachineError(f"a device is at {address:#x}")

    # -- code ---------------------------------------------------------------------------------------------------------

    def has(self, address: int, size: int) -> bool:
        """Whether all of [address, address + size) is mapped, and not to a device."""
        try:
            return len(self.read(address, size)) == size
        except MachineError:
            return False

    @contextmanager
    def code(self, address: int, size: int) -> Iterator[NDArray[np.uint8]]:
        """A copy of the bytes; changes are written back when the context is left."""
        before = np.frombuffer(self._engine.read(address, size), np.uint8)
        text = before.copy()
        yield text
        if (text == before).all():
            return
        known = self._changed.setdefault(address, _Changed(before, np.zeros(size, np.bool_)))
        known.places[:] |= text != before
        self._put(address, text)

    def restore(self) -> None:
        """Restore the bytes that arming has changed; what the guest wrote to others stays."""
        for address, changed in self._changed.items():
            text = np.frombuffer(self._engine.read(address, len(changed.before)), np.uint8).copy()
            text[changed.places] = changed.before[changed.places]
            self._put(address, text)

    def _put(self, address: int, text: NDArray[np.uint8]) -> None:
        self._engine.write(address, text.tobytes())
        self._engine.forget_code(address, len(text))


def _same(address: int) -> int:
    return address
