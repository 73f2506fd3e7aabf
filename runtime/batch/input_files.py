"""Names of files, patterns and folders -> files, identified by their content."""

import glob
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from kinst.rewriter.shell.progress import Progress
from kinst.runtime.batch.tasks import InputFile
from kinst.targets.errors import UsageError
from kinst.targets.packed.boot_image import is_boot_image

_MAGIC: Final = b"\x7fELF"
_HEAD: Final = 1 << 10
_PIECE: Final = 1 << 20
_COMPRESSED_MODULE: Final = re.compile(r"\.ko\.(xz|gz|zst)")


class FileTable:
    """The files of a batch. Each is read once; two with the same content are one."""

    def __init__(self, base: Path, progress: Progress) -> None:
        """Names are relative to `base`."""
        self._base = base
        self._progress = progress
        self.places: dict[str, Path] = {}  # by SHA-256
        self._known: dict[Path, InputFile] = {}

    def one(self, name: str) -> InputFile:
        """A file. Raises UsageError: it cannot be read."""
        path = self._base / name
        if path not in self._known:
            try:
                self._known[path] = self._read(path, name)
            except OSError as error:
                raise UsageError(f"{name}: cannot be read: {error.strerror}") from None
        return self._known[path]

    def _read(self, path: Path, name: str) -> InputFile:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(f"{name}: not a regular file")
        digest, size = hashlib.sha256(), status.st_size
        with path.open("rb") as file, self._progress("reading", size) as done:
            while piece := file.read(_PIECE):
                digest.update(piece)
                done(len(piece))
        found = InputFile(name, digest.hexdigest(), size)
        self.places.setdefault(found.sha256, path.absolute())
        return found

    def images(self, names: Sequence[str]) -> list[InputFile]:
        """The images that names, patterns and folders mean, each once, in order. Of a folder: every file in it, at
        any depth, that is an ELF file, a kernel or a compressed
        module.

        Raises:
            UsageError: a name means no image.
        """
        found: dict[str, None] = {}
        for name in names:
            some = list(self._named(name))
            if not some:
                raise UsageError(f"{name}: there is no image")
            found |= dict.fromkeys(some)
        return [self.one(name) for name in found]

    def _named(self, name: str) -> Iterator[str]:
        path = self._base / name
        if path.is_dir():
            inside = (Path(root, file) for root, _, files in sorted(os.walk(path)) for file in sorted(files))
            yield from (self._shown(file, name) for file in inside if _is_image(file))
        elif path.exists():
            yield name
        else:
            matches = sorted(glob.glob(name, root_dir=self._base, recursive=True))  # noqa: PTH207  # takes absolute ones
            yield from (match for match in matches if (self._base / match).is_file())

    def _shown(self, file: Path, folder: str) -> str:
        return str(Path(folder) / file.relative_to(self._base / folder))


def _is_image(path: Path) -> bool:
    """Whether a file in a folder is an image: most may be something else."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    return head.startswith(_MAGIC) or is_boot_image(head) or _COMPRESSED_MODULE.search(path.name) is not None
