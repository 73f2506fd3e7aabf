"""Segments of a file -> what PT_DYNAMIC tells the loader.

LIEF is not asked: it follows what entries point to, which an outline does not have, and warns of unknown tags.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import PT_DYNAMIC, PT_INTERP
from kinst.targets.elf.sections import Segment

_NEEDED: Final = 1
_SONAME: Final = 14


def dynamic_entries(data: NDArray[np.uint8], segments: Iterable[Segment]) -> Mapping[int, int]:
    """Value by d_tag, the last of several; empty if there is no PT_DYNAMIC."""
    dynamic = next((segment for segment in segments if segment.kind == PT_DYNAMIC), None)
    if dynamic is None:
        return {}
    rows = data[dynamic.offset : dynamic.offset + dynamic.file_size]
    entries = np.frombuffer(rows[: len(rows) // 16 * 16].tobytes(), "<u8").reshape(-1, 2)
    ends = np.flatnonzero(entries[:, 0] == 0)  # DT_NULL
    return dict(entries[: ends[0] if len(ends) else None].tolist())


def is_library(data: NDArray[np.uint8], segments: Iterable[Segment]) -> bool:
    """Whether a dynamic linker loads the file on behalf of others: it needs libraries itself, which the linker and
    firmware do not, and has a name for those that need it, or names no linker of its own, which programs do."""
    segments = tuple(segments)
    entries = dynamic_entries(data, segments)
    is_started = any(segment.kind == PT_INTERP for segment in segments)
    return _NEEDED in entries and (_SONAME in entries or not is_started)
