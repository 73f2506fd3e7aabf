"""Hooks at every instruction or block, as a few bytes of host machine code: they count, end the run on request, and
report blocks that begin or end at marked addresses.

A Python callback takes half a microsecond, these hooks take 1 to 3 ns. Stopping anywhere else is not safe: if
`uc_emu_stop` is called by another thread or inside a device access, Unicorn 2.1.4 does not update the PC of a block
that was entered by a chained jump, and then executes instructions twice. At the start of a block the PC is exact.

A run does not end in a trampoline, except between two iterations of a repeated string instruction of amd64, which can
go on forever. In a trampoline only the displaced instruction is counted, at the start of its slot; the trap path takes
back the count of its breakpoint. So a displaced instruction counts once, and a repeated one once per iteration,
wherever they run.
"""

import ctypes
import mmap
from collections.abc import Callable
from typing import ClassVar, Final, Generic, TypeVar

from kinst.runtime.engine.block_counters import BlockCounters
from kinst.runtime.engine.covered.block_coverage import BlockCoverage
from kinst.runtime.engine.host.blocks import BLOCKS, MARKS_SIZE, NOW, WHEN_UNMASKED, BlockState
from kinst.runtime.engine.host.budget import BUDGET, BudgetState
from kinst.runtime.engine.host.fields import offset
from kinst.runtime.engine.host.routine import Routine

_UNLIMITED: Final = 1 << 62
_MOST_MARKS: Final = 255  # how many addresses may share a mark; after that, it is never removed
_HOOK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)
_READ_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_STOP_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


_State = TypeVar("_State", BlockState, BudgetState)


class _NativeHook(Generic[_State]):
    """State and code of one hook."""

    routine: ClassVar[Routine]

    def __init__(self, state: _State, stop: int) -> None:
        """`stop` is the address of uc_emu_stop."""
        self._state: _State = state
        state.stop = stop
        self._kept: object = None

    def set_trampolines(self, address: int, size: int) -> None:
        """Set where the trampolines are."""
        self._state.trampolines, self._state.trampolines_size = address, size

    @property
    def has_stopped(self) -> bool:
        """Whether this hook ended the run."""
        return self._state.has_stopped != 0

    def callback(self) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
        """The function and the argument for Unicorn."""
        state = ctypes.c_void_p(ctypes.addressof(self._state))
        code = self.routine.function()
        if code is None:
            function = _HOOK(self._in_python)
            self._kept = function
            return ctypes.cast(function, ctypes.c_void_p), state
        self._kept = code
        return code.address, state

    def _in_python(self, uc: int, address: int, size: int, _data: int) -> None:
        """What the machine code does, for hosts without machine code."""
        distance = address - self._state.trampolines
        is_inside = 0 <= distance < self._state.trampolines_size
        if self._is_over_inside(address, distance) if is_inside else self._is_over(uc, address, size):
            self._state.has_stopped = 1
            _STOP_FUNCTION(self._state.stop)(uc)

    def _is_over_inside(self, address: int, distance: int) -> bool:
        """Whether the run ends before an instruction or block in the trampolines, at `distance` from their start."""
        raise NotImplementedError

    def _is_over(self, uc: int, address: int, size: int) -> bool:
        """Whether the run ends before an instruction or block elsewhere."""
        raise NotImplementedError


