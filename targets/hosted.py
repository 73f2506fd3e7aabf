"""An image -> whether an operating system maps it, as it does programs and shared libraries, and what says so."""

from pathlib import PurePosixPath
from typing import Final

from kinst.targets.elf.dynamic import dynamic_entries
from kinst.targets.elf.header import PT_GNU_RELRO, PT_INTERP, PT_NOTE
from kinst.targets.elf.notes import Note, notes_in
from kinst.targets.image import Image

_ABI_TAG: Final = 1  # NT_GNU_ABI_TAG: the system, 0 for Linux, and its oldest version, four words
_LINUX: Final = bytes(4)
_OWNER_OF_GO: Final = b"Go\0\0"
_OSABI, _OSABI_GNU = 7, 3  # a byte of the ELF header, and its value for GNU extensions of static programs
_LIBRARIES: Final = frozenset(
    {1, 14}
)  # DT_NEEDED, DT_SONAME: what a program needs, and the name by which a library is needed


def started_by(image: Image) -> str:
    """Why an image is a program: a dynamic linker has to start it, or glibc made it for Linux; empty if it is none.

    (A kernel may have an interpreter, too: FreeBSD's is /red/herring.)
    """
    interpreter = _interpreter(image)
    if PurePosixPath(interpreter).name.startswith("ld"):
        return f"started by {interpreter}"
    return "made for Linux" if any(map(_is_of_linux, _notes(image))) else ""


def is_hosted(image: Image) -> bool:
    """Whether an operating system maps all that it loads, and nothing else there: a program, or a shared library.

    No kernel or firmware needs a library, has a library's name, or asks a dynamic linker to protect a part of it.
    """
    return bool(
        started_by(image)
        or ".so" in _interpreter(image)
        or any(one.kind == PT_GNU_RELRO for one in image.segments)
        or image.data[_OSABI] == _OSABI_GNU
        or any(note.owner == _OWNER_OF_GO for note in _notes(image))
        or dynamic_entries(image.data, image.segments).keys() & _LIBRARIES
    )


def _interpreter(image: Image) -> str:
    return _of_kind(image, PT_INTERP).split(b"\0")[0].decode("utf-8", "backslashreplace")


def _notes(image: Image) -> list[Note]:
    return list(notes_in(_of_kind(image, PT_NOTE)))


def _of_kind(image: Image, kind: int) -> bytes:
    """The bytes in the file of the segments of one kind."""
    parts = (
        image.data[one.offset : one.offset + one.file_size].tobytes() for one in image.segments if one.kind == kind
    )
    return b"".join(parts)


def _is_of_linux(note: Note) -> bool:
    return note.owner == b"GNU\0" and note.kind == _ABI_TAG and note.description[:4] == _LINUX
