"""Breakpoints that a few bytes of host machine code handle: hits are counted or recorded, and no clause runs for a
single one, or they are dispatched in the shortest way.

A Python callback takes about a microsecond a hit, this takes less than a tenth of one: the hit is added to a cell of
the running CPU, which continues where the table says. Any other exception is passed on to the callback in Python.
"""

import ctypes
import mmap
import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.engine.cpu_places import CpuPlaces
from kinst.runtime.engine.hit_records import ClockWord, HitRecords
from kinst.runtime.engine.host.breakpoints import (
    BATCHED,
    BREAKPOINTS,
    DISPATCHED,
    KEYED,
    BreakpointRow,
    BreakpointState,
)
from kinst.runtime.engine.host.fields import HASH

# Open addressing with linear probing from the hash of the address; a deleted row stays as a tombstone. The two markers
# are addresses as well, at which a guest can have a breakpoint: those are never entered and so always passed on.
_ROW: Final = struct.Struct("<QQQQ")
assert _ROW.size == ctypes.sizeof(BreakpointRow)
_FREE, _GONE = (1 << 64) - 1, (1 << 64) - 2
_FEWEST_ROWS: Final = 1 << 10
_FEWEST_CELLS: Final = 1 << 10
_WORD: Final = 8
Taken = list[tuple[int, int, int]]  # CPU, cell, hits
INTERRUPT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p)  # UC_HOOK_INTR's callback
_DISPATCH = ctypes.CFUNCTYPE(None, ctypes.py_object)


