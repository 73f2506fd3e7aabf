"""Both SD hosts of the Raspberry Pi beside QEMU's: the same commands and data, drawn at random, give the same."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from kinst.runtime.machine.device import Device
from kinst.runtime.machine.devices.arm.bcm2835_gpio import Bcm2835Gpio
from kinst.runtime.machine.devices.sd.bcm2835_sdhost import Bcm2835SdHost
from kinst.runtime.machine.devices.sd.card import SdCard
from kinst.runtime.machine.devices.sd.sdhci import Sdhci
from kinst.runtime.machine.devices.sd.socket import Socket
from kinst.runtime.machine.devices.usb.dwc2 import Dwc2
from kinst.runtime.machine.disk import DiskMode, open_disk
from tests.runtime.live.qemus import needs
from tests.runtime.machine.devices.bench import Wire
from tests.runtime.machine.devices.qtest import Qtest, qtest

GPIO, SDHOST, SDHCI = 0x3F20_0000, 0x3F20_2000, 0x3F30_0000
CAPABILITIES = 0x0521_34B4
SIZES = {"no card": 0, "64 MiB": 64 << 20, "4 GiB": 4 << 30}
GATED = {("sdhost", "64 MiB"): 12, ("sdhci", "4 GiB"): 6}  # commands: each access is a question to QEMU
RCA = 0x4567 << 16
START = ((0, 0), (8, 0x1AA), (55, 0), (41, 0x40FF_8000), (2, 0), (3, 0), (9, RCA), (10, RCA), (7, RCA))

# Bits of the response that are not QEMU's: who made the card, the classes of commands that it knows, its CRC.
ALL = dict.fromkeys(range(0x10, 0x20, 4), 0xFFFF_FFFF)
UNLIKE = {2: ALL, 10: ALL, 9: {0x18: 0xFFF0_0000, 0x10: 0x8000_00FE}}
UNLIKE_SHIFTED = {2: ALL, 10: ALL, 9: {0x18: 0x00FF_F000, 0x10: 0x0080_0000}}  # without CRC


@dataclass
class Pair:
    """Ours and QEMU's, as one: what is read is compared."""

    ours: list[tuple[int, Device]]
    theirs: Qtest
    seen: int = 0

    def _find(self, address: int) -> tuple[Device, int]:
        return next((device, address - at) for at, device in self.ours if 0 <= address - at < device.size)

    def read(self, address: int, size: int = 4, ignored: int = 0) -> int:
        device, offset = self._find(address)
        mine, other = device.read(offset, size) | ignored, self.theirs.read(address, size) | ignored
        assert mine == other, f"{address:#x}: {mine:#x} here, {other:#x} there, after {self.seen} equal ones"
        self.seen += 1
        return mine

    def write(self, address: int, value: int, size: int = 4) -> None:
        device, offset = self._find(address)
        device.write(offset, size, value)
        self.theirs.write(address, size, value)


@contextmanager
def board(size: int, folder: Path) -> Iterator[Pair]:
    needs("qemu-system-aarch64")
    words: tuple[str, ...] = ()
    card = None
    if size:
        for name in ("ours", "theirs"):
            with (folder / name).open("wb") as file:
                file.write(Random(size).randbytes(1 << 16))
                file.truncate(size)
        card = SdCard(open_disk(folder / "ours", DiskMode.READ_WRITE))
        words = ("-drive", f"if=sd,format=raw,file={folder / 'theirs'}")
    socket = Socket(card)
    devices: list[tuple[int, Device]] = [
        (SDHOST, Bcm2835SdHost(socket, Wire())),
        (SDHCI, Sdhci(socket, Wire(), CAPABILITIES, has_pending_insert=True)),
        (GPIO, Bcm2835Gpio(socket)),
    ]
    with qtest("raspi3b", *words) as theirs:
        yield Pair(devices, theirs)


def to_sdhost(pair: Pair) -> None:
    pair.write(GPIO + 0x10, 0x2400_0000)
    pair.write(GPIO + 0x14, 0x924)


def drawn(random: Random) -> tuple[int, int, int, int]:
    """A command of data transfer: its index, argument, and the size of blocks and their number, if data comes."""
    blocks = random.randrange(1, 4)
    place = random.randrange(1 << 7)
    return random.choice(
        (
            (13, RCA, 0, 0),
            (17, place, 512, 1),
            (18, place, 512, blocks),
            (24, place, 512, 1),
            (25, place, 512, blocks),
            (16, random.choice((512, 600)), 0, 0),
            (random.choice((1, 5, 21, 52)), random.getrandbits(32), 0, 0),
            (55, RCA, 0, 0),
            (12, 0, 0, 0),
            (7, random.choice((RCA, RCA, RCA, 0)), 0, 0),
            (55, RCA, 0, 0),
        )
    )


