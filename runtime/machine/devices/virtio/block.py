"""A disk as a virtio device (virtio 1.2, 5.2): requests in chains of buffers -> reads and writes of a `Disk`.

    type 4, reserved 4, sector 8        read by the device
    data                                read for writes, written for reads
    status 1                            written

How these are divided into buffers is up to the driver.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Final

from kinst.runtime.machine.devices.virtio.device import Immediate, Work
from kinst.runtime.machine.devices.virtio.split_queue import BrokenQueueError, Chain, pieces
from kinst.runtime.machine.disk import SECTOR, Disk

OK, ERROR, UNSUPPORTED = 0, 1, 2  # status
_HEADER: Final = struct.Struct("<IIQ")
_SEGMENTS, _READ_ONLY, _BLOCK_SIZE, _FLUSHES = 1 << 2, 1 << 5, 1 << 6, 1 << 9  # features
_QUEUE: Final = 256
_IDENTITY_SIZE: Final = 20
_PIECE: Final = 1 << 20  # bytes that are moved at once


class Kind(IntEnum):
    """Types of requests."""

    IN = 0
    OUT = 1
    FLUSH = 4
    GET_ID = 8


class VirtioBlock(Immediate):
    """The model of a disk."""

    identity = 2
    class_code = 0x0100  # storage, SCSI: as in QEMU
    queues = (_QUEUE,)

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.features = _SEGMENTS | _BLOCK_SIZE | _FLUSHES | (_READ_ONLY if disk.is_read_only else 0)
        # capacity in sectors, (size_max), seg_max without header and status, (geometry), blk_size
        self.configuration = struct.pack("<QIIII", disk.size // SECTOR, 0, _QUEUE - 2, 0, SECTOR)

    def serve(self, chain: Chain) -> Work:
        """Serve a request. Raises BrokenQueueError if it is too short for header or status."""
        header, sent = divided(chain.readable, _HEADER.size)
        size = sum(map(len, chain.writable)) - 1
        if sum(map(len, header)) != _HEADER.size or size < 0:
            raise BrokenQueueError(f"a request of {chain.size} bytes")
        asked, status = divided(chain.writable, size)
        kind, _, sector = _HEADER.unpack(b"".join(header))
        try:
            status[0][0] = yield from self._perform(kind, sector * SECTOR, sent, asked)
        except OSError:  # of the host's file
            status[0][0] = ERROR
        return size + 1

    def _perform(self, kind: int, offset: int, sent: list[memoryview], asked: list[memoryview]) -> Work:
        """The status of a request, after it was done. Raises OSError."""
        match kind:
            case Kind.IN if self._is_inside(offset, asked):
                yield from _moved(self._disk.read, offset, asked)
            case Kind.OUT if self._is_inside(offset, sent) and not self._disk.is_read_only:
                yield from _moved(self._disk.write, offset, sent)
            case Kind.FLUSH:
                self._disk.flush()
            case Kind.GET_ID:
                _fill(asked, self._disk.name[:_IDENTITY_SIZE].ljust(_IDENTITY_SIZE, b"\0"))
            case Kind.IN | Kind.OUT:
                return ERROR
            case _:
                return UNSUPPORTED
        return OK

    def _is_inside(self, offset: int, buffers: Iterable[memoryview]) -> bool:
        size = sum(map(len, buffers))
        return not size % SECTOR and offset + size <= self._disk.size


def _moved(
    move: Callable[[int, Sequence[memoryview]], None], offset: int, buffers: Iterable[memoryview]
) -> Iterator[int]:
    """Read or write piece by piece: the bytes of each. Raises OSError."""
    for piece in pieces(buffers, _PIECE):
        move(offset, piece)
        size = sum(map(len, piece))
        yield size
        offset += size


def divided(buffers: Iterable[memoryview], size: int) -> tuple[list[memoryview], list[memoryview]]:
    """The first `size` bytes of buffers, and the others."""
    first, others = list[memoryview](), list[memoryview]()
    for buffer in buffers:
        part = min(size, len(buffer))
        size -= part
        if part:
            first.append(buffer[:part])
        if part < len(buffer):
            others.append(buffer[part:])
    return first, others


def _fill(buffers: Iterable[memoryview], content: bytes) -> None:
    at = 0
    for buffer in buffers:
        part = content[at : at + len(buffer)]
        buffer[: len(part)] = part
        at += len(part)
