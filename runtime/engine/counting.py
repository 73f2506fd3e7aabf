"""How one engine counts the instructions that it executes: by blocks where that is possible, else one by one.

Both ways give the same counts at the same places, so that a run does not depend on the host, and one may go on where
the other has stopped. By blocks, an instruction that calls back is begun twice. Our own hooks do not mind, but those of
somebody else would see it twice, and their devices be asked in the middle of a block. So nobody else has the engine as
long as instructions are counted by blocks.
"""

import ctypes
from collections.abc import Callable
from typing import Any, Final

from unicorn.unicorn_const import UC_ERR_OK, UC_HOOK_BLOCK, UC_HOOK_CODE

from kinst.runtime.engine.block_budget import BlockBudget
from kinst.runtime.engine.breakpoint_counters import BreakpointCounters
from kinst.runtime.engine.emulator import EVERYWHERE, Emulator
from kinst.runtime.engine.emulator_code import emulator_code
from kinst.runtime.engine.native_hooks import BlockHook, InstructionCounter
from kinst.targets.arch.facts import EngineFacts

_NOWHERE: Final = ((1 << 63) + 1,) * 2  # odd, and for amd64 no address
_BOUNDS: Final = 24  # where in Unicorn's struct hook they are, in bytes


class Counting:
    """The hook for blocks, and what counts in its place once somebody has asked for it."""

    def __init__(
        self, emulator: Emulator, library: tuple[ctypes.CDLL, ctypes.c_void_p], facts: EngineFacts, hook: BlockHook
    ) -> None:
        """`library` is Unicorn's, with its engine. `hook` is called at each block; nothing is counted yet."""
        self._emulator, self._library, self._facts, self._hook = emulator, library, facts, hook
        self._blocks = emulator.hook(UC_HOOK_BLOCK, *hook.callback())
        self._calls_back = False  # whether there was a callback for what instructions do before they were counted
        self._budget: BlockBudget | None = None  # where they are counted by blocks
        self._bounds = (ctypes.c_uint64 * 2)()  # of the hook that counts one by one
        self._is_shared = False  # whether somebody else has the engine
        self._kept: list[BlockBudget] = []  # whose code may be called though it counts no longer
        self.counter: InstructionCounter | None = None

    def start(self, stop: int) -> InstructionCounter:
        """Count from now on. `stop` is the address of uc_emu_stop."""
        self.counter = InstructionCounter(stop)
        # The hook is there from the start, since hooks are called in the order in which they were added: others are
        # added later, and must not be called for an instruction that is not executed.
        each = self._emulator.hook(UC_HOOK_CODE, *self.counter.callback(), bounds=_NOWHERE)
        self._bounds = (ctypes.c_uint64 * 2).from_address((each.value or 0) + _BOUNDS)
        if tuple(self._bounds) != _NOWHERE:
            self._emulator.unhook(each)
            self._bounds = (ctypes.c_uint64 * 2)()
            self._emulator.hook(UC_HOOK_CODE, *self.counter.callback())
            return self.counter
        self._budget = None if self._calls_back or self._is_shared else self._new_budget(self.counter)
        if self._budget is None:
            self.count_each()
        else:
            self._kept.append(self._budget)
            self._hook_blocks(self._budget.callback())
        return self.counter

    def _new_budget(self, counter: InstructionCounter) -> BlockBudget | None:
        library, engine = self._library
        code = emulator_code(library, engine.value or 0, self._facts.library_suffix)
        try:
            return None if code is None else BlockBudget(counter.state, code, self._facts, self._hook.callback())
        except LookupError:
            return None

    def _hook_blocks(self, hook: tuple[ctypes.c_void_p, ctypes.c_void_p]) -> None:
        self._emulator.unhook(self._blocks)
        self._emulator.forget_all_code()
        self._blocks = self._emulator.hook(UC_HOOK_BLOCK, *hook)

    @property
    def is_by_blocks(self) -> bool:
        """Whether instructions are counted by blocks."""
        return self._budget is not None

    def share(self) -> None:
        """Somebody else has the engine from now on: count instructions one by one, in a run from its next block on."""
        self._is_shared = True
        if self.counter is not None:
            self.counter.state.is_shared = 1

    def count_each(self) -> None:
        """Between two runs: if instructions are counted, count them one by one from now on."""
        if self.counter is not None:
            self._bounds[:] = [*EVERYWHERE]
        if self._budget is not None:
            self._budget = None
            self._hook_blocks(self._hook.callback())

    def end_now(self) -> None:
        """End the run before the instruction whose hook is being called; instructions are counted."""
        assert self.counter is not None
        self.counter.end_now(self._library[1], is_counted=not self.is_by_blocks)

    def alone(self, callback: Any, *, is_memory: bool = False) -> ctypes.c_void_p:
        """What Unicorn is to call in place of this callback for what an instruction does (with `is_memory`, for its
        accesses): there, no instruction has been counted that is still to come."""
        function = ctypes.cast(callback, ctypes.c_void_p)
        if self._budget is None:
            self._calls_back = True
            return function
        return self._budget.before(function.value or 0, is_memory=is_memory)

    def settle_before(self, counters: BreakpointCounters) -> None:
        """Let nobody know of an exception before what its block has left is given back."""
        if self._budget is None:
            return
        if counters.is_native:
            counters.settle(*self._budget.settle_at, self._facts.interrupt_bias)
        else:
            self.count_each()

    def set_trampolines(self, address: int, size: int, slot_size: int) -> None:
        """Count only the first instruction of a slot in [address, address + size)."""
        is_new = self.counter is not None and self.counter.set_slots(address, size, slot_size)
        if is_new and self._budget is not None:
            self._emulator.forget_all_code()  # each block knows how many of its instructions count

    def run(self, start: Callable[[], tuple[int, bool]], pc: Callable[[], int]) -> int:
        """The status of a run by `start`. What is counted of its last block and was not executed is given back.

        Args:
            start: run from the CPU's PC until something happens. It returns Unicorn's status, and whether that is since
                an instruction could not be fetched.
            pc: the CPU's PC.
        """
        if self._is_shared and self._budget is not None:
            self.count_each()
        if self._budget is None:
            return start()[0]
        self._budget.begin()
        status, is_fetch = start()
        self._budget.end(pc(), is_fault=status != UC_ERR_OK, is_fetch=is_fetch)
        if not self._budget.has_failed:
            return status
        if self._budget.has_begun:
            self._hook.take_back(pc())
        self.count_each()
        return start()[0]
