"""Instructions of arm64 -> those that rely on the stack: they make room on it or give it back.

C4.1.94: loads and stores of one register or a pair that write back to sp, before or after; C4.1.92: add and sub of sp
and a number.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.patterns import Pattern, PatternTable
from kinst.rewriter.arch.sweep import units_at

_OTHER, _USES = 0, 1
_TABLE: Final = PatternTable(
    (
        Pattern("pair, post- or pre-index", "-:2 101 . 0 .1 . -:12 11111 -:5", _USES),
        Pattern("single, post- or pre-index", "-:2 111 . 00 -:2 0 -:9 .1 11111 -:5", _USES),
        Pattern("add or sub sp, sp, #", "1 . 0 100010 . imm:12 11111 11111", _USES),
        Pattern("other", "-:32", _OTHER),
    ),
    width=32,
    key=((22, 10),),
)


def uses_stack(code: NDArray[np.uint8], offsets: NDArray[np.int64], _sizes: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """See `Maker.uses_stack`."""
    found: NDArray[np.bool_] = _TABLE.kind[_TABLE.match(units_at(code, offsets, 4))] == _USES
    return found
