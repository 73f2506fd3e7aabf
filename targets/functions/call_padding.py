"""Functions -> the same without the padding in front of functions, which only a symbol calls one.

Linux since 6.2 keeps nops in front of each function, for code that it may call instead (CONFIG_CALL_PADDING), and its
objtool names them: ``__pfx_vfs_read`` ends where ``vfs_read`` begins. Nothing is executed there, and its own tracer
does not know them.
"""

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.functions.found import Functions
from kinst.targets.image import Image

_PREFIX: Final = "__pfx_"
_NOP: Final = 1  # byte


def without_call_padding(image: Image, functions: Functions) -> Functions:
    """All other functions."""
    nop = image.facts.sized_nops.get(_NOP)
    named = [row for row, name in enumerate(functions.names[:-1]) if name.startswith(_PREFIX)]
    rows = np.array([row for row in named if _is_of_next(functions, row)], np.int64)
    if nop is None or not len(rows):
        return functions
    offsets, sizes = image.offsets_of(functions.address[rows]).tolist(), functions.size[rows].tolist()
    gone = [
        at >= 0 and not image.data[at : at + size].tobytes().strip(nop) for at, size in zip(offsets, sizes, strict=True)
    ]
    return _taken(functions, np.delete(np.arange(len(functions)), rows[gone]))


def _is_of_next(functions: Functions, row: int) -> bool:
    """Whether it ends where the function begins that its name has."""
    wanted = functions.names[row].removeprefix(_PREFIX)
    names = functions.names[row + 1], *functions.aliases.get(row + 1, ())
    return bool(functions.address[row] + functions.size[row] == functions.address[row + 1]) and wanted in names


def _taken(functions: Functions, rows: NDArray[np.intp]) -> Functions:
    names = tuple(functions.names[row] for row in rows.tolist())
    aliases = {at: functions.aliases[row] for at, row in enumerate(rows.tolist()) if row in functions.aliases}
    columns = (functions.address[rows], functions.size[rows], functions.evidence[rows])
    return replace(Functions(*columns, names, aliases), strict=functions.strict)
