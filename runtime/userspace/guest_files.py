"""The module field of a description -> the programs and libraries of the guest's user space that it means.

Their files are those of the initial file system, and those that the user named on the host: in place of a file of the
guest by its name alone, or for a path; then what the guest has there is the program, and the other one has its names.
"""

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Final

from kinst.runtime.unwinding.user_programs import ProgramFile
from kinst.runtime.userspace.user_file import UserFile
from kinst.targets.errors import ImageError
from kinst.targets.image import module_name
from kinst.targets.packed.cpio import FileSystem, file_system
from kinst.targets.probe import is_glob, matcher
from kinst.targets.values import dataclass

GIVEN: Final = "--user FILE gives one of that name, --user PATH=FILE one of that path"
_ELF: Final = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class GuestFile:
    """A program or library. `module` is what descriptions call it: its path in the guest, or its name alone, which
    means any path that ends so."""

    module: str
    path: str  # in the guest, without symbolic links as far as they are known; or its name alone
    file: Path  # on the host
    names: Path | None = None  # a file of the same build with more names and types

    def is_at(self, path: str) -> bool:
        """Whether a path of the guest is this file's."""
        return path == self.path if self.path.startswith("/") else PurePosixPath(path).name == self.path


def _program(file: GuestFile) -> ProgramFile:
    return ProgramFile(file.file, module_name(Path(file.path)), file.names)


class GuestFiles:
    """What is known of the guest's files."""

    def __init__(self, initrd: bytes | memoryview | None, users: Sequence[UserFile]) -> None:
        """`initrd`: the initial file system; `users`: files that stand for those of the guest."""
        self._initrd, self._users = initrd, users
        self._found: dict[GuestFile, None] = {}
        self._folder: Path | None = None
        self._copies: dict[str, Path] = {}

    def given(self) -> list[ProgramFile]:
        """The files that the user gave, each as the program that it stands for. Raises ImageError."""
        return [
            next((_program(file) for file in self.find(one.path)), ProgramFile(one.file))
            if one.path
            else ProgramFile(one.file)
            for one in self._users
        ]

    def found(self) -> list[ProgramFile]:
        """All that module fields have meant so far."""
        return [_program(file) for file in self._found]

    def find(self, module: str) -> Iterator[GuestFile]:
        """The files that a module field means. Raises ImageError: the initial file system cannot be read."""
        for file in self._find(module):
            self._found[file] = None
            yield file

    def _find(self, module: str) -> Iterator[GuestFile]:
        if is_glob(module):
            for path in self._paths:
                if matcher(module)(path):
                    yield GuestFile(path, path, self._copy(path))
            return
        own = self._own(module)
        if own is not None:
            path = self.resolved(own.path or module)
            there = bool(own.path) and path in self._paths
            yield GuestFile(module, path, self._copy(path) if there else own.file, own.file if there else None)
        elif module.startswith("/"):
            path = self._files.resolved(module)
            if path in self._paths:
                yield GuestFile(module, path, self._copy(path))
        else:
            found = [path for path in self._paths if PurePosixPath(path).name == module]
            yield from (GuestFile(module, path, self._copy(path)) for path in found)

    def _own(self, module: str) -> UserFile | None:
        """The file that the user gave for a module field: for its path rather than for its name."""
        name, path = PurePosixPath(module).name, self.resolved(module)
        placed = (
            one for one in self._users if one.path and GuestFile("", path, one.file).is_at(self.resolved(one.path))
        )
        named = (one for one in self._users if not one.path and one.file.name == name)
        return next(placed, None) or next(named, None)

    def resolved(self, path: str) -> str:
        """Where a path of the guest leads, as far as its symbolic links are known; a name without a slash as it is."""
        return self._files.resolved(path) if path.startswith("/") else path

    @cached_property
    def _files(self) -> FileSystem:
        if self._initrd is None:
            return FileSystem({}, {})
        try:
            return file_system(self._initrd)
        except ImageError as error:
            raise ImageError(f"--initrd: {error}") from None

    @cached_property
    def _paths(self) -> tuple[str, ...]:
        """The absolute paths of ELF files."""
        files = self._files.files.items()
        return tuple(f"/{path}" for path, content in files if bytes(content[: len(_ELF)]) == _ELF)

    def _copy(self, path: str) -> Path:
        """A file of the archive as one of the host, which lasts as long as this object."""
        known = self._copies.get(path)
        if known is not None:
            return known
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="kinst-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        # A name of ours: that in the archive may be anything.
        copy = self._copies[path] = self._folder / f"{len(self._copies)}.elf"
        copy.write_bytes(self._files.files[path[1:]])
        return copy
