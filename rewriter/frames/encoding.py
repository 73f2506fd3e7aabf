"""How to unwind from trampolines -> call frame information in its two forms, and the sorted table (LSB Core 10.6).

.eh_frame       loaded: addresses are distances, so that the image may be anywhere
.debug_frame    for debuggers: link addresses
the table       what PT_GNU_EH_FRAME leads to. An unwinder sees one a file, so that ours has the original's entries,
                too: each leads to the record that it always led to
"""

import struct
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.frames.states import DATA_FACTOR, State, signed, transition, unsigned
from kinst.targets.errors import PlacementError
from kinst.targets.values import dataclass

_LENGTH: Final = 4
_SHORT, _LONG = 17, 24  # bytes of a record before its instructions, in the two forms
_PC_RELATIVE: Final = 0x1B  # DW_EH_PE_pcrel | DW_EH_PE_sdata4
TABLE_HEAD: Final = bytes((1, _PC_RELATIVE, 0x03, 0x3B))  # version, pointer, udata4 count, datarel | sdata4 entries
HEAD_SIZE: Final = 12
_MOST: Final = 1 << 31
_BARE: Final = State(0, 0)


@dataclass(frozen=True, slots=True)
class Common:
    """What records have in common. `start`: the rules that they begin with, from which each record's own continue."""

    code_factor: int
    return_register: int
    is_signal: bool
    has_key_b: bool
    start: State

    def body(self, *, is_loaded: bool) -> bytes:
        """From the version on."""
        letters = b"S" * self.is_signal + b"B" * self.has_key_b
        data = b""
        if is_loaded:
            letters, data = b"zR" + letters, unsigned(1) + bytes((_PC_RELATIVE,))
        factors = unsigned(self.code_factor) + signed(DATA_FACTOR) + unsigned(self.return_register)
        version = 1 if is_loaded else 3
        return bytes((version,)) + letters + b"\0" + factors + data + transition(_BARE, self.start)


@dataclass(frozen=True, slots=True)
class OldTable:
    """The sorted table of the original: address and record of each entry, ascending; and what it says where records
    begin."""

    address: NDArray[np.uint64]
    record: NDArray[np.uint64]
    records: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """Records and table for a given address."""

    records: bytes
    table: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """One record for each stretch of trampolines: columns, in address order. `code` has their instructions back to
    back, that of a record from its `first` on. `old`: None, the original has no table, and one is made; `is_loaded`:
    the table can be replaced, so that there is something to load."""

    commons: Sequence[Common]
    common: NDArray[np.int64]
    address: NDArray[np.uint64]
    size: NDArray[np.uint64]
    code: NDArray[np.uint8]
    first: NDArray[np.int64]
    old: OldTable | None
    is_loaded: bool

    @property
    def loaded_size(self) -> int:
        """Bytes of what is loaded: records, and the table after them."""
        if not self.is_loaded:
            return 0
        entries = len(self.address) + (0 if self.old is None else len(self.old.address))
        return self._size() + _LENGTH + HEAD_SIZE + 8 * entries

    def loaded(self, address: int) -> Loaded:
        """What is loaded at an address.

        Raises:
            PlacementError: it is too far from the code.
        """
        content, starts = self._records(address, 0)
        content += bytes(_LENGTH)  # a length of 0 ends it
        at = address + len(content)
        records = self.address, np.uint64(address) + starts.astype(np.uint64)
        known = (np.zeros(0, np.uint64),) * 2 if self.old is None else (self.old.address, self.old.record)
        pairs = [np.concatenate(pair) for pair in zip(known, records, strict=True)]
        order = np.argsort(pairs[0], kind="stable")
        entries = np.stack([_distances(column[order], at) for column in pairs], axis=1)
        pointer = (address if self.old is None else self.old.records) - (at + len(TABLE_HEAD))
        head = TABLE_HEAD + struct.pack("<iI", pointer, len(order))
        return Loaded(content, head + entries.tobytes())

    def debug(self, offset: int) -> bytes:
        """The same as .debug_frame, at an offset of the section."""
        return self._records(None, offset)[0]

    def _size(self) -> int:
        """Bytes of the records in the form that is loaded."""
        sizes = _SHORT + np.diff(self.first)
        commons = sum(_padded(len(one.body(is_loaded=True)) + 8, 4) for one in self.commons)
        return int((sizes + -sizes % 4).sum()) + commons

    def _records(self, address: int | None, offset: int) -> tuple[bytes, NDArray[np.int64]]:
        """The records, and where each begins; `address`: of the section, None: addresses are link addresses."""
        is_loaded = address is not None
        unit, commons, starts = (4 if is_loaded else 8), bytearray(), list[int]()
        for one in self.commons:
            starts.append(len(commons))
            body = one.body(is_loaded=is_loaded)
            size = _padded(len(body) + 8, unit)
            identity = 0 if is_loaded else 0xFFFFFFFF
            commons += struct.pack("<II", size - _LENGTH, identity) + body.ljust(size - 8, b"\0")
        head = self._heads(address, offset, np.array(starts, np.int64))
        length = np.diff(self.first)
        sizes = head.shape[1] + length
        sizes += -sizes % unit
        begins = np.cumsum(sizes) - sizes
        head[:, :_LENGTH] = (sizes - _LENGTH).astype("<u4")[:, None].view(np.uint8)
        if is_loaded:
            self._point(head, len(commons) + begins, np.array(starts, np.int64), int(address or 0))
        content = np.zeros(int(sizes.sum()), np.uint8)
        content[begins[:, None] + np.arange(head.shape[1])] = head
        inside = np.arange(len(self.code)) - np.repeat(self.first[:-1], length)
        content[np.repeat(begins + head.shape[1], length) + inside] = self.code
        return bytes(commons) + content.tobytes(), len(commons) + begins

    def _heads(self, address: int | None, offset: int, starts: NDArray[np.int64]) -> NDArray[np.uint8]:
        """(n, bytes) of each record: length, its `Common`, its address, its size, and no more data."""
        if address is not None:
            head = np.zeros((len(self.address), _SHORT), np.uint8)
            head[:, 12:16] = self.size.astype("<u4")[:, None].view(np.uint8)
            return head
        head = np.zeros((len(self.address), _LONG), np.uint8)
        head[:, 4:8] = (offset + starts[self.common]).astype("<u4")[:, None].view(np.uint8)
        head[:, 8:16] = self.address.astype("<u8")[:, None].view(np.uint8)
        head[:, 16:24] = self.size.astype("<u8")[:, None].view(np.uint8)
        return head

    def _point(
        self, head: NDArray[np.uint8], begins: NDArray[np.int64], starts: NDArray[np.int64], address: int
    ) -> None:
        """A record points back to its `Common`, and to its code."""
        back = begins + 4 - starts[self.common]
        head[:, 4:8] = back.astype("<u4")[:, None].view(np.uint8)
        away = (self.address - np.uint64(address)).view(np.int64) - begins - 8
        head[:, 8:12] = _narrow(away)[:, None].view(np.uint8)


def _padded(size: int, unit: int) -> int:
    return size + -size % unit


def _distances(column: NDArray[np.uint64], at: int) -> NDArray[np.int32]:
    return _narrow((column - np.uint64(at)).view(np.int64))


def _narrow(away: NDArray[np.int64]) -> NDArray[np.int32]:
    if ((away < -_MOST) | (away >= _MOST)).any():
        raise PlacementError("call frames: the trampolines are 2 GiB and more from the code: name another place")
    return away.astype("<i4")
