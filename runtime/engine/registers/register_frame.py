"""The trap frame of the running CPU, read and written by one call of Unicorn's each: one call per register would take
microseconds a hit."""

import ctypes
from collections.abc import Callable, MutableSequence, Sequence
from functools import partial


class RegisterFrame:
    """All registers, which are read in one call; some of them are written in one call.

    `regs` is in the order of `ArchFacts.registers`; `read()` fills it; `writer(indexes)()` writes some of it back.
    """

    def __init__(self, library: ctypes.CDLL, handle: ctypes.c_void_p, numbers: list[int]) -> None:
        """`numbers` has Unicorn's number for each register."""
        count = len(numbers)
        self._library, self._handle, self._register_numbers = library, handle, numbers
        self._values = (ctypes.c_uint64 * count)()
        self.regs: MutableSequence[int] = memoryview(self._values).cast("B").cast("Q")  # type: ignore[assignment]
        self.address = ctypes.addressof(self._values)
        self.read = self._batch("uc_reg_read_batch", range(count))

    def another(self) -> "RegisterFrame":
        """A frame of the same CPU with `regs` of its own."""
        return RegisterFrame(self._library, self._handle, self._register_numbers)

    def writer(self, indexes: Sequence[int]) -> Callable[[], int]:
        """A function that writes the registers at `indexes` back, with the PC last, since that ends the translated
        block."""
        return self._batch("uc_reg_write_batch", indexes)

    def _batch(self, function: str, indexes: Sequence[int]) -> Callable[[], int]:
        count, base = len(indexes), self.address
        # The arrays are made once: only the values change from call to call, and `partial` keeps the arrays alive.
        numbers = (ctypes.c_int * count)(*(self._register_numbers[index] for index in indexes))
        pointers = (ctypes.c_void_p * count)(*(base + 8 * index for index in indexes))
        return partial(getattr(self._library, function), self._handle, numbers, pointers, ctypes.c_int(count))
