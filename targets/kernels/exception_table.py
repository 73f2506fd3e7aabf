"""An image -> the instructions whose faults its kernel expects: those in an exception table of Linux or Xen."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.linux import Pointer
from kinst.targets.image import Image
from kinst.targets.kernels.kernel_tables import record_addresses, records_of, table_place
from kinst.targets.values import dataclass

_SECTION: Final = "__ex_table"
_SYMBOLS: Final = "__start___ex_table", "__stop___ex_table"
# struct exception_table_entry: s32 insn, s32 fixup [, s32 type or data]; two words where they are absolute.
_LAYOUTS: Final = (
    (12, Pointer(0), Pointer(4)),
    (8, Pointer(0), Pointer(4)),
    (16, Pointer(0, is_relative=False), Pointer(8, is_relative=False)),
)
_FITTING: Final = 0.95  # share of a table's addresses that must be code for a layout to be the right one
_NONE: Final = np.zeros(0, np.uint64)


@dataclass(frozen=True, slots=True)
class ExpectedFaults:
    """Columns, one row an entry: the instruction that may fault, and where the kernel resumes."""

    instruction: NDArray[np.uint64]
    fixup: NDArray[np.uint64]


def expected_faults(image: Image) -> ExpectedFaults:
    """The entries of the table; none if there is no table, or none that can be read."""
    place = table_place(image, _SECTION, _SYMBOLS)
    for width, *fields in _LAYOUTS if place is not None else ():
        if place is None or place[1] % width:
            continue
        rows, starts = records_of(image, place, width)
        found = [record_addresses(image, rows, starts, field) for field in fields]
        if np.mean(image.is_code(found[0])) >= _FITTING:
            return ExpectedFaults(*found)
    return ExpectedFaults(_NONE, _NONE)
