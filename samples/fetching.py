"""The name of a real image -> the image in the user's cache, downloaded once, and its copy where one works."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from kinst.rewriter.shell.cache_home import cache_home
from kinst.rewriter.shell.fresh_file import fresh_file
from kinst.rewriter.shell.progress import Progress
from kinst.samples.debian_images import DebianImage
from kinst.samples.debian_package import PackageError, addresses, extract
from kinst.samples.download import Download, arriving, own_file
from kinst.targets.errors import DownloadError, UsageError

_IMAGE: Final = "image.elf"
_PACKAGE: Final = "package.deb"  # while it arrives
_PIECE: Final = 1 << 20
_MODE: Final = 0o644


def images_folder() -> Path:
    """Where downloaded images are kept: ``$KINST_IMAGES``, else ``kinst-rewrite/images`` in the user's cache."""
    return Path(os.environ.get("KINST_IMAGES") or cache_home() / "kinst-rewrite" / "images")


def placed(name: str, image: DebianImage, folder: Path, progress: Progress) -> Path:
    """Put the image `name` where documents have it below `folder`; what is there and the same is left alone.

    Raises UsageError if something else is there, DownloadError if the image cannot be had.
    """
    path = folder / image.place
    if path.exists():
        if not is_whole(path, image):
            raise UsageError(f"{path}: is there already and is not {name}: remove it, or name another folder")
        return path
    source = fetched(name, image, progress)
    path.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as whole, fresh_file(path, _MODE) as copy, progress("writing", image.size) as done:
        while data := whole.read(_PIECE):
            copy.write(data)
            done(len(data))
        if _digest(copy) != image.sha256:  # whoever may write to a shared cache has changed it since it was checked
            raise DownloadError(f"{source}: is not {name} any more: somebody else writes to {images_folder()}")
    return path


def fetched(name: str, image: DebianImage, progress: Progress) -> Path:
    """The image in the cache, checked. Raises DownloadError."""
    folder = images_folder() / name
    path = folder / _IMAGE
    with alone(folder):
        if not is_whole(path, image):
            extracted(Download(addresses(image.path), image.packed), image.member, path, progress, image.sha256)
    return path


def extracted(download: Download, member: str, path: Path, progress: Progress, sha256: str | None = None) -> str:
    """Write a file of a package that is downloaded to `path`; return its SHA-256, which is `sha256` if that is given.

    What has come of the package stays beside it until the file is whole. Raises DownloadError.
    """
    kept = path.parent / _PACKAGE
    try:
        with fresh_file(path, _MODE) as out:
            with arriving(download, kept, progress) as package:
                extract(package, member, out)
            found = _digest(out)
            if sha256 not in (None, found):
                raise PackageError(f"SHA-256 {found} is not {sha256}")
    except PackageError as error:
        kept.unlink(missing_ok=True)
        raise DownloadError(f"{download.addresses[0]}: {error}: what came is removed; repeat the command") from None
    kept.unlink()
    return found


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time: several may want the same images."""
    folder.mkdir(parents=True, exist_ok=True)
    with own_file(folder / "lock") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_whole(path: Path, image: DebianImage) -> bool:
    """Whether a file is there and is the image."""
    if not path.is_file() or path.stat().st_size != image.size:
        return False
    with path.open("rb") as file:
        return _digest(file) == image.sha256


def _digest(file: BinaryIO) -> str:
    """Of a whole file."""
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # typeshed wants a raw readinto
