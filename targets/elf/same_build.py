"""Two ELF files -> an error where they come from different builds: a debug file belongs to one image only."""

from kinst.targets.elf.file import ElfLike
from kinst.targets.elf.header import SHF_EXECINSTR, FileKind
from kinst.targets.elf.notes import build_id
from kinst.targets.errors import ImageError


def has_same_build_id(image: ElfLike, file: ElfLike) -> bool:
    """Whether the build-ids of an image and its debug file agree; False: one has none.

    Raises:
        ImageError: they differ.
    """
    ours, theirs = build_id(image), build_id(file)
    if ours is None or theirs is None:
        return False
    if ours != theirs:
        raise ImageError(
            f"{file.path}: made from another build: its build-id is {theirs.hex()}, the image's {ours.hex()}"
        )
    return True


def check_same_code(image: ElfLike, file: ElfLike) -> None:
    """Raise ImageError if the code of a debug file is for another machine than the image's, or at other addresses."""
    if image.header.machine != file.header.machine:
        raise ImageError(f"{file.path}: made for another machine than {image.path}")
    if image.header.kind is FileKind.REL:
        return
    there = {one.name: (one.address, one.size) for one in file.sections if one.flags & SHF_EXECINSTR}
    for one in image.sections:
        place = there.get(one.name, (one.address, one.size))
        if one.flags & SHF_EXECINSTR and place != (one.address, one.size):
            raise ImageError(
                f"{file.path}: made from another build: {one.name} is at {place[0]:#x} ({place[1]:#x} bytes) there, "
                f"at {one.address:#x} ({one.size:#x} bytes) in {image.path}"
            )
