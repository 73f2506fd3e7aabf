"""The state of the callback for TLB misses, and the rows in which answers are kept."""

import ctypes
from typing import Annotated, Final

from kinst.runtime.engine.host.fields import HASH, Half, Word, layout, log2
from kinst.runtime.engine.host.routine import Routine

ROWS: Final = 1 << 14
MOST_REGISTERS: Final = 8
MOST_WORDS: Final = 14  # that an answer may come from; what comes from more is not kept


@layout
class ComparedRegister(ctypes.Structure):
    """A register that answers depend on."""

    __slots__ = ()
    at: Word  # where its value is read to
    bits: Word  # which bits of it count
    value: Word  # these bits, for the last miss


@layout
class WalkState(ctypes.Structure):
    """What the callback is called with."""

    __slots__ = ()
    callback: Word  # Python's
    is_off: Word  # whether Python's is called in any case
    read: Word  # the address of uc_reg_read_batch
    numbers: Word  # the registers that it reads: the address of Unicorn's numbers
    buffers: Word  # where it puts them: the address of addresses
    count: Word  # how many they are
    table: Word  # the rows
    row: Word  # the address of the row for this miss; 0: nobody keeps its answer
    key: Word  # and its key
    raised: Word  # the number of the register that is raised while others are read; 0: none
    write: Word  # the address of uc_reg_write
    high: Word  # the two values that are written
    low: Word
    registers: Annotated["ctypes.Array[ComparedRegister]", ComparedRegister * MOST_REGISTERS]
    asks: Word  # whether somebody only asks for an answer that is kept
    answer: Word  # then it comes here, and there is no translation for Unicorn


@layout
class Compared(ctypes.Structure):
    """A word that an answer came from."""

    __slots__ = ()
    at: Word  # in the host's memory
    value: Word


@layout
class AnswerRow(ctypes.Structure):
    """A row of the table: an answer."""

    __slots__ = ()
    key: Word  # the page's address, the access in bits 1:0, and bit 2
    physical: Word  # what the page is translated to
    permissions: Half
    count: Half  # of the words that the answer came from
    words: Annotated["ctypes.Array[Compared]", Compared * MOST_WORDS]


ROW_SIZE: Final = 1 << (ctypes.sizeof(AnswerRow) - 1).bit_length()  # bytes from one to the next


@layout
class TlbEntry(ctypes.Structure):
    """Unicorn's struct uc_tlb_entry."""

    __slots__ = ()
    physical: Word
    permissions: Half


WALKS: Final = Routine(
    "walks",
    {
        "state": WalkState,
        "register": ComparedRegister,
        "row": AnswerRow,
        "word": Compared,
        "entry": TlbEntry,
    },
    {
        "HASH": HASH,
        "HASH_SHIFT": 64 - log2(ROWS),
        "ROW_SHIFT": log2(ROW_SIZE),
    },
)