class BlockHook(_NativeHook[BlockState]):
    """For every block: report it if it is marked, and end the run if that was requested; else count it if it begins at
    a site. `request` may be called from any thread at any time."""

    routine = BLOCKS

    def __init__(self, stop: int, fail: Callable[[BaseException], None]) -> None:
        """`stop` is the address of uc_emu_stop. `fail` is called with what an observer of blocks raises."""
        super().__init__(BlockState(), stop)
        self._fail = fail
        self.marks = BlockMarks(self._state, fail)
        self.counters = BlockCounters(self._state)
        self.coverage: BlockCoverage | None = None

    def cover(self, place: Callable[[int], int], is_call: Callable[[int, int], bool] | None = None) -> BlockCoverage:
        """Count all blocks that run from now on. The arguments are those of `BlockCoverage`."""
        self.coverage = coverage = BlockCoverage(place, self._fail, is_call)
        self._state.covered, self._state.coverage = coverage.hook
        return coverage

    def run_as(self, cpu: int) -> None:
        """Another CPU runs from now on, by its number."""
        if self.coverage is not None and self.coverage.log is not None:
            self.coverage.log.run_as(cpu)

    def take_back(self, pc: int) -> None:
        """Uncount what begins at this PC: the run ended after the hook, which will be called again."""
        self.counters.take_back(pc)
        self.leave(pc, has_begun=False)

    def leave(self, pc: int, *, has_begun: bool = True) -> None:
        """See `BlockCoverage.leave`."""
        if self.coverage is not None:
            self.coverage.leave(pc, has_begun=has_begun)

    def request(self) -> None:
        """End the run at the next block."""
        # One aligned 32-bit store, which the host code reads without a lock: that is what makes threads safe here.
        self._state.stopping = NOW

    def end(self, pc: Callable[[], int], *, is_spent: bool) -> None:
        """The run has ended: forget requests. With `is_spent` the budget ended it, before the first instruction of a
        block that was counted already, or inside one."""
        if is_spent:
            self.take_back(pc())
        elif self.counters.has_stopped:
            self.leave(pc(), has_begun=False)
        self._state.stopping = self._state.has_stopped = self._state.last = 0

    def watch(self, read: int, register: int, mask: int, inverted: int) -> None:
        """Set how the guest masks interrupts: the address of uc_reg_read, Unicorn's register, and its bits, which mask
        if all of them are 1, or 0 for those in `inverted`."""
        self._state.read, self._state.register = read, register
        self._state.mask, self._state.unmasking = mask, ~inverted & mask

    def request_when_unmasked(self) -> None:
        """End the run at a block, but not at its first, at which interrupts are not masked."""
        # In this order: `stopping` is what the hook reads first.
        self._state.is_first = 1
        self._state.stopping = WHEN_UNMASKED

    def _is_over_inside(self, address: int, distance: int) -> bool:
        if not self._has_work:
            return False
        # The same block twice in a row, inside a trampoline, is an iteration of a repeated string instruction.
        last, self._state.last = self._state.last, address
        return last == address and self._state.stopping == NOW

    def _is_over(self, uc: int, address: int, size: int) -> bool:
        if self._has_work:
            self._state.last, self._state.size = address, size
        if self.marks.concern(address, size):
            self.marks.look(address, size)
        if self._is_wanted(uc):
            return True
        if self.coverage is not None:
            self.coverage.count(address, size)
        return self.counters.count(address, size)

    @property
    def _has_work(self) -> bool:
        return bool(self._state.stopping or self._state.marked)

    def _is_wanted(self, uc: int) -> bool:
        state, wanted = self._state, self._state.stopping
        if wanted != WHEN_UNMASKED:
            return wanted == NOW
        if state.is_first:
            state.is_first = 0
            return False
        value = ctypes.addressof(state) + offset(BlockState, "value")
        _READ_FUNCTION(state.read)(uc, state.register, value)
        return bool((state.value ^ state.unmasking) & state.mask)


