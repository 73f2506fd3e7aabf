"""A Linux image -> records of its tables that lead the kernel to an instruction, and that can lead it elsewhere.

The kernel rewrites these instructions at boot, each where its record says it is (`BootTable.leads`). A displaced one is
rewritten in its trampoline if the record has its address there.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.linux import BootTable
from kinst.targets.columns import holds
from kinst.targets.image import Image
from kinst.targets.kernels.kernel_tables import record_addresses, records_of, table_place
from kinst.targets.manifest.records import Manifest
from kinst.targets.values import dataclass

Addresses = NDArray[np.uint64]
FIELD: Final = 4  # bytes of an address relative to itself
SHORTEST, LONGEST = 5, 6  # bytes of an instruction that is led to: jmp rel32, with a prefix or without
_NONE: Final = np.zeros(0, np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class LeadingRecords:
    """Columns, ascending by `site`, without duplicates: an instruction, and where its record has its address, as
    `FIELD` bytes relative to themselves."""

    site: Addresses
    field: Addresses

    def fields_of(self, address: Addresses) -> Addresses:
        """The field of the record of the instruction at each address; 0: it has none."""
        if not len(self.site):
            return np.zeros(len(address), np.uint64)
        row = np.minimum(np.searchsorted(self.site, address), len(self.site) - 1)
        return np.where(self.site[row] == address, self.field[row], np.uint64(0))

    def without(self, others: NDArray[np.bool_]) -> "LeadingRecords":
        """The records less some rows."""
        return LeadingRecords(self.site[~others], self.field[~others])


def no_records() -> LeadingRecords:
    """None."""
    return LeadingRecords(_NONE, _NONE)


def leading_records(image: Image, *, in_text: bool = True) -> LeadingRecords:
    """The records of all tables whose records lead; an instruction with several of them has none here. `in_text`:
    whether they shall lead to what is within the kernel's text; else there are fewer."""
    sites, fields = [_NONE], [_NONE]
    for table in image.facts.linux.tables:
        place = _place_of(image, table)
        if place is not None and (in_text or not table.within_text):
            layout = table.layouts[0]
            rows, starts = records_of(image, place, layout.size)
            sites.append(record_addresses(image, rows, starts, layout.site))
            fields.append(starts + np.uint64(layout.site.offset))
    site, field = np.concatenate(sites), np.concatenate(fields)
    order = np.argsort(site, kind="stable")
    site, field = site[order], field[order]
    is_first = np.append(True, site[1:] != site[:-1])[: len(site)]
    several = site[~is_first]
    return LeadingRecords(site[is_first], field[is_first]).without(holds(site[is_first], several))


def led_elsewhere(image: Image, manifest: Manifest) -> Addresses:
    """Where the kernel in a standalone image finds the instructions whose records were changed, ascending: it writes
    there."""
    jumps, found = manifest.jumps, [_NONE]
    code = np.frombuffer(manifest.jump_code, np.uint8)
    start = np.cumsum(jumps["size"], dtype=np.uint64) - jumps["size"]
    for table in image.facts.linux.tables:
        place = _place_of(image, table)
        if place is None:
            continue
        first, end = np.searchsorted(jumps["address"], (place[0], place[0] + place[1])).tolist()
        for row in range(first, end):
            address, size, at = int(jumps["address"][row]), int(jumps["size"][row]), int(start[row])
            said = code[at : at + size - size % FIELD].view("<i4").astype(np.int64).view(np.uint64)
            found.append(np.uint64(address) + np.arange(0, FIELD * len(said), FIELD, dtype=np.uint64) + said)
    return np.sort(np.concatenate(found))


def _place_of(image: Image, table: BootTable) -> tuple[int, int] | None:
    """Where a table is whose records lead; None: it is none, or is not there, or has another layout."""
    if not table.leads:
        return None
    place = table_place(image, table.section, table.symbols)
    return None if place is None or place[1] % table.layouts[0].size else place
