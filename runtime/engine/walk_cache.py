"""TLB misses that were answered before -> the same answers, from a few bytes of host machine code.

A Python callback that walks the guest's tables takes ten microseconds, and a booting Linux misses the TLB a million
times. So an answer is kept together with all that it came from: the registers that decide how addresses are translated,
and the words of memory that the walk read. It is given again only while each of them has the same value. Another walk
would then find the same, so nobody needs to know when the guest changes its tables.
"""

import ctypes
import mmap
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kinst.runtime.engine.host.fields import index, offset
from kinst.runtime.engine.host.walks import MOST_WORDS, ROW_SIZE, ROWS, WALKS, AnswerRow, ComparedRegister, WalkState
from kinst.runtime.engine.registers.register_file import RegisterFile
from kinst.runtime.paging.walker import Registers

_ROW, _KEY, _TABLE, _IS_OFF = (index(WalkState, name) for name in ("row", "key", "table", "is_off"))
_ASKS, _ANSWER = index(WalkState, "asks"), index(WalkState, "answer")
_NO_ANSWER: Final = (1 << 64) - 1
_HEAD: Final = struct.Struct("<QQII")  # an AnswerRow before its words
assert _HEAD.size == offset(AnswerRow, "words")
_WORDS: Final = tuple(struct.Struct(f"<{2 * count}Q") for count in range(MOST_WORDS + 1))


class WalkCache:
    """The answers to one engine's TLB misses. On hosts without machine code for it, nothing is kept."""

    def __init__(self, callback: ctypes.c_void_p, registers: RegisterFile) -> None:
        """`callback` answers what is not in the cache; `registers` are the CPU's. It is off before `compare`."""
        self._callback, self._live = callback, registers
        self._state = WalkState(callback.value or 0, is_off=1, high=1)
        self._words = memoryview(self._state).cast("B").cast("Q")  # the same, which Python reads faster
        self._code = WALKS.function()
        self._compared: list[tuple[int, int]] = []  # words of the state with a register's bits: address, index
        self._buffers: list[Any] = []
        self._places: dict[str, int] = {}  # a register's bits among the words of the state
        self._table = mmap.mmap(-1, ROWS * ROW_SIZE)
        self._state.table = ctypes.addressof(ctypes.c_char.from_buffer(self._table))
        self._is_empty = True
        self.raised: str | None = None  # see `compare`

    def hook(self) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
        """The function and the argument for Unicorn."""
        function = self._callback if self._code is None else self._code.address
        return function, ctypes.c_void_p(ctypes.addressof(self._state))

    def compare(self, library: ctypes.CDLL, context: Mapping[str, int], raised: str | None) -> None:
        """Begin to keep answers. `context` has the registers that they depend on, at most 8, and which bits of them.

        `raised` is the first of these registers if the others can only be read while it is not 0: then it is set to 1
        while they are read. (riscv64: Unicorn refuses supervisor CSRs to a CPU in U mode, and reads them as 0.)
        """
        state, registers, self.raised = self._state, self._live, raised
        numbers, buffers = (ctypes.c_int * len(context))(), (ctypes.c_void_p * len(context))()
        for number, (name, bits) in enumerate(context.items()):
            slot, compared = registers.slot(name), state.registers[number]
            buffer = ctypes.create_string_buffer(slot.template, len(slot.template))
            numbers[number], buffers[number] = slot.number, ctypes.addressof(buffer)
            compared.at, compared.bits = ctypes.addressof(buffer) + slot.offset, bits
            value = ctypes.addressof(compared) + offset(ComparedRegister, "value")
            self._places[name] = (value - ctypes.addressof(state)) // ctypes.sizeof(ctypes.c_uint64)
            self._compared.append((value, self._places[name]))
            self._buffers.append(buffer)
        self._buffers += numbers, buffers
        state.numbers, state.buffers = ctypes.addressof(numbers), ctypes.addressof(buffers)
        state.count = len(context)
        state.raised = 0 if raised is None else registers.slot(raised).number
        state.read = ctypes.cast(library.uc_reg_read_batch, ctypes.c_void_p).value or 0
        state.write = ctypes.cast(library.uc_reg_write, ctypes.c_void_p).value or 0
        self.turn(is_off=False)

    @property
    def is_off(self) -> bool:
        """Whether the callback answers everything, and nothing is kept."""
        return self._words[_IS_OFF] != 0

    def turn(self, *, is_off: bool) -> None:
        """Keep nothing from now on, or answers again."""
        # While it is off, the host code does not note the miss: registers and row in the state are those of an earlier
        # one, and an answer must not be kept under them.
        self._words[_IS_OFF], self._words[_ROW] = is_off, 0

    @property
    def registers(self) -> Registers:
        """The CPU's registers, for the walk that answers a miss: of those that are compared, the bits that count."""
        return self if self._words[_ROW] else self._live

    def get(self, name: str) -> int:
        """A register as it was read for the miss that is being answered, which is five times faster."""
        place = self._places.get(name)
        return self._live.get(name) if place is None else self._words[place]

    def set(self, name: str, value: int) -> None:
        """Change a register of the CPU."""
        self._live.set(name, value)

    def keep(self, physical: int, permissions: int, words: Sequence[int]) -> None:
        """Give this answer again to the miss that is being answered, as long as words of the host's memory have the
        same values. `words` are their addresses, each followed by the value."""
        state, row = self._words, self._words[_ROW]
        count = len(words) // 2 + len(self._compared)
        if not row or count > MOST_WORDS:
            return
        # The key has no registers, only the hash that chooses the row does: two address spaces can meet there. So the
        # registers are compared like words of the tables.
        compared = [word for address, index in self._compared for word in (address, state[index])]
        start = row - state[_TABLE]
        _HEAD.pack_into(self._table, start, state[_KEY], physical, permissions, count)
        _WORDS[count].pack_into(self._table, start + _HEAD.size, *compared, *words)
        state[_ROW] = 0  # it answers this miss, and not the next one that Python is asked about
        self._is_empty = False

    def ask(self, translate: Callable[[int], int | None], address: int) -> int | None:
        """What `translate` finds for an address; if it misses the TLB, the physical address that is kept for its page
        and for reading. Unicorn gets no translation then, as if there were none."""
        words = self._words
        words[_ASKS], words[_ANSWER] = 1, _NO_ANSWER
        try:
            found = translate(address)
        finally:
            words[_ASKS] = words[_ROW] = 0
        answer = words[_ANSWER]
        return found if answer == _NO_ANSWER else answer

    def forget(self) -> None:
        """Drop all answers."""
        if not self._is_empty:
            self._table[:] = bytes(len(self._table))
            self._is_empty = True