class BlockMarks:
    """Addresses at which blocks are reported, before they run, if they begin or end there. The table is a filter of one
    byte per address modulo its size, so observers must check the address. Without marks it costs a block nothing."""

    def __init__(self, state: BlockState, fail: Callable[[BaseException], None]) -> None:
        """`state` is the hook's."""
        self._state = state
        self._fail = fail
        self.looks: list[Callable[[int, int], None]] = []  # called with the address and size of a block
        self._callback = _HOOK(lambda _uc, address, size, _data: self.look(address, size))
        memory = mmap.mmap(-1, MARKS_SIZE)
        self._table = memoryview(memory)
        self._count = 0
        state.marks = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        state.look = ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def look(self, address: int, size: int) -> None:
        """Report a block to all observers, before it runs."""
        try:
            for look in self.looks:
                look(address, size)
        except BaseException as error:  # it cannot be raised through ctypes, which would print it and continue
            self._fail(error)

    def mark(self, address: int) -> None:
        """Mark an address. Marks are counted."""
        slot = address & MARKS_SIZE - 1
        count = self._table[slot]
        if count < _MOST_MARKS:  # a full byte is never lowered again: how many addresses it stands for is not known
            self._table[slot] = count + 1
        self._count += 1
        self._state.marked = 1

    def unmark(self, address: int) -> None:
        """Remove one mark of an address."""
        slot = address & MARKS_SIZE - 1
        count = self._table[slot]
        if count < _MOST_MARKS:
            self._table[slot] = count - 1
        self._count -= 1
        if not self._count:
            self._state.marked = 0

    def has(self, address: int) -> bool:
        """Whether an address is marked, or shares its mark with one that is."""
        return self._table[address & MARKS_SIZE - 1] != 0

    @property
    def looks_at_next(self) -> bool:
        """Whether the next block is reported in any case. It is only true while there is a mark."""
        return self._state.looks_at_next != 0

    def look_at_next(self, *, is_wanted: bool) -> None:
        """Report the next block in any case, or do not. It is only possible while there is a mark."""
        self._state.looks_at_next = is_wanted

    def look_soon(self) -> None:
        """Have the next block reported whether it is marked or not; from any thread."""
        self.look_at_next(is_wanted=True)
        self._state.marked = 1

    def rest(self) -> None:
        """Undo `look_soon`: only marked blocks are reported again."""
        self.look_at_next(is_wanted=False)
        self._state.marked = int(self._count > 0)

    def concern(self, address: int, size: int) -> bool:
        """Whether a block is reported, by the rule of the machine code."""
        if not self._state.marked:
            return False
        return self.has(address) or self.has(address + size) or self.looks_at_next


class InstructionCounter(_NativeHook[BudgetState]):
    """For every instruction: count it, and end the run before the one that exceeds the budget."""

    routine = BUDGET

    def __init__(self, stop: int) -> None:
        """`stop` is the address of uc_emu_stop."""
        super().__init__(BudgetState(), stop)
        self._executed = 0  # executed before the current budget
        self._granted = 0
        self._slots = (0, 0, 0)

    def set_slots(self, address: int, size: int, slot_size: int) -> bool:
        """Set where the trampolines are, and the size of their slots in bytes, a power of two. Returns whether that is
        new."""
        state, before = self._state, self._slots
        self._slots = address, size, slot_size
        self.set_trampolines(address, size)
        state.slot_mask = slot_size - 1
        return self._slots != before

    @property
    def state(self) -> BudgetState:
        """What the hook works with, for another hook that counts in its place."""
        return self._state

    @property
    def word(self) -> int:
        """The address of the budget's 64-bit word in the host's memory: adding 1 does what `take_back` does."""
        return ctypes.addressof(self._state) + offset(BudgetState, "budget")

    def take_back(self) -> None:
        """Uncount the last breakpoint: the instruction that it replaces runs, and is counted, in a trampoline."""
        self._state.budget += 1

    def end_now(self, engine: ctypes.c_void_p, *, is_counted: bool) -> None:
        """End the run before the instruction whose hook is being called. `is_counted`: it has been taken from the
        budget, and is given back."""
        self._state.budget += is_counted
        self._state.has_stopped = 1
        _STOP_FUNCTION(self._state.stop)(engine)

    @property
    def executed(self) -> int:
        """The instructions executed since the counter was made; also exact inside callbacks."""
        return self._executed + self._granted - self._state.budget

    @property
    def promised(self) -> int:
        """What will have been executed when the budget is used up: `executed` is this less the budget's word."""
        return self._executed + self._granted

    def grant(self, instructions: int | None = None) -> None:
        """Let this many more instructions run (0: none); None means without limit."""
        self._executed = self.executed
        self._granted = self._state.budget = _UNLIMITED if instructions is None else instructions
        self._state.has_stopped = 0

    def _is_over_inside(self, address: int, distance: int) -> bool:
        return not distance & self._state.slot_mask and self._is_over(0, address, 0)

    def _is_over(self, uc: int, address: int, size: int) -> bool:
        if self._state.budget == 0:
            return True
        self._state.budget -= 1
        return False
