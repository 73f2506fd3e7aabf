"""DWC2 with an empty port beside QEMU's: the same accesses, drawn at random, read the same."""

from random import Random

import pytest

from kinst.runtime.machine.devices.usb.dwc2 import Dwc2
from tests.runtime.live.qemus import needs
from tests.runtime.machine.devices.bench import Wire
from tests.runtime.machine.devices.qtest import qtest

BASE = 0x3F98_0000
GLOBAL = [*range(0, 0x70, 4), 0x100, 0x400, 0x404, 0x408, 0x410, 0x414, 0x440, 0xE00, 0xE04, 0x200, 0x900]
CHANNELS = [0x500 + 0x20 * channel + at for channel in (0, 3, 7) for at in range(0, 0x20, 4)]
HFNUM, HAINTMSK, HPRT = 0x408, 0x418, 0x440
# QEMU counts down in a first frame that does not end, and lets a guest set what only the port says.
IGNORED = {HFNUM: 0xFFFF_0000}
WRITABLE = {HPRT: ~0x0006_0C11}


@pytest.mark.parametrize("count", [300, pytest.param(3000, marks=pytest.mark.long)])
def test_it_reads_what_qemu_s_does(count: int) -> None:
    needs("qemu-system-aarch64")
    random, ours = Random(count), Dwc2(Wire())
    with qtest("raspi3b") as theirs:
        ours.write(HAINTMSK, 4, 0xFFFF)  # QEMU's does not look again at what is pending when this is written
        theirs.write(BASE + HAINTMSK, 4, 0xFFFF)
        for step in range(count):
            at = random.choice(GLOBAL if random.random() < 0.5 else CHANNELS)
            if random.random() < 0.6:
                value = random.getrandbits(32) & random.choice((-1, random.getrandbits(32))) & WRITABLE.get(at, -1)
                ours.write(at, 4, value)
                theirs.write(BASE + at, 4, value)
            for seen in (at, 0x014, 0x414):
                mine, other = (one | IGNORED.get(seen, 0) for one in (ours.read(seen, 4), theirs.read(BASE + seen, 4)))
                assert mine == other, f"{seen:#x} after {step} steps, the last at {at:#x}"


def test_its_interrupt_is_a_halted_channel_that_is_let_through() -> None:
    line = Wire()
    device = Dwc2(line)
    device.write(0x50C, 4, 2)  # of the channel,
    device.write(0x418, 4, 1)  # of channels,
    device.write(0x018, 4, 1 << 25)  # of all
    device.write(0x500, 4, 1 << 31)
    device.write(0x008, 4, 1)
    assert not line.level
    device.write(0x500, 4, 1 << 31 | 1 << 30)
    assert line.level
    device.write(0x508, 4, 2)
    assert not line.level