def after_55(random: Random) -> tuple[int, int, int, int]:
    """A command of an application's. Only what sends has data: with nothing to read, QEMU's SDHCI writes."""
    return random.choice(
        ((51, 0, 8, 1), (13, 0, 64, 1), (6, 2, 0, 0), (6, 0, 0, 0), (42, 0, 0, 0), (23, 1, 0, 0), (22, 0, 4, 1))
    )


class SdHost:
    """A driver of `bcm2835-sdhost`."""

    def __init__(self, pair: Pair, random: Random) -> None:
        self.pair, self.random, self.last = pair, random, 0
        to_sdhost(pair)

    def command(self, index: int, argument: int, size: int, blocks: int) -> None:
        pair, self.last = self.pair, index
        pair.write(SDHOST + 0x38, self.random.choice((0x40A, 0x51A, 0)))
        if size:
            pair.write(SDHOST + 0x3C, size)
            pair.write(SDHOST + 0x50, blocks)
        writes = index in (24, 25)
        flags = 0 if not size else 0x80 if writes else 0x40
        flags |= {2: 0x200, 9: 0x200, 10: 0x200, 0: 0x400, 7: 0x800, 12: 0x800}.get(index, 0)
        pair.write(SDHOST + 4, argument)
        pair.write(SDHOST, 0x8000 | index | flags)
        self.look()
        for _ in range(size * blocks // 4):
            if writes:
                pair.write(SDHOST + 0x40, self.random.getrandbits(32))
            else:
                pair.read(SDHOST + 0x40)
            if self.random.random() < 0.05:
                self.look()
        self.look()
        pair.write(SDHOST + 0x20, self.random.choice((0x7F8, 0x7F8, 0x40, 0x7F9)))

    def look(self) -> None:
        for at in (0, 0x10, 0x14, 0x18, 0x1C, 0x20, 0x30, 0x34, 0x3C, 0x50):
            self.pair.read(SDHOST + at, ignored=UNLIKE.get(self.last, {}).get(at, 0))


class SdhciHost:
    """A driver of `sdhci`."""

    def __init__(self, pair: Pair, random: Random) -> None:
        self.pair, self.random, self.last = pair, random, 0
        for at, value, size in ((0x2F, 1, 1), (0x2C, 5, 2), (0x29, 0xF, 1), (0x34, 0xFFFF_FFFF, 4)):
            pair.write(SDHCI + at, value, size)

    def command(self, index: int, argument: int, size: int, blocks: int) -> None:
        pair, random, self.last = self.pair, self.random, index
        pair.write(SDHCI + 0x34, random.choice((0xFFFF_FFFF, 0x027F_003B, 0)))
        pair.write(SDHCI + 0x38, random.choice((0xFFFF_FFFF, 0, 1)))
        pair.write(SDHCI + 4, size, 2)
        pair.write(SDHCI + 6, blocks, 2)
        writes = index in (24, 25)
        mode = (0 if writes else 0x10) | (0x22 if index in (18, 25) else 0)
        mode |= 4 if index in (18, 25) and random.random() < 0.5 else 0
        kind = {0: 0, 2: 1, 9: 1, 10: 1, 7: 3, 12: 0xC3}.get(index, 2) | (0x20 if size else 0)
        pair.write(SDHCI + 8, argument)
        pair.write(SDHCI + 0xC, (index << 8 | kind) << 16 | mode)
        self.look()
        width = random.choice((4, 4, 1, 2))
        for at in range(0, size * blocks, width):
            port = SDHCI + 0x20 + (at & 3)
            if writes:
                pair.write(port, random.getrandbits(8 * width), width)
            else:
                pair.read(port, width)
            if random.random() < 0.05:
                self.look()
        self.look()
        # Of errors that are left, QEMU forgets which they were.
        pair.write(SDHCI + 0x30, random.choice((0xFFFF_FFFF, 0xFFFF_0001, 0xFFFF_0002)))
        self.look()
        if random.random() < 0.2 or pair.read(SDHCI + 0x24) & 2:
            pair.write(SDHCI + 0x2F, random.choice((2, 4, 6)) if not pair.read(SDHCI + 0x24) & 2 else 4, 1)

    def look(self) -> None:
        for at in (*range(4, 0x20, 4), *range(0x24, 0x40, 4), 0x40, 0x44, 0xFC):
            self.pair.read(SDHCI + at, ignored=UNLIKE_SHIFTED.get(self.last, {}).get(at, 0))
        at = self.random.randrange(0x24, 0x40)
        self.pair.read(SDHCI + at, self.random.choice((1, 2) if not at & 1 else (1,)))


def drive(driver: "SdHost | SdhciHost", index: int, argument: int, size: int, blocks: int) -> int:
    """A command, and the one that ends it: QEMU's card loses data if another comes before that."""
    driver.command(index, argument, size, blocks)
    if index in (18, 25):
        driver.command(12, 0, 0, 0)
    return index


HOSTS: dict[str, Callable[[Pair, Random], SdHost | SdhciHost]] = {"sdhost": SdHost, "sdhci": SdhciHost}


@pytest.mark.parametrize(("host", "size"), GATED)
def test_a_host_does_what_qemu_s_does(host: str, size: str, tmp_path: Path) -> None:
    beside_qemu(host, size, GATED[host, size], tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("host", HOSTS)
def test_a_host_does_what_qemu_s_does_for_long(host: str, size: str, tmp_path: Path) -> None:
    beside_qemu(host, size, 100, tmp_path)


def beside_qemu(host: str, size: str, count: int, tmp_path: Path) -> None:
    random = Random(f"{host} {size} {count}")
    with board(SIZES[size], tmp_path) as pair:
        driver = HOSTS[host](pair, random)
        for index, argument in START:
            driver.command(index, argument, 0, 0)
        for _ in range(count):
            index = drive(driver, *drawn(random))
            if index == 55:
                drive(driver, *after_55(random))
    if SIZES[size]:
        with (tmp_path / "ours").open("rb") as ours, (tmp_path / "theirs").open("rb") as theirs:
            assert ours.read(1 << 20) == theirs.read(1 << 20)


def test_the_pins_lead_to_one_host(tmp_path: Path) -> None:
    with board(64 << 20, tmp_path) as pair:
        for low, high in ((0x2400_0000, 0x924), (0, 0x924), (0, 0), (0x2400_0000, 0x924)):
            pair.write(GPIO + 0x10, low)
            pair.write(GPIO + 0x14, high)
            assert bool(pair.read(SDHCI + 0x24) >> 16 & 1) is not bool(high)
        for at, value in ((0x1C, 0x8000_0001), (0x20, 0x3F_FFFF), (0x28, 1), (0x2C, 0x10), (0x00, 0x3FFF_FFFF)):
            pair.write(GPIO + at, value)
            for seen in (0x00, 0x10, 0x14, 0x34, 0x38):
                pair.read(GPIO + seen)


def test_a_command_without_a_clock_is_not_sent(tmp_path: Path) -> None:
    with board(64 << 20, tmp_path) as pair:
        for clock in (0, 1, 4, 5):
            pair.write(SDHCI + 0x2C, clock, 2)
            pair.write(SDHCI + 0x34, 0xFFFF_FFFF)
            pair.write(SDHCI + 0xC, 0x081A_0000)
            for at in (0x10, 0x2C, 0x30):
                pair.read(SDHCI + at)


def test_any_access_is_answered(tmp_path: Path) -> None:
    """Of any size anywhere, with values that are commands as often as not: nothing is raised, and reads fit."""
    (tmp_path / "card").write_bytes(bytes(256 << 10))
    random, socket = Random(1), Socket(SdCard(open_disk(tmp_path / "card")))
    devices: tuple[Device, ...] = (
        Bcm2835SdHost(socket, Wire()),
        Sdhci(socket, Wire(), CAPABILITIES),
        Bcm2835Gpio(socket),
        Dwc2(Wire()),
    )
    for _ in range(5000):
        device, size = random.choice(devices), random.choice((1, 2, 4, 8))
        offset = random.choice((random.randrange(0x60), random.randrange(device.size + 16)))
        value = random.choice(
            (random.getrandbits(64), 0x8000 | random.randrange(0x100), random.getrandbits(30) << 2 | 7)
        )
        device.write(offset, size, value & (1 << 8 * size) - 1)
        assert 0 <= device.read(offset, size) < 1 << 8 * size
