"""Random numbers for the guest: the same for the same seed, and never more than was asked for."""

from kinst.runtime.machine.devices.virtio.entropy import VirtioEntropy
from tests.runtime.machine.devices.virtio_driver import DATA, NEEDS_RESET, Driver


def numbers(seed: int, size: int) -> bytes:
    guest = Driver(VirtioEntropy(seed), is_pci=False)
    guest.start()
    guest.chain([(DATA, size, True)])
    guest.offer(0)
    guest.bench.wait()
    ((_, written),) = guest.used()
    assert guest.bench.memory.read(DATA + written, 64) == bytes(64)
    return guest.bench.memory.read(DATA, written)


def test_numbers_follow_from_the_seed() -> None:
    assert len(numbers(1, 64)) == 64
    assert numbers(1, 64) == numbers(1, 64) != numbers(2, 64)


def test_a_large_buffer_is_filled_in_part() -> None:
    assert len(numbers(1, 0x1_0000)) == 4096


def test_a_request_without_room_stops_the_device() -> None:
    guest = Driver(VirtioEntropy(1), is_pci=False)
    guest.start()
    guest.chain([(DATA, 4, False)])
    guest.offer(0)
    guest.bench.wait()
    assert guest.read("status") & NEEDS_RESET
