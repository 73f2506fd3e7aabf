"""An image -> the instructions whose faults its kernel expects: those in an exception table of Linux or Xen."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.linux import Pointer, RecordLayout
from kinst.targets.elf.header import FileKind
from kinst.targets.image import Image
from kinst.targets.kernel_tables import record_addresses, table_place

_SECTION: Final = "__ex_table"
_SYMBOLS: Final = "__start___ex_table", "__stop___ex_table"
# struct exception_table_entry: s32 insn, s32 fixup [, s32 type or data]; two words where they are absolute.
_LAYOUTS: Final = (
    RecordLayout(12, Pointer(0)),
    RecordLayout(8, Pointer(0)),
    RecordLayout(16, Pointer(0, is_relative=False)),
)
_FITTING: Final = 0.95  # share of a table's addresses that must be code for a layout to be the right one


def expected_faults(image: Image) -> NDArray[np.uint64]:
    """The addresses of the table's instructions, ascending; none if there is no table that can be read."""
    place = None if image.kind is FileKind.REL else table_place(image, _SECTION, _SYMBOLS)
    if place is None:
        return np.zeros(0, np.uint64)
    address, size = place
    for layout in _LAYOUTS:
        if size % layout.size:
            continue
        rows = np.frombuffer(image.read(address, size), np.uint8).reshape(-1, layout.size)
        starts = np.uint64(address) + np.arange(len(rows), dtype=np.uint64) * np.uint64(layout.size)
        found = record_addresses(image, rows, starts, layout.site)
        if np.mean(image.is_code(found)) >= _FITTING:
            return np.unique(found)
    return np.zeros(0, np.uint64)
