"""Sv48, Sv57 and Sv39."""

from collections.abc import Iterator
from typing import Final

from kinst.runtime.readout.tables.reading import Reading, Readings

_MODES: Final = (9, 10, 8)  # satp.MODE
_SUM_MXR: Final = 3 << 18  # the supervisor reads user pages, too


def _readings(root: int) -> Iterator[Reading]:
    for mode in _MODES:
        yield Reading({"priv": 1, "satp": mode << 60 | root >> 12, "sstatus": _SUM_MXR})


READINGS: Final[Readings] = _readings
