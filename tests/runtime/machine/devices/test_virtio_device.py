"""Virtio devices as their drivers see them, in slots and on a PCI bus: progress, queues, and what guests do wrong."""

from dataclasses import dataclass, field

import pytest

from kinst.runtime.machine.devices.virtio.device import Immediate, Work
from kinst.runtime.machine.devices.virtio.split_queue import Chain, pieces
from tests.runtime.machine.devices.virtio_driver import (
    ACKNOWLEDGED,
    DATA,
    DEVICE,
    DRIVER,
    DRIVER_OK,
    FEATURES_OK,
    HAS_DRIVER,
    INDIRECT,
    LATENCY,
    NEEDS_RESET,
    NEXT,
    RAM,
    RAM_SIZE,
    TABLE,
    VERSION_1,
    WRITE,
    Driver,
)

NOWHERE = RAM + RAM_SIZE
TRANSPORTS = pytest.mark.parametrize("is_pci", [False, True], ids=["slot", "pci"])


@dataclass
class Echo(Immediate):
    """A model that writes what it reads, as far as there is room."""

    identity: int = 42
    class_code: int = 0x00FF
    features: int = 1 << 5
    configuration: bytes = bytes(range(1, 7))
    queues: tuple[int, ...] = (8,)
    seen: list[bytes] = field(default_factory=list)

    def serve(self, chain: Chain) -> Work:
        text = b""
        for piece in pieces(chain.readable, 1 << 20):
            text += b"".join(piece)
            yield sum(map(len, piece))
        self.seen.append(text)
        written = 0
        for buffer in chain.writable:
            part = text[written : written + len(buffer)]
            buffer[: len(part)] = part
            written += len(part)
        return written


def driver(*, is_pci: bool) -> tuple[Driver, Echo]:
    model = Echo()
    return Driver(model, is_pci=is_pci), model


@TRANSPORTS
def test_features_are_what_both_have_and_the_driver_must_be_modern(*, is_pci: bool) -> None:
    guest, _ = driver(is_pci=is_pci)
    assert guest.offered() == 1 << 5 | 1 << 28 | VERSION_1
    agreed = ACKNOWLEDGED | HAS_DRIVER | FEATURES_OK
    assert guest.negotiate(VERSION_1 | 1 << 5) == agreed
    assert guest.negotiate(1 << 5) == agreed & ~FEATURES_OK  # a driver from before 1.0
    assert guest.negotiate(VERSION_1 | 1 << 6) == agreed & ~FEATURES_OK
    guest.write("status", 0)
    assert guest.read("status") == 0


@TRANSPORTS
def test_the_configuration_space_ends(*, is_pci: bool) -> None:
    guest, _ = driver(is_pci=is_pci)
    assert guest.read("configuration") == 0x0000_0605_0403_0201
    assert guest.read("configuration", at=0x30) == 0


@TRANSPORTS
def test_a_chain_is_served_some_time_after_the_notification(*, is_pci: bool) -> None:
    guest, model = driver(is_pci=is_pci)
    guest.start()
    guest.bench.memory.write(DATA, b"abcdef")
    guest.chain([(DATA, 2, False), (DATA + 2, 4, False), (DATA + 0x100, 3, True), (DATA + 0x200, 9, True)], first=3)
    guest.offer(3)
    guest.bench.wait(LATENCY - 1)
    assert (guest.used(), guest.bench.line.level) == ([], False)
    guest.bench.wait(1)
    assert (guest.used(), model.seen) == ([(3, 6)], [b"abcdef"])
    assert guest.bench.memory.read(DATA + 0x100, 3) + guest.bench.memory.read(DATA + 0x200, 3) == b"abcdef"
    assert guest.bench.line.level


@TRANSPORTS
def test_the_interrupt_is_there_until_it_is_acknowledged(*, is_pci: bool) -> None:
    guest, _ = driver(is_pci=is_pci)
    guest.start()
    guest.chain([(DATA, 4, False)])
    guest.offer(0)
    guest.bench.wait()
    assert guest.bench.line.level
    assert guest.read("interrupts") == 1
    if not is_pci:  # there reading it is enough
        guest.write("interrupts", 1, at=4)
    assert not guest.bench.line.level
    guest.bench.memory.store(DRIVER, 2, 1)  # the driver polls
    guest.offer(0)
    guest.bench.wait()
    assert (len(guest.used()), guest.bench.line.level) == (2, False)


@TRANSPORTS
def test_rings_begin_again_behind_their_last_entry(*, is_pci: bool) -> None:
    guest, model = driver(is_pci=is_pci)
    guest.start(entries=2)
    guest.chain([(DATA, 4, False)])
    guest.chain([(DATA, 4, False)], first=1)
    for _ in range(5):
        guest.offer(0, 1)
        guest.bench.wait()
        assert guest.used() == [(0, 0), (1, 0)]
    assert len(model.seen) == 10


@TRANSPORTS
def test_a_table_of_its_own_follows_descriptors(*, is_pci: bool) -> None:
    guest, model = driver(is_pci=is_pci)
    guest.start()
    guest.bench.memory.write(DATA, b"abcdef")
    guest.describe(0, DATA, 3, NEXT, 5)
    guest.describe(5, DATA + 0x800, 32, INDIRECT)
    guest.chain([(DATA + 3, 3, False), (DATA + 0x100, 6, True)], table=DATA + 0x800)
    guest.offer(0)
    guest.bench.wait()
    assert (guest.used(), model.seen) == ([(0, 6)], [b"abcdef"])


