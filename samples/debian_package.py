"""A Debian package as it arrives -> one of its files, without the rest of it on disk and without dpkg."""

import gzip
import lzma
import re
import shutil
import tarfile
from pathlib import Path
from typing import BinaryIO, Final, cast

from kinst.targets.errors import DownloadError

DEBIAN: Final = "https://deb.debian.org/debian"
# Debian's archive forgets a version when there is a newer one. This is how it was when the images were chosen.
SNAPSHOT: Final = "https://snapshot.debian.org/archive/debian/20261122T000000Z"
_APT: Final = Path("/etc/apt")


class PackageError(DownloadError):
    """What came is no package, or a damaged one, or one without the file that is wanted."""


def addresses(path: str) -> tuple[str, ...]:
    """Where the package at `path`, below an archive's top, may be: this system's own mirror first."""
    mirror = system_mirror()
    return tuple(dict.fromkeys(f"{archive}/{path}" for archive in filter(None, (mirror, DEBIAN, SNAPSHOT))))


def system_mirror(apt: Path = _APT) -> str | None:
    """The mirror of Debian that apt's settings, deb822 or one-line, name; None if there is none."""
    for source in (apt / "sources.list", *sorted(apt.glob("sources.list.d/*"))):
        if source.suffix in (".list", ".sources") and source.exists():
            found = re.search(
                r"^(?:URIs:|deb(?:\s+\[.*?\])?)\s+(https?://\S+/debian)/?(?:\s|$)", source.read_text(), re.MULTILINE
            )
            if found:
                return found[1]
    return None


def data_tar(package: BinaryIO) -> BinaryIO:
    """The files of a package, decompressed, as a tar archive to be read once. A .deb is an ar archive: 8 bytes of
    magic, then members of 60 header bytes each; data.tar, mostly with .xz, is the last. Raises PackageError."""
    if package.read(8) != b"!<arch>\n":
        raise PackageError("this is no Debian package")
    while len(header := package.read(60)) == 60:
        name, size = header[:16].decode("latin-1").strip().rstrip("/"), int(header[48:58])
        match name:
            case "data.tar":
                return package
            case "data.tar.xz":
                return cast(BinaryIO, lzma.open(package))
            case _:
                package.read(size + size % 2)
    raise PackageError("a Debian package without files, or with files that are not packed by xz")


def extract(package: BinaryIO, member: str, out: BinaryIO) -> None:
    """Write the first file whose whole path matches `member` to `out`, and read no further; what is named ``.gz`` is
    decompressed. Raises PackageError if the package is damaged, or has no such file."""
    try:
        with tarfile.open(fileobj=data_tar(package), mode="r|") as archive:
            for one in archive:
                content = archive.extractfile(one) if one.isfile() else None
                if content is not None and re.fullmatch(member, one.name.removeprefix("./")):
                    plain = gzip.GzipFile(fileobj=content) if one.name.endswith(".gz") else content
                    shutil.copyfileobj(plain, out, 1 << 20)
                    return
    except (lzma.LZMAError, tarfile.TarError, gzip.BadGzipFile, EOFError, ValueError) as error:
        raise PackageError(f"the package is damaged: {error}") from None
    raise PackageError(f"the package has no file {member}")
