"""Addresses of sites, and of their trampolines -> the jumps."""

from collections.abc import Callable, Sequence

import numpy as np

from kinst.rewriter.standalone.code.laying import Laid, Pieces, lay
from kinst.rewriter.standalone.code.parts import GOAL, Addresses, Bytes, Numbers, as_bytes, distances, ranges
from kinst.rewriter.standalone.code.templates import Templates
from kinst.rewriter.standalone.code.trampoline import Masks
from kinst.targets.instruction import KEPT
from kinst.targets.kernels.leading_records import FIELD
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Jumps:
    """Addresses, sizes and the code of jumps, back to back."""

    at: Addresses
    size: Numbers
    code: Bytes


def lay_jumps(templates: Templates, at: Addresses, size: Numbers, goal: Addresses, dead: Masks) -> Laid:
    """The code of jumps at some addresses, each in at most `size` bytes."""
    template, rows = templates.jumps(size, dead), np.arange(len(at))
    nothing = np.zeros(len(at), np.int64)
    found = Pieces(template, rows, rows, np.zeros((len(at), KEPT), np.uint8), nothing, nothing - 1, {GOAL: goal})
    refused = templates.columns().refused[template]
    if refused.any():
        return Laid(np.zeros(0, np.uint8), nothing, at, at, refused, (at, at))
    return lay(templates, found, len(at), lambda _sizes: at)


def filled_up(laid: Laid, size: Numbers, filler: Callable[[int], bytes]) -> Bytes:
    """The code of jumps, each padded by breakpoints to its size: a stray branch to what a jump leaves of an instruction
    traps, instead of running half of another one."""
    length, start = np.diff(laid.start), np.cumsum(size) - size
    code, rest = np.zeros(int(size.sum()), np.uint8), size - length
    code[ranges(start, length)] = laid.code
    for lacking in np.unique(rest[rest > 0]).tolist():
        chosen = rest == lacking
        after = (start + length)[chosen]
        code[after[:, None] + np.arange(lacking)] = np.frombuffer(filler(lacking), np.uint8)
    return code


def led_to(field: Addresses, goal: Addresses) -> Jumps:
    """What the kernel's records hold that lead to these goals, as `Jumps`: the bytes are written with theirs."""
    distance = as_bytes(distances(field, goal), FIELD)
    return Jumps(field, np.full(len(field), FIELD), distance.reshape(-1))


def joined_jumps(several: Sequence[Jumps]) -> Jumps:
    """All jumps by address; those that touch become one range, since the manifest lists ranges."""
    if not several:
        return Jumps(np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.uint8))
    at, size, code = (np.concatenate([getattr(one, name) for one in several]) for name in ("at", "size", "code"))
    start, order = np.cumsum(size) - size, np.argsort(at)
    at, size, code = at[order], size[order], code[ranges(start[order], size[order])]
    first = np.flatnonzero(np.append(True, at[1:] != (at + size.view(np.uint64))[:-1]))
    return Jumps(at[first], np.add.reduceat(size, first), code)
