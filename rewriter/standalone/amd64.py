"""amd64: jumps, and trampolines of probes that are done in the image itself."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.standalone.amd64_moved import moved
from kinst.rewriter.standalone.amd64_pieces import Piece, joined, jump_to, signed_bytes
from kinst.rewriter.standalone.amd64_stacks import switches_stack, uses_stack
from kinst.rewriter.standalone.amd64_tasks import done
from kinst.rewriter.standalone.trampoline import Covered, ImmovableError
from kinst.targets.arch.amd64 import AMD64, BREAKPOINT
from kinst.targets.instruction import Flow

_FALLS: Final = (Flow.NEXT, Flow.BRANCH)
_CALLS: Final = (Flow.CALL, Flow.INDIRECT_CALL)
_SHORT_JUMP: Final = b"\xeb"
_SHORT_SIZE: Final = 2


class Amd64Maker:
    """The `Maker` of 64-bit mode."""

    def jump(self, address: int, size: int, target: int, dead: int = 0) -> bytes:
        """See `Maker.jump`: e9 rel32, or eb rel8 where that has no room."""
        if size >= AMD64.jump.size:
            code = jump_to(target).placed(address)
        elif size >= _SHORT_SIZE:
            code = _SHORT_JUMP + signed_bytes(target - address - _SHORT_SIZE, 1)
        else:
            raise ImmovableError("it is too short for a jump")
        return code.ljust(size, BREAKPOINT)

    def trampoline(self, group: Sequence[Covered], address: int) -> bytes:
        """See `Maker.trampoline`."""
        pieces = [joined((done(one), moved(one))) for one in group]
        copies, at = dict[int, int](), address
        for one, piece in zip(group, pieces, strict=True):
            copies[one.address] = at
            at += len(piece.code)
        if group[-1].flow in _FALLS:
            pieces.append(jump_to(_end(group)))
        _check(group, pieces, copies)
        return joined(pieces).placed(address, copies)

    def switches_stack(
        self, code: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.uint8]
    ) -> NDArray[np.bool_]:
        """See `Maker.switches_stack`."""
        return switches_stack(code, offsets, sizes)

    def uses_stack(
        self, code: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.uint8]
    ) -> NDArray[np.bool_]:
        """See `Maker.uses_stack`."""
        return uses_stack(code, offsets, sizes)


MAKER: Final = Amd64Maker()


def _end(group: Sequence[Covered]) -> int:
    return group[-1].address + len(group[-1].code)


def _check(group: Sequence[Covered], pieces: Sequence[Piece], copies: dict[int, int]) -> None:
    """Nothing may come back to, or branch into, what the jump overwrites."""
    if any(one.flow in _CALLS for one in group[:-1]):
        raise ImmovableError("a call in it comes back to where it was")
    inside = range(group[0].address, _end(group))
    for piece in pieces:
        if any(one.is_branch and one.target in inside and one.target not in copies for one in piece.distances):
            raise ImmovableError("a branch in it leads into an instruction that moves")
