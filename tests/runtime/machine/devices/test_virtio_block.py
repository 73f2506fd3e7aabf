"""A disk as a guest's driver uses it: requests, however they are divided, and those that cannot be carried out."""

import struct
from pathlib import Path

import pytest

from kinst.runtime.machine.devices.virtio.block import ERROR, OK, UNSUPPORTED, Kind, VirtioBlock
from kinst.runtime.machine.disk import SECTOR, DiskMode, open_disk
from tests.runtime.machine.devices.virtio_driver import DATA, NEEDS_RESET, Driver

SECTORS = 16
HEADER, STATUS, BUFFER = DATA, DATA + 0x100, DATA + 0x1000


def content(sector: int) -> bytes:
    return bytes((sector,)) * SECTOR


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "a-name-that-is-longer-than-twenty"
    path.write_bytes(b"".join(map(content, range(SECTORS))))
    return path


def guest_of(path: Path, mode: DiskMode = DiskMode.COPY) -> Driver:
    guest = Driver(VirtioBlock(open_disk(path, mode)), is_pci=False)
    guest.start(entries=64)
    return guest


def request(guest: Driver, kind: int, sector: int, data: bytes | int) -> tuple[int, bytes]:
    """Status and data of a request that is sent as Linux does: header, data, status."""
    memory = guest.bench.memory
    memory.write(HEADER, struct.pack("<IIQ", kind, 0, sector))
    memory.write(STATUS, b"\xff")
    size = data if isinstance(data, int) else len(data)
    if isinstance(data, bytes):
        memory.write(BUFFER, data)
    buffers = [(BUFFER, size, isinstance(data, int))] if size else []
    guest.chain([(HEADER, 16, False), *buffers, (STATUS, 1, True)])
    guest.offer(0)
    guest.bench.wait()
    assert len(guest.used()) == 1
    return memory.load(STATUS, 1), memory.read(BUFFER, size)


def test_the_driver_is_told_the_capacity_and_the_largest_request(image: Path) -> None:
    guest = guest_of(image)
    assert guest.read("configuration") == SECTORS
    assert guest.read("configuration", at=12) & 0xFFFF_FFFF == 254
    assert guest.read("configuration", at=20) & 0xFFFF_FFFF == SECTOR
    assert not guest.offered() & 1 << 5
    assert guest_of(image, DiskMode.READ_ONLY).offered() & 1 << 5


def test_what_is_written_is_read_back(image: Path) -> None:
    guest = guest_of(image)
    assert request(guest, Kind.IN, 3, 2 * SECTOR) == (OK, content(3) + content(4))
    new = content(77) + content(78)
    assert request(guest, Kind.OUT, 14, new)[0] == OK
    assert request(guest, Kind.IN, 13, 3 * SECTOR) == (OK, content(13) + new)
    assert request(guest, Kind.FLUSH, 0, b"") == (OK, b"")


def test_how_a_request_is_divided_does_not_matter(image: Path) -> None:
    guest = guest_of(image)
    guest.bench.memory.write(HEADER, struct.pack("<IIQ", Kind.OUT, 0, 5) + content(9))
    guest.chain([(HEADER, 3, False), (HEADER + 3, 14, False), (HEADER + 17, SECTOR - 1, False), (STATUS, 1, True)])
    guest.offer(0)
    guest.bench.wait()
    guest.bench.memory.write(HEADER, struct.pack("<IIQ", Kind.IN, 0, 5))
    pieces = [(BUFFER + at, 1, True) for at in range(40)]
    guest.chain([(HEADER, 16, False), *pieces, (BUFFER + 40, SECTOR - 40 + 1, True)])  # the status is its last byte
    guest.offer(0)
    guest.bench.wait()
    assert guest.used() == [(0, 1), (0, SECTOR + 1)]
    assert guest.bench.memory.read(BUFFER, SECTOR + 1) == content(9) + bytes((OK,))


def test_a_disk_has_a_name(image: Path) -> None:
    assert request(guest_of(image), Kind.GET_ID, 0, 20) == (OK, b"a-name-that-is-longe")


@pytest.mark.parametrize(
    ("kind", "sector", "data", "status"),
    [
        (Kind.IN, SECTORS, SECTOR, ERROR),
        (Kind.IN, SECTORS - 1, 2 * SECTOR, ERROR),
        (Kind.OUT, SECTORS - 1, bytes(2 * SECTOR), ERROR),
        (Kind.OUT, (1 << 64) - 1, bytes(SECTOR), ERROR),
        (Kind.IN, 0, SECTOR - 1, ERROR),
        (Kind.OUT, 0, bytes(SECTOR + 1), ERROR),
        (Kind.IN, 0, 0, OK),
        (11, 0, bytes(16), UNSUPPORTED),
        (0xFFFF_FFFF, 0, 20, UNSUPPORTED),
    ],
)
def test_requests_that_cannot_be_carried_out_change_nothing(
    image: Path, kind: int, sector: int, data: bytes | int, status: int
) -> None:
    guest = guest_of(image)
    assert request(guest, kind, sector, data)[0] == status
    assert request(guest, Kind.IN, 0, SECTORS * SECTOR) == (OK, image.read_bytes())


def test_a_read_only_disk_is_not_written(image: Path) -> None:
    guest = guest_of(image, DiskMode.READ_ONLY)
    assert request(guest, Kind.OUT, 0, content(99))[0] == ERROR
    assert request(guest, Kind.IN, 0, SECTOR) == (OK, content(0))


@pytest.mark.parametrize("mode", DiskMode)
def test_an_error_of_the_host_is_one_of_the_disk(image: Path, mode: DiskMode) -> None:
    guest = guest_of(image, mode)
    with image.open("r+b") as file:
        file.truncate(SECTOR)
    assert request(guest, Kind.IN, 0, 2 * SECTOR)[0] == ERROR
    with image.open("r+b") as file:
        file.truncate(SECTORS * SECTOR)
    assert request(guest, Kind.IN, 0, 2 * SECTOR) == (OK, content(0) + bytes(SECTOR))


@pytest.mark.parametrize(
    "buffers", [[(HEADER, 15, False), (STATUS, 1, True)], [(HEADER, 16, False)], [(STATUS, 1, True)]]
)
def test_a_request_without_header_or_status_stops_the_device(image: Path, buffers: list[tuple[int, int, bool]]) -> None:
    guest = guest_of(image)
    guest.chain(buffers)
    guest.offer(0)
    guest.bench.wait()
    assert guest.read("status") & NEEDS_RESET
