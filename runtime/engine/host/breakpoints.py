"""The state of the callback for exceptions, which handles breakpoints by itself, and the rows of its tables.

It looks the PC up in a table, and what it does not find there it passes on to the callback in Python. A hit is counted,
or recorded, since its clauses run later, or dispatched at once: then it calls a function of Python's itself. The
registers were read, and where the CPU goes on is written, so that Python makes no call into Unicorn, each of which
would take half a microsecond.
"""

import ctypes
from typing import Final

from kinst.runtime.engine.host.fields import HASH, Word, layout, log2
from kinst.runtime.engine.host.routine import Routine

# The target of a row is the offset of a cell in bytes, or has these bits. A dispatched hit has the address of the
# callback's argument below them. x86_64 looks at them as signs, each after a shift.
_BATCHED_BIT, _DISPATCHED_BIT, _KEYED_BIT = 63, 62, 61
BATCHED: Final = 1 << _BATCHED_BIT
DISPATCHED: Final = BATCHED | 1 << _DISPATCHED_BIT
KEYED: Final = 1 << _KEYED_BIT  # batched with the key of the thread: if the table has none, the hit is passed on
KEY_ROWS: Final = 1 << 10
PAGE_SHIFT: Final = 12


@layout
class BreakpointState(ctypes.Structure):
    """What the callback is called with."""

    __slots__ = ()
    callback: Word  # Python's, for what is passed on
    event: Word  # the number of a breakpoint's
    pc: Word  # where the CPU has its PC
    bias: Word  # how far the PC is behind the breakpoint then
    table: Word  # of breakpoints: rows
    table_mask: Word  # the number of its rows less one
    cells: Word  # those of the running CPU
    credit: Word  # the address of the word that credits are added to: instructions that may be executed
    # For hits that are batched.
    next: Word  # where the next record goes
    end: Word  # and where there is no room any more
    read_numbers: Word  # the address of Unicorn's numbers of the registers that are read
    read_count: Word
    read_places: Word  # the address of the addresses of their places in the next record
    read_batch: Word  # the address of uc_reg_read_batch
    cpu: Word  # the number of the running one
    record_size: Word  # in bytes
    places_size: Word  # of the addresses for one record, in bytes
    full: Word  # the callback when there is no room
    # For hits that are dispatched.
    dispatch: Word  # the callback for them
    frame_numbers: Word  # the registers of the frame that are read
    frame_count: Word
    frame_places: Word  # the address of the addresses of their places
    frame_pc: Word  # the address of the PC's place
    stays: Word  # whether the CPU stays where the callback put it
    general: Word  # the address of the registers that are copied
    general_count: Word
    frame: Word  # which begins with these
    # The time of a record is the word at `clock`, less `factor` times the word for credits; if `gettime` is not 0, the
    # host's time is added, which clock_gettime(CLOCK_MONOTONIC) leaves here.
    clock: Word
    factor: Word
    gettime: Word
    seconds: Word
    nanoseconds: Word
    # For records with the key of a thread.
    keys: Word  # the table
    stack_pointer: Word  # where in a record it is, in bytes
    identity: Word  # and a register that identifies what runs
    identity_mask: Word  # the bits of it that count
    # For hits that are batched, again.
    sources: Word  # the address of the addresses of registers that are copied
    source_count: Word
    # For instructions that are counted block by block.
    settle: Word  # the routine for a block that was left; 0: they are not counted so
    budget: Word  # the state that it is called with
    interrupt_bias: Word  # how far the PC is behind an instruction that raised an exception
    open: Word  # the address of the word that says which block has begun
    raised: Word  # the address of a word of 32 bits: the last exception was a software interrupt


@layout
class BreakpointRow(ctypes.Structure):
    """A row of the table."""

    __slots__ = ()
    address: Word  # of the breakpoint
    following: Word  # where the CPU goes on; 0 where the hit is dispatched: where the callback leaves the frame's PC
    target: Word  # a cell, BATCHED or DISPATCHED
    credit: Word  # 1 if the breakpoint, which was counted as an instruction, is followed by the displaced one


@layout
class Record(ctypes.Structure):
    """What a record begins with. Registers that are copied follow, then those that are read."""

    __slots__ = ()
    pc: Word  # as Unicorn has it: behind the breakpoint by the bias
    cpu: Word
    time: Word  # ns
    key: Word  # of the thread


@layout
class KeyRow(ctypes.Structure):
    """A row of the table of threads, which the page of the byte below the stack pointer chooses: what runs has this key
    if all this is so."""

    __slots__ = ()
    low: Word  # the stack pointer is above
    high: Word  # and up to this
    identity: Word  # the identifying register's value
    first_at: Word  # two places of the host's memory
    first: Word  # and their values
    second_at: Word
    second: Word
    key: Word


BREAKPOINTS: Final = Routine(
    "breakpoints",
    {"state": BreakpointState, "row": BreakpointRow, "record": Record, "thread": KeyRow},
    {
        "BATCHED_BIT": _BATCHED_BIT,
        "DISPATCHED_BIT": _DISPATCHED_BIT,
        "KEYED_BIT": _KEYED_BIT,
        "ARGUMENT": (1 << _DISPATCHED_BIT) - 1,
        "HASH": HASH,
        "KEY_ROWS_BITS": log2(KEY_ROWS),
        "KEY_ROWS_MASK": KEY_ROWS - 1,
        "KEY_ROW_SHIFT": log2(ctypes.sizeof(KeyRow)),
        "MONOTONIC": 1,  # CLOCK_MONOTONIC
        "PAGE_SHIFT": PAGE_SHIFT,
        "ROW_SHIFT": log2(ctypes.sizeof(BreakpointRow)),
        "SECOND": 1_000_000_000,  # ns
    },
)