class BreakpointCounters:
    """The table of one engine, and the cells of its CPUs."""

    def __init__(
        self,
        places: CpuPlaces,
        breakpoint_at: tuple[int, int],
        credit: int,
        clock: ClockWord,
    ) -> None:
        """Nothing is counted yet.

        Args:
            places: where the CPU's registers are.
            breakpoint_at: a breakpoint's exception number, and how far the PC is past it then, in bytes.
            credit: the address of the 64-bit word that credits are added to; 0 if nobody counts instructions.
            clock: where records take their time from.
        """
        self._state = BreakpointState()
        self._nowhere = ctypes.c_uint64()
        self._state.pc = places.live_pc or 0
        self._state.event, self._state.bias = breakpoint_at
        self._state.credit = credit or ctypes.addressof(self._nowhere)
        self._state.open = ctypes.addressof(self._nowhere)
        # Else the next exception that is none of the guest's, an intercept, would find the PC behind this interrupt.
        self._state.raised = places.raised or ctypes.addressof(self._nowhere)
        self._raised = ctypes.c_uint32.from_address(self._state.raised)
        self._code = None if places.live_pc is None else BREAKPOINTS.function()
        self._when_full: Callable[[], None] = lambda: None
        self.records = HitRecords(self._state, places, clock)
        read, frame, general, pc = places.read, places.frame, places.general, places.pc
        self._numbers = (ctypes.c_int * len(read))(*(places.numbers[index] for index in read))
        self._places = (ctypes.c_uint64 * len(read))(*(frame + _WORD * index for index in read))
        self._state.frame_numbers, self._state.frame_count = ctypes.addressof(self._numbers), len(read)
        self._state.frame_places, self._state.frame_pc = ctypes.addressof(self._places), frame + _WORD * pc
        self._state.general, self._state.general_count, self._state.frame = general, pc if general else 0, frame
        self._dispatched: dict[int, object] = {}  # by address, what the callback for dispatched hits is called with
        self._rows: dict[int, tuple[int, int, int]] = {}  # by address, what the table has
        self._used = 0  # rows of the table that are not free
        self._cells: list[NDArray[np.uint64]] = []  # of each CPU
        self._count = 1  # of a CPU's cells that are given out; cell 0 collects what nobody reads
        self._given_back: list[int] = []
        self._cpu = 0
        self._make_table(_FEWEST_ROWS)
        self.use(0)

    @property
    def is_native(self) -> bool:
        """Whether hits are counted here; else all are passed on."""
        return self._code is not None

    def settle(self, function: int, state: int, block: int, interrupt_bias: int) -> None:
        """Instructions are counted by blocks: before an exception is passed on, call the function at this address with
        the address of a state, where the PC is `interrupt_bias` bytes behind the instruction. `block` is the address of
        the word that says which block has begun: a breakpoint comes to its end."""
        self._state.settle, self._state.budget, self._state.open = function, state, block
        self._state.interrupt_bias = interrupt_bias

    def callback(
        self, otherwise: ctypes.c_void_p, full: ctypes.c_void_p, dispatch: ctypes.c_void_p
    ) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
        """The function and the argument for Unicorn's UC_HOOK_INTR. `otherwise` gets what is not in the table, `full`
        the hit for which there is no record left, and `dispatch` the argument that a dispatched hit has in the
        table."""
        self._state.callback, self._state.full = otherwise.value or 0, full.value or 0
        self._state.dispatch = dispatch.value or 0
        if self._code is None:
            return otherwise, ctypes.c_void_p()
        return self._code.address, ctypes.c_void_p(ctypes.addressof(self._state))

    def on_full(self, call: Callable[[], None]) -> None:
        """Call this when the buffer of records is full; it must take them."""
        self._when_full = call

    def in_python(
        self,
        handle: Callable[[int, int, int], None],
        failed: Callable[[BaseException], None],
        guarded: Callable[[Callable[[], None]], None],
    ) -> tuple[Any, Any, Any]:
        """What the host code calls, for `callback`; the caller keeps it.

        Args:
            handle: gets what is not in the table.
            failed: called with what a dispatched hit raises.
            guarded: calls a function, and keeps what it raises.
        """

        def handled(uc: int, number: int, data: int) -> None:
            handle(uc, number, data)
            self._raised.value = 0

        def full(uc: int, number: int, data: int) -> None:
            guarded(self._when_full)
            handled(uc, number, data)  # the hit that did not fit: the records before it are drained, so order is kept

        def dispatch(hit: Callable[[], None]) -> None:
            try:
                hit()
            except BaseException as error:
                # `failed` writes the PC by Unicorn's interface: the host code must not write the row's over it.
                self.stay()
                failed(error)

        return INTERRUPT(handled), INTERRUPT(full), _DISPATCH(dispatch)

    # -- breakpoints --------------------------------------------------------------------------------------------------

    def set(self, address: int, following: int, cell: int, *, has_credit: bool) -> None:
        """Count the breakpoint at `address` in `cell` (0: in none), and let the CPU continue at `following`."""
        self._enter(address, (following, cell * _WORD, int(has_credit)))

    def record(self, address: int, following: int, *, has_credit: bool, is_keyed: bool = False) -> None:
        """Record the breakpoint at `address`, and let the CPU continue at `following`. With `is_keyed` the record has
        the key of the thread; hits of unknown threads are passed on."""
        self._enter(address, (following, BATCHED | KEYED * is_keyed, int(has_credit)))

    def dispatch(self, address: int, following: int, hit: Callable[[], None], *, has_credit: bool) -> None:
        """Call `hit` at the breakpoint at `address`, with the frame filled and its PC at the breakpoint. Then the CPU
        continues at `following`; if that is 0, where `hit` leaves the frame's PC."""
        self._enter(address, (following, DISPATCHED | id(hit), int(has_credit)))
        self._dispatched[address] = hit  # so that it lives as long as its row

    def stay(self) -> None:
        """From within a dispatched hit: leave the PC as it is, since it was set already."""
        self._state.stays = 1

    def _enter(self, address: int, row: tuple[int, int, int]) -> None:
        self.drop(address)
        if address >= _GONE:
            return
        self._rows[address] = row
        # At most half full, tombstones included: a search ends only at a free row, so there must always be one near.
        if 2 * (self._used + 1) > self._state.table_mask:
            self._make_table(max(_FEWEST_ROWS, 1 << (4 * len(self._rows)).bit_length()))
        else:
            self._put(address)

    def drop(self, address: int) -> None:
        """Pass the hits of a breakpoint on again."""
        self._dispatched.pop(address, None)
        if self._rows.pop(address, None) is not None:
            _ROW.pack_into(self._table, self._place(address) * _ROW.size, _GONE, 0, 0, 0)

    def _make_table(self, size: int) -> None:
        self._table = memoryview(mmap.mmap(-1, size * _ROW.size))
        self._table[:] = b"\xff" * len(self._table)
        self._state.table = ctypes.addressof(ctypes.c_char.from_buffer(self._table))
        self._state.table_mask = size - 1
        self._used = 0
        for address in self._rows:
            self._put(address)

    def _put(self, address: int) -> None:
        _ROW.pack_into(self._table, self._place(_FREE, address) * _ROW.size, address, *self._rows[address])
        self._used += 1

    def _place(self, key: int, address: int | None = None) -> int:
        """The first row that has `key`, from the place of an address on, which is `key` itself if it is not given."""
        place = ((key if address is None else address) * HASH & _FREE) >> 32
        while True:
            place &= self._state.table_mask
            if _ROW.unpack_from(self._table, place * _ROW.size)[0] == key:
                return place
            place += 1

    # -- cells --------------------------------------------------------------------------------------------------------

    def cell(self) -> int:
        """A new cell, which each CPU has for itself."""
        if self._given_back:
            return self._given_back.pop()
        self._count += 1
        if self._count > len(self._cells[0]):
            more = 2 * self._count
            self._cells = [np.concatenate([cells, np.zeros(more - len(cells), np.uint64)]) for cells in self._cells]
            self.use(self._cpu)
        return self._count - 1

    def give_back(self, cells: list[int]) -> None:
        """Let cells that no breakpoint has any more, and that were taken since, be given out again."""
        self._given_back += cells

    def use(self, cpu: int) -> None:
        """Count in the cells of this CPU: it runs."""
        self._cpu = self._state.cpu = cpu
        while len(self._cells) <= cpu:
            self._cells.append(np.zeros(max(_FEWEST_CELLS, 2 * self._count), np.uint64))
        self._state.cells = self._cells[cpu].ctypes.data

    def take(self) -> Taken:
        """What was counted since the last time, by CPU and cell, ascending."""
        taken: Taken = []
        for cpu, cells in enumerate(self._cells):  # cleared in place: the host code has their address
            cells[0] = 0
            found = np.flatnonzero(cells[: self._count])
            taken += [(cpu, cell, hits) for cell, hits in zip(found.tolist(), cells[found].tolist(), strict=True)]
            cells[found] = 0
        return taken
