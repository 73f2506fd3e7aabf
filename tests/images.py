"""Image name -> path of a real kernel or firmware image, downloaded from Debian once and cached outside the repository.

The packages come from the mirror that the system's own apt uses, by its index; dpkg is not touched and no
root is needed. Run as ``python -m tests.images [NAME...]`` to fill the cache and print the paths.
"""

import fcntl
import gzip
import hashlib
import io
import lzma
import os
import re
import shutil
import sys
import tarfile
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import BinaryIO

from kinst.rewriter.progress import Done, bars
from tests.image_list import IMAGES, LARGE, MORE, SMALL, RealImage

__all__ = [
    "LARGE",
    "MORE",
    "SMALL",
    "at_hand",
    "data_tar",
    "downloading_alone",
    "modules_of",
    "package_index",
    "real_image",
]

CACHE = Path(os.environ.get("KINST_IMAGES") or Path.home() / ".cache" / "kinst-rewrite" / "images")


def real_image(name: str) -> Path:
    """Path of image `name`, downloading it on first use. The SHA-256 of what came is kept beside it."""
    path = CACHE / name / "image.elf"
    if not path.exists():
        with downloading_alone():
            if not path.exists():
                _fetch(IMAGES[name], path)
    return path


@contextmanager
def downloading_alone() -> Iterator[None]:
    """One process at a time: the workers of the tests ask for the same images."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def at_hand(*names: str) -> tuple[str, ...]:
    """Those of the images that tests may ask for: others only if they were downloaded before."""
    return tuple(name for name in names if name in SMALL or (CACHE / name / "image.elf").exists())


def modules_of(kernel: str, pattern: str) -> dict[str, bytes]:
    """Modules whose whole names match, by name, from the package of the same build as the kernel's image. Of a kernel
    that has one of them built in, it is not there."""
    names = {path.stem: path for path in module_files(kernel)}
    return {name: path.read_bytes() for name, path in names.items() if re.fullmatch(pattern, name)}


def module_files(kernel: str) -> list[Path]:
    """The files of all such modules, by name."""
    folder = real_image(kernel).parent / "modules"
    with downloading_alone():
        if not folder.exists():
            _fetch_modules(kernel, folder)
    return sorted(folder.iterdir())


def members_of(name: str, image: RealImage) -> list[Path]:
    """All members of a package whose path matches, each as a file; downloaded once, and kept as `name`."""
    folder = CACHE / name
    with downloading_alone():
        if not folder.exists():
            _fetch_members(image, folder)
    return sorted(folder.iterdir())


def _fetch_members(image: RealImage, folder: Path) -> None:
    partial = folder.with_suffix(f".{os.getpid()}")
    partial.mkdir()
    uri = _download_uri(_newest_package(image))
    with urllib.request.urlopen(uri) as response, tarfile.open(fileobj=data_tar(response), mode="r|") as archive:
        for member in archive:
            content = archive.extractfile(member) if re.fullmatch(image.member, member.name[2:]) else None
            if content is not None:
                (partial / Path(member.name).name).write_bytes(content.read())
    partial.rename(folder)


def _fetch_modules(kernel: str, folder: Path) -> None:
    """Those of drivers and file systems that small systems need, decompressed."""
    package = (CACHE / kernel / "image.sha256").read_text().split()[1].replace("-dbg:", ":")
    partial = folder.with_suffix(f".{os.getpid()}")
    partial.mkdir()
    with (
        _download(package) as response,
        tarfile.open(fileobj=data_tar(response), mode="r|") as archive,
    ):
        for member in archive:
            found = re.search(
                r"/kernel/(?:drivers/(?:block|virtio|char)|fs|lib|crypto)/.*?([^/]+\.ko)(\.xz)?$", member.name
            )
            content = archive.extractfile(member) if found else None
            if found and content is not None:
                data = content.read()
                (partial / found[1]).write_bytes(lzma.decompress(data) if found[2] else data)
    partial.rename(folder)


def _fetch(image: RealImage, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    package = _newest_package(image)
    partial = path.with_suffix(f".{os.getpid()}")
    with partial.open("wb") as out:
        if image.is_large:
            _stream_member(image, package, out)
        else:
            _unpack_member(image, package, out)
    with partial.open("rb") as whole:
        digest = hashlib.file_digest(whole, "sha256").hexdigest()
    path.with_suffix(".sha256").write_text(f"{digest}  {package}\n")
    partial.rename(path)


@cache
def _index(architecture: str, suite: str) -> dict[str, str]:
    """Name -> address of each package."""
    mirror, index = package_index("amd64" if architecture == "all" else architecture, suite)
    found = re.findall(r"^Package: (\S+)$|^Filename: (\S+)$", index, re.MULTILINE)
    names, files = (one for one, _ in found[::2]), (file for _, file in found[1::2])
    return {name: f"{mirror}/{file}" for name, file in zip(names, files, strict=True)}


def package_index(architecture: str, suite: str) -> tuple[str, str]:
    """The mirror and its index of a suite, which is downloaded once. Not by apt: it takes no index whose Release is
    newer, as a mirror in renewal has it for days, and packages are no less there then."""
    mirror = _system_mirror()
    path = CACHE / "indices" / f"{suite}-{architecture}.xz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        with urllib.request.urlopen(f"{mirror}/dists/{suite}/main/binary-{architecture}/Packages.xz") as response:
            partial.write_bytes(response.read())
        partial.rename(path)
    return mirror, lzma.decompress(path.read_bytes()).decode()


def _system_mirror() -> str:
    """The URI of the system's own Debian archive, from deb822 or one-line sources."""
    sources = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    for source in sources:
        if source.suffix not in (".list", ".sources") or not source.exists():
            continue
        for line in source.read_text().splitlines():
            found = re.match(r"(?:URIs:|deb(?:\s+\[.*?\])?)\s+(\S+/debian)/?(?:\s|$)", line)
            if found:
                return found.group(1)
    raise LookupError("no Debian mirror in /etc/apt: real images cannot be downloaded on this machine")


