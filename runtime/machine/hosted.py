"""An image that asks for an operating system under it -> an error: on a bare machine its first system call ends it."""

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from kinst.targets.elf.header import PT_INTERP, PT_NOTE
from kinst.targets.elf.notes import notes_in
from kinst.targets.errors import MachineError

if TYPE_CHECKING:
    from kinst.targets.image import Image

_ABI_TAG: Final = 1  # NT_GNU_ABI_TAG: the system, 0 for Linux, and its oldest version, four words
_LINUX: Final = bytes(4)


def refuse_program(image: "Image") -> None:
    """Raise MachineError for a program: one that a dynamic linker has to start, or that glibc made for Linux. (A kernel
    may have an interpreter, too: FreeBSD's is /red/herring.)"""
    interpreter = _of_kind(image, PT_INTERP).split(b"\0")[0].decode("utf-8", "backslashreplace")
    is_linked = PurePosixPath(interpreter).name.startswith("ld")
    notes = notes_in(_of_kind(image, PT_NOTE))
    if is_linked or any(_is_of_linux(note.owner, note.kind, note.description) for note in notes):
        what = f"started by {interpreter}" if is_linked else "made for Linux"
        raise MachineError(
            f"{image.path}: a program, {what}, and no kernel or firmware: run it in a Linux guest (--initrd), call one "
            "of its functions (--call), or see docs/guide/qiling.md"
        )


def _of_kind(image: "Image", kind: int) -> bytes:
    """The bytes in the file of the segments of one kind."""
    parts = (
        image.data[one.offset : one.offset + one.file_size].tobytes() for one in image.segments if one.kind == kind
    )
    return b"".join(parts)


def _is_of_linux(owner: bytes, kind: int, description: bytes) -> bool:
    return owner == b"GNU\0" and kind == _ABI_TAG and description[:4] == _LINUX
