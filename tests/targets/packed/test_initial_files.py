"""Files in an initial file system: what cpio and the compressors of this system made, and what lies."""

import gzip
import lzma
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from kinst.targets.packed.initial_files import initial_files
from tests.writers.cpio import DIRECTORY, FILE, LINK, Entry, archive

FILES = {"lib/modules/a.ko": b"first", "b.ko": bytes(range(200)), "lib/.hidden": b"", "odd": b"x" * 4097}


def _entries() -> list[Entry]:
    files = [Entry(name, FILE, content) for name, content in FILES.items()]
    return [Entry("lib", DIRECTORY), *files, Entry("link", LINK, b"odd")]


def _all(data: bytes) -> dict[str, bytes]:
    return dict(initial_files(data, lambda _path: True))


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress])
def test_archives_follow_each_other_and_the_last_may_be_compressed(compress: type[bytes]) -> None:
    early = archive([Entry("kernel/x86/microcode/GenuineIntel.bin", FILE, b"microcode")])
    data = early + bytes(-len(early) % 512) + compress(archive(_entries()))
    assert _all(data) == {"kernel/x86/microcode/GenuineIntel.bin": b"microcode", **FILES}
    assert dict(initial_files(data, lambda path: path == "b.ko")) == {"b.ko": FILES["b.ko"]}


def test_what_cpio_writes_is_read(tmp_path: Path) -> None:
    if shutil.which("cpio") is None:
        pytest.skip("no cpio")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "brd.ko").write_bytes(b"module")
    done = subprocess.run(
        ["cpio", "-o", "-H", "newc"], input=b"./sub\n./sub/brd.ko\n", cwd=tmp_path, capture_output=True, check=True
    )
    assert _all(done.stdout) == {"sub/brd.ko": b"module"}


def test_damage_ends_the_reading_and_nothing_else() -> None:
    whole = archive(_entries())
    lot = random.Random(29)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(lot.randint(1, 8)):
            data[lot.randrange(len(data))] = lot.randrange(256)
        cut = bytes(data[: lot.randrange(len(data))])
        assert sum(map(len, _all(cut).values())) <= len(whole)
    assert not _all(gzip.compress(gzip.compress(whole))) and not _all(b"\x1f\x8b\x08damaged") and not _all(b"")
