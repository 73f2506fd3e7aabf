"""Which compiler made the CTF of a file: gcc before 14 wrote the dimensions of arrays from the last to the first."""

import re
from typing import Final

from kinst.targets.debuginfo.ctf.dictionary import ArrayOrder
from kinst.targets.debuginfo.ctf.parts import Format
from kinst.targets.elf.file import ElfLike
from kinst.targets.elf.sections import content

_GCC: Final = re.compile(rb"GCC: \([^\0]*\) (\d+)\.(\d+)\.\d+")
_MENDED: Final = 14
# The last releases before the fix (March 2024). Whether later ones of 12 and 13 have it is not known.
_LAST_WITHOUT: Final = {12: 3, 13: 2}


def array_order(elf: ElfLike, form: Format) -> ArrayOrder:
    """In which order the CTF of a file has dimensions, by .comment, in which each compiler leaves its version; of what
    was made before gcc knew CTF it is not known."""
    if not form.is_gnu:
        return ArrayOrder.OUTER_FIRST
    if not form.has_function_types:
        return ArrayOrder.UNKNOWN
    section = next((one for one in elf.sections if one.name == ".comment"), None)
    made_by = [] if section is None else _GCC.findall(content(elf.data, section).tobytes())
    orders = {_order(int(major), int(minor)) for major, minor in made_by}
    return orders.pop() if len(orders) == 1 else ArrayOrder.UNKNOWN


def _order(major: int, minor: int) -> ArrayOrder:
    if major >= _MENDED:
        return ArrayOrder.OUTER_FIRST
    return ArrayOrder.INNER_FIRST if minor <= _LAST_WITHOUT.get(major, -1) else ArrayOrder.UNKNOWN
