"""Files as disks: who sees what is written, who may have a file at the same time, and which files cannot be disks."""

import os
from pathlib import Path

import pytest

from kinst.runtime.machine.disk import CopiedDisk, Disk, DiskMode, open_disk
from kinst.targets.errors import MachineError, UsageError

SIZE = 64 << 10


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "disk.img"
    path.write_bytes(os.urandom(SIZE))
    return path


def read(disk: Disk, offset: int, size: int) -> bytes:
    buffer = bytearray(size)
    disk.read(offset, (memoryview(buffer)[: size // 3], memoryview(buffer)[size // 3 :]))
    return bytes(buffer)


def write(disk: Disk, offset: int, data: bytes) -> None:
    disk.write(offset, (memoryview(data)[:7], memoryview(data)[7:]))


@pytest.mark.parametrize("mode", DiskMode)
def test_a_disk_holds_what_its_file_does(image: Path, mode: DiskMode) -> None:
    disk, content = open_disk(image, mode), image.read_bytes()
    assert (disk.name, disk.size, disk.is_read_only) == (b"disk.img", SIZE, mode is DiskMode.READ_ONLY)
    assert (read(disk, 0, SIZE), read(disk, 4090, 20)) == (content, content[4090:4110])


def test_a_copy_is_changed_and_its_file_is_not(image: Path) -> None:
    disk, content = open_disk(image), image.read_bytes()
    write(disk, 4090, b"across two pages")
    disk.flush()
    assert read(disk, 4088, 20) == content[4088:4090] + b"across two pages" + content[4106:4108]
    assert image.read_bytes() == content


def test_a_disk_that_may_be_written_changes_its_file(image: Path) -> None:
    disk, content = open_disk(image, DiskMode.READ_WRITE), image.read_bytes()
    write(disk, 512, b"to the file itself")
    disk.flush()
    assert image.read_bytes() == content[:512] + b"to the file itself" + content[530:]


def test_one_run_writes_or_many_read(image: Path) -> None:
    disk = open_disk(image, DiskMode.READ_WRITE)
    for mode in DiskMode:
        with pytest.raises(MachineError, match=r"disk\.img: is (in use|being written) as the disk of another run"):
            open_disk(image, mode)
    del disk
    readers = [open_disk(image), open_disk(image), open_disk(image, DiskMode.READ_ONLY)]
    with pytest.raises(MachineError, match="is in use as the disk of another run, or given twice"):
        open_disk(image, DiskMode.READ_WRITE)
    readers.clear()
    open_disk(image, DiskMode.READ_WRITE)


def test_copies_end_where_the_host_has_no_memory_left(image: Path) -> None:
    left = 1 << 30
    with image.open("r+b") as file:
        file.truncate(64 << 20)
        disk = CopiedDisk(b"disk", os.dup(file.fileno()), 64 << 20, lambda: left)
    write(disk, 0, bytes(20 << 20))
    left = 100 << 20
    write(disk, 1 << 20, bytes(10 << 20))  # these were copied before
    with pytest.raises(OSError, match="No space left"):
        write(disk, 24 << 20, b"\x01" * (20 << 20))
    assert read(disk, 24 << 20, 4096) == bytes(4096)


def _nothing(path: Path) -> Path:
    return path


def _empty(path: Path) -> Path:
    path.touch()
    return path


def _odd(path: Path) -> Path:
    path.write_bytes(bytes(513))
    return path


def _fifo(path: Path) -> Path:
    os.mkfifo(path)
    return path


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize("mode", DiskMode)
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (_nothing, "No such file"),
        (_empty, "its size, 0 bytes"),
        (_odd, "its size, 513 bytes, is no multiple of 512"),
        (_fifo, "not a regular file"),
        (_folder, "directory|not a regular file"),
        (lambda _path: Path("/dev/zero"), "not a regular file"),
        (lambda path: path / "a\0b", "null"),
    ],
)
def test_a_file_that_cannot_be_a_disk_is_one_line(tmp_path: Path, make: object, why: str, mode: DiskMode) -> None:
    assert callable(make)
    with pytest.raises(UsageError, match=f"cannot be a disk: .*({why})") as caught:
        open_disk(make(tmp_path / "file"), mode)
    assert "\n" not in str(caught.value)
