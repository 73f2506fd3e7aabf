"""A row of the vector tables -> a frame to run its emulation on."""

from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass, field

from kinst.runtime.paging.walker import Access, PageFault
from tests.vectors.rows import MEMORY_SIZE, memory_byte


@dataclass
class RecordedFrame:
    """Registers, the memory of `tests.vectors.rows`, and a record of what is written."""

    regs: MutableSequence[int]
    stores: dict[int, int] = field(default_factory=dict)  # aligned address -> 8 bytes
    vectors: dict[int, int] = field(default_factory=dict)

    def load(self, address: int, size: int) -> int:
        assert address + size <= MEMORY_SIZE
        return int.from_bytes((memory_byte(at) for at in range(address, address + size)), "little")

    def store(self, address: int, size: int, value: int) -> None:
        assert address % 8 == 0
        for at in range(0, size, 8):
            self.stores[address + at] = value >> 8 * at & (1 << 64) - 1

    def set_vector(self, number: int, value: int) -> None:
        self.vectors[number] = value

    def effect(self, before: Sequence[int], names: Sequence[str], pc: int) -> dict[str, int]:
        """What changed, as the tables have it."""
        changed = {
            name: value
            for index, (name, value, old) in enumerate(zip(names, self.regs, before, strict=True))
            if value != old or index == pc
        }
        memory = {f"[{address:x}]": value for address, value in self.stores.items()}
        return changed | memory | {f"v{number}": value for number, value in self.vectors.items()}


class FaultingFrame(RecordedFrame):
    """A guest that may touch no memory."""

    def load(self, address: int, size: int) -> int:
        raise PageFault(address, Access.READ, 0)

    def store(self, address: int, size: int, value: int) -> None:
        raise PageFault(address, Access.WRITE, 0)