def _newest_package(image: RealImage) -> str:
    """``name:architecture/suite`` of the newest package whose whole name matches."""
    names = [name for name in _index(image.architecture, image.suite) if re.fullmatch(image.package, name)]
    if not names:
        raise LookupError(f"{image.package}: no such package for {image.architecture} in {image.suite}")
    newest = max(names, key=lambda name: [int(number) for number in re.findall(r"\d+", name)])
    return f"{newest}:{image.architecture}/{image.suite}"


def _download_uri(package: str) -> str:
    name, _, where = package.rpartition(":")
    architecture, _, suite = where.partition("/")
    return _index(architecture, suite)[name]


class _Told(io.RawIOBase):
    """A download that tells how many bytes came."""

    def __init__(self, source: BinaryIO, done: Done) -> None:
        self._source, self._done = source, done

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self._done(len(data))
        return data


@contextmanager
def _download(package: str) -> Iterator[BinaryIO]:
    """A package as it comes, with a bar on a terminal."""
    with ExitStack() as stack:
        response = stack.enter_context(urllib.request.urlopen(_download_uri(package)))
        size = int(response.headers.get("Content-Length") or 0)
        yield _Told(response, stack.enter_context(bars(sys.stderr)("downloading", size)))  # type: ignore[misc]


def _unpack_member(image: RealImage, package: str, out: BinaryIO) -> None:
    with _download(package) as response:
        _copy_tar_member(data_tar(response), image.member, out)


def _stream_member(image: RealImage, package: str, out: BinaryIO) -> None:
    """Decompress while the package arrives and stop at the end of the member, about a third of the download."""
    with _download(package) as response:
        _copy_tar_member(data_tar(response), r".*/vmlinux[^/]*", out)


def data_tar(deb: BinaryIO) -> BinaryIO:
    """The files of a package, decompressed. A .deb is an ar archive: 8 bytes of magic, then members of 60 header bytes
    each; data.tar.xz is the last."""
    assert deb.read(8) == b"!<arch>\n"
    while True:
        header = deb.read(60)
        name, size = header[:16].decode().strip().rstrip("/"), int(header[48:58])
        if name.startswith("data.tar"):
            return deb if name == "data.tar" else lzma.open(deb)  # type: ignore[return-value]
        deb.read(size + size % 2)


def _copy_tar_member(data: BinaryIO, pattern: str, out: BinaryIO) -> None:
    with tarfile.open(fileobj=data, mode="r|") as archive:
        for member in archive:
            if member.isfile() and re.fullmatch(pattern, member.name.removeprefix("./")):
                content = archive.extractfile(member)
                assert content is not None
                plain = gzip.GzipFile(fileobj=content) if member.name.endswith(".gz") else content
                shutil.copyfileobj(plain, out, 1 << 20)
                return
    raise LookupError(f"no member {pattern} in the package")


def main(names: Iterable[str]) -> None:
    for name in names:
        print(real_image(name), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or IMAGES)
