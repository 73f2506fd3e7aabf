"""Files that are cut while they are mapped: one line, whoever reads, and nothing is ended by a signal."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from kinst.targets.elf.file import map_file
from kinst.targets.elf.shrunk_files import ShrunkFileError
from tests.commands.launchers import ENVIRONMENT

SIZE = 1 << 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "image"
    path.write_bytes(b"\x01" * SIZE)
    return path


def touched(path: Path, size: int) -> None:
    """Map a file, cut it, and read all of it, several times."""
    data = map_file(path)
    assert int(np.count_nonzero(data)) == SIZE
    os.truncate(path, size)
    for _ in range(3):
        np.count_nonzero(data)


@pytest.mark.parametrize("size", [0, 1, 5000, SIZE - 4096])
def test_whoever_reads_gets_an_error_with_its_name(path: Path, size: int) -> None:
    with pytest.raises(ShrunkFileError, match=r"image: became shorter while it was read$"):
        touched(path, size)


def test_another_thread_goes_on_and_the_main_one_gets_it(path: Path) -> None:
    map_file(path)  # from here on there is a handler
    reading = threading.Thread(target=touched, args=(path, 0))
    with pytest.raises(ShrunkFileError, match="became shorter"):
        reading.start()
        reading.join()
    reading.join()


def test_what_is_left_of_a_file_is_read(path: Path) -> None:
    data = map_file(path)
    os.truncate(path, 4096)
    assert int(np.count_nonzero(data[:4096])) == 4096


def test_another_reason_for_the_signal_is_nobody_elses_business(path: Path) -> None:
    code = (
        "import mmap, os, sys; from pathlib import Path; from kinst.targets.elf.file import map_file\n"
        "data = map_file(Path(sys.argv[1]))\n"
        "other = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 0, access=mmap.ACCESS_READ)\n"
        "os.truncate(sys.argv[1], 0)\n"
        "print(other[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], env=ENVIRONMENT, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (-7, b"")
