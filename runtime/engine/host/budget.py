"""The state of the hooks that count instructions: one at every instruction, or one at every block for all of its own.
They end the run before the instruction that exceeds the budget. How blocks are counted is told in `block_budget`."""

import ctypes
from typing import Final

from kinst.runtime.engine.host.blocks import BlockState
from kinst.runtime.engine.host.fields import Half, Word, layout
from kinst.runtime.engine.host.routine import Routine

# What the next block is: any, the first of a run, one that was cut short so that it does not exceed the budget, one
# that was cut short to an instruction that calls back, and what follows these two: one by one it would be no block.
ANY, FIRST, CUT, ALONE, REST = range(5)


@layout
class BudgetState(ctypes.Structure):
    """What the hooks are called with."""

    __slots__ = ()
    budget: Word  # instructions that may still be executed
    trampolines: Word  # their address
    trampolines_size: Word
    stop: Word  # the address of uc_emu_stop
    has_stopped: Word  # whether the hook called it
    slot_mask: Word  # the size of a trampoline's slot less one: the bits of an offset that are 0 where a slot begins
    # The block that has begun: all of its instructions were taken from the budget.
    open: Word  # the host's address that the hook for blocks has returned to; 0: there is none
    address: Word  # the guest's
    count: Word  # its instructions
    # These two are one comparison where there is nothing to do.
    pending: Half  # what the next block is
    is_shared: Half  # whether somebody else has the engine: no other block is counted like this
    rest: Word  # where it begins, if it is REST
    slot: Word  # the address of the word with the host's address that what a block calls returns to
    has_failed: Word  # whether a block was not counted: nothing of it was executed
    # What else is called, and the emulator's own.
    blocks: Word  # the hook for blocks that this one stands before
    blocks_state: Word  # and its state
    tally: Word  # the routine below
    cpu: Word  # the address of struct CPUState
    next_flags: Word  # of its word with the flags for the next translation
    restore: Word  # of cpu_restore_state
    leave: Word  # of cpu_loop_exit_noexc
    empty: Word  # how many instructions a block has that has one without a size
    segments: Word  # the bits of a block's base that are its segment's
    words: Word  # what it keeps for the start of each instruction behind the PC: the guest's words, the host's PC


@layout
class BeforeCallback(ctypes.Structure):
    """What the code in front of a callback has right behind itself."""

    __slots__ = ()
    callback: Word
    budget: Word  # the address of the counter's state
    returns: Word  # of the word with the host's address that the block goes on at; 0, or it has 0: the slot's has it


@layout
class TranslationBlock(ctypes.Structure):
    """The beginning of QEMU's struct of that name."""

    __slots__ = ()
    pc: Word
    base: Word
    flags_size_count: Word  # 32 bits of flags, 16 of the size in bytes, 16 of the number of instructions
    compilation: Word  # 32 bits of flags, of which the lowest 15 are the number of instructions that it was cut to
    code: Word  # the host's address of its code, which is behind this struct
    code_size: Word  # and how much there is before the table with the starts of instructions


SIZE_BITS: Final = 16  # of the hook's third argument; above them are those of what is known of the block
# Bits of what is known: instructions, whether it was cut short, and whether the fast way does not do.
COUNT_MASK, IS_CUT, IS_RARE = 0x3FFF, 0x4000, 0x8000
IN_SEGMENT: Final = 2  # of a PC: it counts from the base of its block's segment
_LAYOUTS: Final = {"state": BudgetState, "blocks": BlockState, "tb": TranslationBlock, "own": BeforeCallback}
_CONSTANTS: Final = {
    "FIRST": FIRST,
    "CUT": CUT,
    "ALONE": ALONE,
    "REST": REST,
    "SIZE_BITS": SIZE_BITS,
    "COUNT_MASK": COUNT_MASK,
    "IS_CUT": IS_CUT,
    "IS_RARE": IS_RARE,
    "IN_SEGMENT": IN_SEGMENT,
}

BUDGET: Final = Routine("budget", {"state": BudgetState})
COUNT: Final = Routine("count", _LAYOUTS, _CONSTANTS)
TALLY: Final = Routine("tally", _LAYOUTS, _CONSTANTS)
SETTLE: Final = Routine("settle", _LAYOUTS, _CONSTANTS)
ALONE_BEFORE: Final = Routine("alone", _LAYOUTS, _CONSTANTS)
