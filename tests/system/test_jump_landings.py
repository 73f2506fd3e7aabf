"""Whole runs of real code: control never comes to a byte that a jump would cover, but by the instruction before it."""

import numpy as np
import pytest
from numpy.typing import NDArray

from kinst.rewriter.jumps.decide import decide
from kinst.rewriter.jumps.methods import JumpMethod
from kinst.rewriter.program import instructions_of
from kinst.rewriter.rewriting import Source, open_source
from kinst.targets.instruction import Verdict
from tests.gated import long_where
from tests.system.cases import BY_NAME
from tests.system.plain import Plain, plain_run

IMAGES = ("kernel-amd64", "gnumach", "kernel-riscv64", "opensbi-1.6")
COVERING = (JumpMethod.ALONE, JumpMethod.TOGETHER, JumpMethod.PADDING)
IRETS = tuple(map(bytes.fromhex, ("48cf", "73002030", "73002010")))  # iretq, mret, sret


def landed(plain: Plain) -> NDArray[np.uint64]:
    """Link addresses to which control came from elsewhere. An interrupt comes back where it found the CPU, and a
    repeated instruction to itself."""
    (pairs, _), image = plain.trace.steps(), plain.run.guest.loaded.image
    found = list[int]()
    for distance in plain.distances:
        for start, end in (pairs[pairs[:, 0] != pairs[:, 1]] - np.uint64(distance % 2**64)).tolist():
            offset = image.offset_of(start)
            if offset is None or not image.data[offset : offset + 4].tobytes().startswith(IRETS):
                found.append(end)
    return np.array(sorted(set(found)), np.uint64)


def covered(start: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    """The bytes behind the first one at each address."""
    return np.concatenate([start + np.uint64(byte) for byte in range(1, size)])


@pytest.mark.parametrize("image", long_where(IMAGES, lambda name: not name.startswith("kernel")))
def test_nothing_comes_to_what_a_jump_covers(image: str) -> None:
    case = BY_NAME[image]
    program = open_source(Source(case.path)).program
    found = instructions_of(program, np.arange(len(program.functions)))
    jump = program.image.facts.jump
    sites = np.flatnonzero(found.verdict != Verdict.REFUSE)
    decisions = decide(program, found, sites)
    start = found.address[sites]
    reached = landed(plain_run(case))

    inside = covered(start[np.isin(decisions.method, COVERING)], jump.size)
    relayed = decisions.method == JumpMethod.RELAY
    room = np.concatenate([decisions.relay[relayed], covered(decisions.relay[relayed], jump.size)])
    assert not np.isin(reached, np.concatenate([inside, covered(start[relayed], 2), room])).any()
    assert not plain_run(case).executed(room).any()
    # Were jumps put everywhere, it would be seen.
    assert np.isin(reached, covered(start[found.size[sites] < jump.size], jump.size)).sum() > 20
