"""Bytes of which nothing is known but that most of them are code -> the targets of the direct calls among them."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.code_shape import Field
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.patterns import matches

_WINDOW: Final = 8  # bytes of an instruction that are examined


def call_targets(code: NDArray[np.uint8], address: int, facts: ArchFacts) -> NDArray[np.uint64]:
    """The targets of what looks like direct calls; `address` is that of the first byte.

    Data among the code, and on amd64 any byte e8, adds some by chance.
    """
    step = facts.instruction_alignment
    count = (len(code) - _WINDOW) // step + 1
    if count <= 0:
        return np.zeros(0, np.uint64)
    heads = np.ndarray((count,), "<u8", np.ascontiguousarray(code), strides=(step,))
    found = [np.zeros(0, np.uint64)]
    for call in facts.code_shape.calls:
        rows = np.flatnonzero(matches(heads, (call.shape,)))
        start = np.uint64(address + call.origin) + rows.astype(np.uint64) * np.uint64(step)
        found.append(start + sum((_number(heads[rows], field) for field in call.fields), np.uint64(0)))
    return np.concatenate(found)


def _number(heads: NDArray[np.uint64], field: Field) -> NDArray[np.uint64]:
    """A field's part of a number, modulo 2**64."""
    found = heads >> np.uint64(field.low) & np.uint64((1 << field.bits) - 1)
    sign = np.uint64(1 << field.bits - 1 if field.is_signed else 0)
    return (found ^ sign) - sign << np.uint64(field.place)