@TRANSPORTS
def test_much_is_done_in_parts_so_that_the_guest_gets_its_turn(*, is_pci: bool) -> None:
    guest, _ = driver(is_pci=is_pci)
    guest.start()
    megabyte = [(RAM, RAM_SIZE, False)] * 5
    guest.chain(megabyte)
    guest.offer(0, 0, 0)
    for count in (0, 1, 1, 1, 0):  # four megabytes at a time
        guest.bench.wait()
        assert len(guest.used()) == count


@TRANSPORTS
def test_nothing_happens_before_the_driver_is_ready(*, is_pci: bool) -> None:
    guest, model = driver(is_pci=is_pci)
    guest.start()
    guest.write("status", 0)
    guest.chain([(DATA, 4, False)])
    guest.offer(0)
    guest.bench.wait()
    assert (model.seen, guest.read("status"), guest.read("ready")) == ([], 0, 0)


def broken(guest: Driver) -> bool:
    """Whether the device asks for a reset, once it has looked; and works again after one."""
    guest.bench.wait()
    is_broken = guest.read("status") & NEEDS_RESET and guest.bench.line.level and guest.read("interrupts") & 2
    guest.start()
    guest.chain([(DATA, 4, False)])
    guest.offer(0)
    guest.bench.wait()
    return bool(is_broken) and len(guest.used()) == 1


INSIDE = DATA  # a table besides the queue's own
# Descriptors (table, index, address, size, flags, next), and the heads that are offered
WRONG: dict[str, tuple[list[tuple[int, int, int, int, int, int]], tuple[int, ...]]] = {
    "a head beyond the table": ([], (8,)),
    "a next beyond the table": ([(TABLE, 0, DATA, 4, NEXT, 9)], (0,)),
    "a loop": ([(TABLE, 0, DATA, 4, NEXT, 0)], (0,)),
    "more chains than entries": ([(TABLE, 0, DATA, 4, 0, 0)], (0,) * 9),
    "an empty buffer": ([(TABLE, 0, DATA, 0, 0, 0)], (0,)),
    "a buffer beyond memory": ([(TABLE, 0, NOWHERE - 2, 4, 0, 0)], (0,)),
    "a buffer around the end of addresses": ([(TABLE, 0, (1 << 64) - 2, 4, WRITE, 0)], (0,)),
    "a buffer in a hole": ([(TABLE, 0, 0x1000, 4, WRITE, 0)], (0,)),
    "to be read behind to be written": ([(TABLE, 0, DATA, 4, WRITE | NEXT, 1), (TABLE, 1, DATA, 4, 0, 0)], (0,)),
    "a table that goes on": ([(TABLE, 0, INSIDE, 16, INDIRECT | NEXT, 1)], (0,)),
    "a table of no entries": ([(TABLE, 0, INSIDE, 0, INDIRECT, 0)], (0,)),
    "a table of half an entry": ([(TABLE, 0, INSIDE, 24, INDIRECT, 0)], (0,)),
    "a table beyond memory": ([(TABLE, 0, NOWHERE - 16, 128, INDIRECT, 0)], (0,)),
    "a table in a table": ([(TABLE, 0, INSIDE, 16, INDIRECT, 0), (INSIDE, 0, INSIDE, 16, INDIRECT, 0)], (0,)),
    "a table that is longer than the queue": (
        [(TABLE, 0, INSIDE, 16 * 9, INDIRECT, 0), *((INSIDE, at, RAM, 4, NEXT, at + 1) for at in range(9))],
        (0,),
    ),
}


@TRANSPORTS
@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_queue_stops_the_device_until_it_is_reset(what: str, *, is_pci: bool) -> None:
    guest, _ = driver(is_pci=is_pci)
    guest.start()
    descriptors, heads = WRONG[what]
    for table, index, address, size, flags, following in descriptors:
        guest.describe(index, address, size, flags, following, table)
    guest.offer(*heads)
    assert broken(guest)


@TRANSPORTS
@pytest.mark.parametrize("area", ["table", "driver", "device"])
def test_a_queue_that_is_nowhere_stops_the_device(area: str, *, is_pci: bool) -> None:
    guest, _ = driver(is_pci=is_pci)
    areas = {"table": TABLE, "driver": DRIVER, "device": DEVICE} | {area: 0xFFFF_FFFF_FFFF_FF00}
    guest.start(**areas)
    guest.chain([(DATA, 4, False)])
    guest.offer(0)
    assert broken(guest)


@TRANSPORTS
def test_a_queue_that_is_not_there_is_nothing(*, is_pci: bool) -> None:
    guest, _ = driver(is_pci=is_pci)
    guest.start()
    guest.write("queue", 7)
    assert (guest.read("maximum"), guest.read("ready")) == (0, 0)
    guest.write("size", 4)
    guest.write("ready", 1)
    guest.write("notify", 7)
    guest.bench.wait()
    assert not guest.read("status") & NEEDS_RESET


@TRANSPORTS
def test_a_queue_that_is_ready_stays_as_it_is_and_sizes_are_powers_of_two(*, is_pci: bool) -> None:
    guest, model = driver(is_pci=is_pci)
    for size in (0, 3, 16, 0x8000):
        guest.write("size", size)  # none of these can be
    guest.start(entries=8)
    guest.write("size", 2)
    guest.write("table", 0)
    guest.chain([(DATA, 4, False)])
    guest.offer(0)
    guest.bench.wait()
    assert len(model.seen) == 1
    assert guest.read("status") & (DRIVER_OK | NEEDS_RESET) == DRIVER_OK
