"""Where a file has its CTF. Apart from what reads it, since most files have none."""

from typing import Final

from kinst.targets.elf.file import ElfLike
from kinst.targets.elf.sections import Section

SECTIONS: Final = (".SUNW_ctf", ".ctf")


def ctf_section(elf: ElfLike) -> Section | None:
    """The section of a file that has its CTF."""
    return next((one for name in SECTIONS for one in elf.sections if one.name == name and one.size), None)
