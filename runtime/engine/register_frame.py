"""The trap frame of the running CPU, exchanged with Unicorn in single calls: a hit costs about a microsecond so."""

import ctypes
from collections.abc import Callable, MutableSequence, Sequence
from functools import partial


class RegisterFrame:
    """All registers in one read, some of them in one write.

    `regs` is in the order of `ArchFacts.registers`; `read()` fills it; `writer(indexes)()` writes some of it back.
    """

    def __init__(self, library: ctypes.CDLL, handle: ctypes.c_void_p, numbers: list[int]) -> None:
        """`numbers` are Unicorn's, one a register."""
        count = len(numbers)
        self._library, self._handle, self._register_numbers = library, handle, numbers
        self._values = (ctypes.c_uint64 * count)()
        self.regs: MutableSequence[int] = memoryview(self._values).cast("B").cast("Q")  # type: ignore[assignment]
        self.read = self._batch("uc_reg_read_batch", range(count))

    def writer(self, indexes: Sequence[int]) -> Callable[[], int]:
        """What writes the registers at `indexes` back; the PC last, since writing it ends the translated block."""
        return self._batch("uc_reg_write_batch", indexes)

    def _batch(self, function: str, indexes: Sequence[int]) -> Callable[[], int]:
        count, base = len(indexes), ctypes.addressof(self._values)
        numbers = (ctypes.c_int * count)(*(self._register_numbers[index] for index in indexes))
        pointers = (ctypes.c_void_p * count)(*(base + 8 * index for index in indexes))
        return partial(getattr(self._library, function), self._handle, numbers, pointers, ctypes.c_int(count))
