"""A Linux kernel -> where a system call's handler has returned, whichever it was.

Most handlers end by a tail call, where no record could say what they return, and when. What calls them is one place, or
few: the instructions after these calls, where the result is in its register; or, before that is so, the entry of the
function that the kernel calls then, which gets the saved registers with the result in them.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from kinst.rewriter.arch.registry import dissector
from kinst.targets.elf.sections import CodeRegion
from kinst.targets.elf.symbols import SHN_UNDEF, STT_FUNC
from kinst.targets.image import Image
from kinst.targets.instruction import Flow
from kinst.targets.module_code import code_of
from kinst.targets.values import dataclass

_LONGEST: Final = 1 << 14  # bytes of a function that calls handlers


@dataclass(frozen=True, slots=True)
class WayOut:
    """The description of a place, and whether the result is in its register there; else in the saved registers, to
    which the first argument points."""

    description: str
    has_result: bool


def ways_out(image: Image) -> tuple[WayOut, ...]:
    """All of them; none: it is not known where handlers return to."""
    facts = image.facts.linux.system_calls
    if facts.exit and image.symbols.address_of(facts.exit) is not None:
        return (WayOut(f"fbt::{facts.exit}:entry", has_result=False),)
    found = sorted({after for name in facts.callers for after in _after_calls(image, name, facts.dispatcher)})
    return tuple(WayOut(f"kinst::{address:#x}:", has_result=True) for address in found)


def _after_calls(image: Image, name: str, dispatcher: str) -> Iterator[int]:
    """The addresses after a function's calls of handlers. A compiler may add to its name (.constprop.0)."""
    target = image.symbols.address_of(dispatcher) if dispatcher else None
    if dispatcher and target is None:
        return
    for start, end in _functions(image, name):
        region = next((one for one in image.code_regions if one.address <= start < one.address + one.size), None)
        if region is not None:
            yield from _after_calls_in(image, region, start, end, target)


def _after_calls_in(image: Image, region: CodeRegion, start: int, end: int, target: int | None) -> Iterator[int]:
    bounds = np.array([[start - region.address, min(end - region.address, region.size)]], np.int64)
    found = dissector(image.facts).dissect(code_of(image, region), region.address, bounds)
    calls = found.flow == Flow.INDIRECT_CALL
    if target is not None:
        calls = (found.flow == Flow.CALL) & (found.target == np.uint64(target))
    after = found.address[calls] + found.size[calls]
    yield from (address for address in after.tolist() if address < end)


def _functions(image: Image, name: str) -> Iterator[tuple[int, int]]:
    """Where the functions of a name begin and end. Names that a kernel keeps itself come without sizes."""
    symbols = image.symbols
    rows = np.flatnonzero((symbols.kind == STT_FUNC) & (symbols.section != SHN_UNDEF))
    starts = np.sort(symbols.address[rows])
    for row, text in zip(rows.tolist(), symbols.names(rows), strict=True):
        if text == name or text.startswith(f"{name}."):
            start = int(symbols.address[row])
            following = starts[np.searchsorted(starts, start, "right") :][:1].tolist()
            size = int(symbols.size[row]) or (following[0] - start if following else _LONGEST)
            yield start, start + min(size, _LONGEST)
