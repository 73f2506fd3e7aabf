"""arm64: an instruction that is emulated since it refers to where it is -> words that do the same in a slot.

    adr, adrp                  | what gives the same address there | brk
    cbz, cbnz, tbz, tbnz, b.c  | the same, to the fourth word      | brk | brk | b target

The second word ends it as it ends any other trampoline, with a breakpoint or, where one reaches, a jump. Of a slot's
words only the first is counted as an instruction (`kinst.runtime.engine.native_hooks`): slots have eight bytes, so the
fourth word is at no slot's start.
"""

from typing import Final

from kinst.rewriter.arch.arm64 import IMM14, IMM19, IMM21, IMM21_PAGE
from kinst.rewriter.arch.patterns import Immediate
from kinst.rewriter.standalone.arm64.words import address_of, jump, word
from kinst.rewriter.standalone.code.trampoline import ImmovableError
from kinst.targets.arch.arm64 import ARM64, Kind

_PAGE: Final = 4096
_BRK: Final = ARM64.breakpoints[4]
_BRANCHES: Final = {
    Kind.B_COND: IMM19,
    Kind.CBZ: IMM19,
    Kind.CBNZ: IMM19,
    Kind.TBZ: IMM14,
    Kind.TBNZ: IMM14,
}
_TAKEN: Final = 12  # bytes from the slot to where a taken branch leads: past the end, which `SiteCounter` rewrites


def out_of_line_trampoline(kind: int, instruction: bytes, address: int, slot: int) -> bytes | None:
    """The words at `slot` for an instruction at `address`; None if they do not reach what it refers to."""
    value = int.from_bytes(instruction, "little")
    if kind in _BRANCHES:
        return _branch(value, _BRANCHES[Kind(kind)], address, slot)
    target = address + IMM21.of(value) if kind == Kind.ADR else (address & -_PAGE) + IMM21_PAGE.of(value)
    # The second word is the breakpoint, so `adrp` cannot be followed by `add`: a target out of adr's 1 MiB must be the
    # start of a page.
    try:
        same = address_of(value & 31, slot, target)
    except ImmovableError:
        return None
    return same + _BRK if len(same) == 4 else None


def _branch(value: int, immediate: Immediate, address: int, slot: int) -> bytes | None:
    leaving, bits = jump(slot + _TAKEN, address + immediate.of(value)), immediate.placed(_TAKEN)
    if leaving is None or bits is None:
        return None
    return word(value & ~immediate.mask | bits) + _BRK + _BRK + leaving
