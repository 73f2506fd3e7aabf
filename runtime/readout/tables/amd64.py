"""Four levels of tables, and five."""

from collections.abc import Iterator
from typing import Final

from kinst.runtime.readout.tables.reading import Reading, Readings

_LA57: Final = 1 << 12  # in CR4


def _readings(root: int) -> Iterator[Reading]:
    """In ring 0, with PG, PE, WP, PAE, LMA, LME, NXE and AC."""
    for wide in (0, _LA57):
        cr4 = 1 << 5 | wide
        yield Reading({"cr0": 0x80010001, "cr3": root, "cr4": cr4, "efer": 0xD00, "cs": 0x10, "rflags": 1 << 18})


READINGS: Final[Readings] = _readings
