"""An SD card at its ends: sizes, the last block, disks that fail or must not be written."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kinst.runtime.machine.devices.sd.card import FAILED, ILLEGAL, OUT_OF_RANGE, PROTECTED, SdCard
from kinst.runtime.machine.devices.sd.card_registers import with_checksum
from kinst.runtime.machine.devices.sd.sdhci import Sdhci
from kinst.runtime.machine.devices.sd.socket import Socket
from kinst.runtime.machine.disk import DiskMode, open_disk
from kinst.targets.errors import MachineError
from tests.runtime.machine.devices.bench import Wire

MIB, GIB = 1 << 20, 1 << 30
RCA = 0x4567 << 16


def card_of(folder: Path, size: int, mode: DiskMode = DiskMode.COPY) -> SdCard:
    file = folder / "disk"
    with file.open("wb") as content:
        content.truncate(size)
    return SdCard(open_disk(file, mode))


def selected(card: SdCard) -> SdCard:
    for index, argument in ((0, 0), (8, 0x1AA), (55, 0), (41, 0x40FF_8000), (2, 0), (3, 0), (7, RCA)):
        card.command(index, argument)
    return card


def status(card: SdCard) -> int:
    return int.from_bytes(card.command(13, RCA), "big")


class Broken:
    """A disk that fails."""

    name, size, is_read_only = b"broken", MIB, False

    def read(self, offset: int, buffers: Sequence[memoryview]) -> None:
        raise OSError

    def write(self, offset: int, buffers: Sequence[memoryview]) -> None:
        raise OSError

    def flush(self) -> None:
        raise OSError


def test_the_checksum_is_that_of_a_card_that_is_known() -> None:
    known = bytes.fromhex("aa585951454d552101deadbeef006219")  # QEMU's
    assert with_checksum(known[:15]) == known


@pytest.mark.parametrize(("size", "rounded"), [(MIB + 512, 1_310_720), (GIB + 262_144, 1_074_266_112)])
def test_a_size_that_no_card_has_is_refused(size: int, rounded: int, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=rf"disk: cannot be an SD card: .*: truncate -s {rounded} makes it one"):
        card_of(tmp_path, size)


@pytest.mark.parametrize("size", [MIB, 700 * MIB, GIB, 3 * GIB, 64 * GIB])
def test_a_card_says_how_large_it_is(size: int, tmp_path: Path) -> None:
    card = card_of(tmp_path, size)
    for index, argument in ((0, 0), (55, 0), (41, 0x40FF_8000), (2, 0), (3, 0)):
        card.command(index, argument)
    csd = int.from_bytes(card.command(9, RCA), "big")
    if csd >> 126:
        assert (csd >> 48 & 0x3F_FFFF) * (512 << 10) + (512 << 10) == size
    else:
        assert ((csd >> 62 & 0xFFF) + 1) * (4 << (csd >> 47 & 7)) * (1 << (csd >> 80 & 0xF)) == size


def test_the_last_block_is_read_and_nothing_behind_it(tmp_path: Path) -> None:
    card = selected(card_of(tmp_path, MIB))
    card.command(18, MIB - 512)
    assert len(card.read(512)) == 512
    assert not status(card) & OUT_OF_RANGE
    assert card.read(512) == b""
    assert status(card) & OUT_OF_RANGE
    card.command(12, 0)
    assert int.from_bytes(card.command(17, MIB), "big") & OUT_OF_RANGE
    assert card.read(512) == b""


def test_what_is_written_behind_the_end_is_nowhere(tmp_path: Path) -> None:
    card = selected(card_of(tmp_path, MIB, DiskMode.READ_WRITE))
    card.command(25, MIB - 512)
    card.write(b"x" * 1024)
    assert status(card) & OUT_OF_RANGE
    card.command(12, 0)
    assert (tmp_path / "disk").stat().st_size == MIB
    assert (tmp_path / "disk").read_bytes()[-513:] == b"\0" + b"x" * 512


def test_a_card_that_must_not_be_written_says_so(tmp_path: Path) -> None:
    card = selected(card_of(tmp_path, MIB, DiskMode.READ_ONLY))
    assert int.from_bytes(card.command(24, 0), "big") & PROTECTED
    card.write(b"x" * 512)
    assert not status(card) & PROTECTED
    assert not Sdhci(Socket(card), Wire(), 0).read(0x24, 4) & 1 << 19
    assert Sdhci(Socket(), Wire(), 0).read(0x24, 4) & 1 << 19


def test_a_disk_that_fails_gives_no_data_and_an_error() -> None:
    card = selected(SdCard(Broken()))
    card.command(17, 0)
    assert card.read(512) == b""
    assert status(card) & FAILED
    card.command(12, 0)
    card.command(24, 0)
    card.write(b"x" * 512)
    assert status(card) & FAILED


def test_a_host_whose_card_has_no_data_times_out() -> None:
    card = selected(SdCard(Broken()))
    wire = Wire()
    host = Sdhci(Socket(card), wire, 0)
    for at, size, value in ((0x2C, 2, 5), (0x34, 4, 0xFFFF_FFFF), (0x38, 4, 1 << 20), (4, 4, 1 << 16 | 512)):
        host.write(at, size, value)
    host.write(0xC, 4, 17 << 24 | 0x3A << 16 | 0x10)
    assert host.read(0x30, 4) & 1 << 20
    assert wire.level
    assert host.read(0x20, 4) == 0


def test_what_a_card_does_not_know_is_in_its_next_status(tmp_path: Path) -> None:
    card = selected(card_of(tmp_path, MIB))
    assert card.command(38, 0) == b""  # to erase: no class of its
    assert status(card) & ILLEGAL
    assert not status(card) & ILLEGAL
    card.command(6, 0x80FF_FFF1)
    status_of_switch = card.read(64)
    assert status_of_switch[16] & 0xF == 1
    card.command(6, 0x00FF_FFF2)  # no such function
    assert card.read(64)[16] & 0xF == 0xF
    card.command(6, 0x00FF_FFFF)
    assert card.read(64)[16] & 0xF == 1
