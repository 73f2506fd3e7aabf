"""Instructions counted by blocks, for an instruction counter whose own hook is at each of them.

That hook costs more than the instructions: the guest's registers are stored for it, on amd64 with the flags, which are
otherwise computed where they are needed. The hook for blocks is there in any case. It takes all instructions of a
block from the budget when the block begins, as QEMU does with `-icount`, and the counts are those of the other hook:

- A block that exceeds the budget is translated again for this once, cut short to what is left. It runs, and the run
  ends at the next one.
- What an instruction calls back for (devices, ports, system registers) asks for the time and may end the run. There the
  block is left and the instruction is executed in a block of its own (`before`).
- An instruction that raises an exception leaves its block, and what is behind it is given back (`settle`). So it is
  where a run ends otherwise than by the hook.
- An instruction of amd64 that changes its own block is begun a second time by the emulator, and counts twice. Where the
  budget has cut the block right behind it, it counts once: the one difference to the other way.
- In the trampolines, only what a slot begins with is counted.

How many instructions a block has, and where each of them begins, is in the emulator's own tables. The code in
`host/count` and `host/tally` looks there when a block is executed for the first time, and notes the number in the
block: the hook's third argument is 32 bits of which the size needs 16. If what it finds there is not what it expects,
nothing of the block is executed, `has_failed` is true, and somebody must count in the other way from then on.
So it is when somebody else gets the engine.
"""

import ctypes

from kinst.runtime.engine.emulator_code import EmulatorCode
from kinst.runtime.engine.host.budget import (
    ALONE,
    ALONE_BEFORE,
    COUNT,
    CUT,
    FIRST,
    REST,
    SETTLE,
    TALLY,
    BeforeCallback,
    BudgetState,
)
from kinst.runtime.engine.host.fields import offset
from kinst.runtime.engine.host.routine import HostFunction
from kinst.targets.arch.facts import EngineFacts

_SETTLE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32)
_Hook = tuple[ctypes.c_void_p, ctypes.c_void_p]  # a function and its argument


class BlockBudget:
    """The hook for blocks of one engine, and what belongs to it."""

    def __init__(self, state: BudgetState, code: EmulatorCode, facts: EngineFacts, blocks: _Hook) -> None:
        """Raises LookupError on hosts that have no code for it.

        Args:
            state: the counter's.
            code: the emulator's.
            facts: the machine's.
            blocks: the hook for blocks that the new one calls.
        """
        self._state, self._code = state, code
        self._count, self._tally, self._settle = (_function(routine.function()) for routine in (COUNT, TALLY, SETTLE))
        state.tally = self._tally.address.value or 0
        state.blocks, state.blocks_state = (word.value or 0 for word in blocks)
        state.cpu, state.next_flags, state.restore, state.leave = code.cpu, code.next_flags, code.restore, code.leave
        state.words, state.empty = facts.start_words, int(facts.has_sizeless)
        state.segments = (1 << 64) - 1 if facts.has_segments else 0
        self._before: list[HostFunction] = []
        self.has_begun = False  # whether the hook for blocks was called already for what the last run ended before
        self._io_pc = ctypes.c_uint64.from_address(code.io_pc)
        self._call_settle = _SETTLE(self._settle.address.value or 0)

    def callback(self) -> _Hook:
        """The function and the argument for Unicorn's hook at blocks."""
        return self._count.address, ctypes.c_void_p(ctypes.addressof(self._state))

    def before(self, callback: int, *, is_memory: bool) -> ctypes.c_void_p:
        """What Unicorn calls in place of the function at this address, for what instructions do: for their accesses to
        memory, or else by what a block calls directly."""
        own = BeforeCallback(callback, ctypes.addressof(self._state), self._code.io_pc if is_memory else 0)
        self._before.append(_function(ALONE_BEFORE.function(bytes(own))))
        return self._before[-1].address

    @property
    def settle_at(self) -> tuple[int, int, int]:
        """For machine code that finds an exception: the address of the function that settles, the state that it is
        called with, and the address of the word that says which block has begun."""
        state = ctypes.addressof(self._state)
        return self._settle.address.value or 0, state, state + offset(BudgetState, "open")

    @property
    def has_failed(self) -> bool:
        """Whether the last run ended at a block that cannot be counted like this."""
        return self._state.has_failed != 0

    def begin(self) -> None:
        """A run begins."""
        self._state.open, self._state.pending, self._io_pc.value = 0, FIRST, 0

    def end(self, pc: int, *, is_fault: bool, is_fetch: bool) -> None:
        """A run ended at this PC. With `is_fault` its instruction has raised an exception, and counts, unless it could
        not be fetched (`is_fetch`). If it is not in the block that had begun, this came to its end."""
        pending = self._state.pending
        is_left = pending == ALONE  # it was to be executed in a block of its own
        self.has_begun = is_left or pending == CUT or (pending == REST and pc == self._state.rest)
        if not is_left and (is_fetch or self.has_failed):
            self._state.open = 0
        self._call_settle(ctypes.addressof(self._state), pc, is_fault and not is_left)


def _function(found: HostFunction | None) -> HostFunction:
    if found is None:
        raise LookupError("there is no machine code for this host")
    return found
