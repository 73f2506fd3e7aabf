"""Damaged initial file systems: what is found in them is in them."""

import gzip
import lzma
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from kinst.runtime.userspace.guest_files import GuestFiles
from kinst.targets.errors import ImageError
from kinst.targets.packed.cpio import file_system
from tests.fuzz.bytes_changed import Damage, damages
from tests.fuzz.kind import Finding, Kind
from tests.writers.cpio import DIRECTORY, FILE, LINK, Entry, archive

_PATHS: Final = ("/bin/sh", "/bin/busybox", "/bin/../bin/sh", "/a/b", "/../x", "sh", "*")


@cache
def _files() -> tuple[bytes, ...]:
    entries = (
        Entry("bin", DIRECTORY),
        Entry("bin/busybox", FILE, b"\x7fELF" + bytes(90)),
        Entry("bin/sh", LINK, b"busybox"),
        Entry("a", LINK, b"../bin/b"),
        Entry("bin/b", LINK, b"/a"),
    )
    plain = archive(entries)
    return plain, archive(()) + bytes(64) + plain, gzip.compress(plain, mtime=0), plain + lzma.compress(plain)


def _read(damage: Damage, _folder: Path) -> None:
    base = _files()[damage.base]
    data = damage.of(base, (range(len(base)),))
    with suppress(ImageError):
        found = file_system(data)
        for path in _PATHS:
            if not found.resolved(path).startswith("/"):
                raise Finding(f"{path} is {found.resolved(path)}")
        files = GuestFiles(data, ())
        for path in _PATHS:
            for file in files.find(path):
                if not file.file.is_file():
                    raise Finding(f"{file.module} is not there")


ARCHIVES: Final = Kind("archives", damages(len(_files())), _read)
