"""The state of the hook at every block of code: blocks that begin or end at marks are looked at; the run may end; and a
block that begins at a site is counted, if the run does not end there. A block that has a site behind its first
instruction ends the run, too: what would be executed there could not be counted."""

import ctypes
from typing import Final

from kinst.runtime.engine.host.fields import HASH, Half, Word, layout, log2
from kinst.runtime.engine.host.routine import Routine

SLACK: Final = 1 << 13  # addresses: no block is longer
MARKS_SIZE: Final = 1 << 20  # addresses that differ by a multiple of it share a mark
NOW, WHEN_UNMASKED = 1, 2  # when a run is to end


@layout
class BlockState(ctypes.Structure):
    """What the hook is called with."""

    __slots__ = ()
    # These two are one comparison where there is nothing to do.
    stopping: Half  # whether the run is to end, NOW or WHEN_UNMASKED
    marked: Half  # whether there are marks
    trampolines: Word  # their address
    trampolines_size: Word
    stop: Word  # the address of uc_emu_stop
    has_stopped: Word  # whether the hook called it
    # To end the run where interrupts are not masked.
    is_first: Word  # whether the first block is still to come
    read: Word  # the address of uc_reg_read
    register: Word  # Unicorn's number of the register that holds the mask
    value: Word  # where it is read to
    mask: Word  # the mask's bits in it
    unmasking: Word  # and those of them that mean "not masked" when they are 0
    # To look at blocks.
    marks: Word  # the address of a byte for each address that may be marked
    looks_at_next: Word  # whether the next block is looked at in any case
    look: Word  # the function that looks
    # The block before, while there is something to do: one that comes again in a trampoline is an iteration.
    last: Word
    size: Word  # of the last block where there was something else to do
    # To cover: these two side by side.
    covered: Word  # the function that is called for each block that runs; 0: none
    coverage: Word  # and its state
    # To count.
    bits: Word  # the address of a bit for each address from the first one on, 1 at a site; 0: nothing is counted
    span: Word  # how many addresses these are
    first: Word  # the first of them, at one place where the code is
    second: Word  # and at another
    rows: Word  # the table by distance from there
    rows_mask: Word  # the number of its rows less one
    cells: Word  # those of the running CPU
    inside: Word  # the block that ended the run because of a site inside it


@layout
class SiteRow(ctypes.Structure):
    """A row of the table: where a block that is counted begins."""

    __slots__ = ()
    distance: Word  # from the first address
    cell: Half  # its offset in bytes
    lead: Half  # how many bytes before the site control comes to it


BLOCKS: Final = Routine(
    "blocks",
    {"state": BlockState, "row": SiteRow},
    {
        "HASH": HASH,
        "MARKS_MASK": MARKS_SIZE - 1,
        "NOW": NOW,
        "ROW_SHIFT": log2(ctypes.sizeof(SiteRow)),
    },
)
