"""How control goes through functions drawn at random, against what following every path says; and how long it takes."""

import random
import time
from types import MappingProxyType

import numpy as np
import pytest

from kinst.rewriter.naming.control_flow import ControlFlows
from kinst.rewriter.naming.sites import Decoded, decoded
from kinst.targets.functions.found import Functions
from kinst.targets.instruction import Flow, Instructions
from tests.gated import long_where

START = 0x1000
COMING_BACK = (Flow.NEXT, Flow.NEXT, Flow.CALL, Flow.BRANCH, Flow.BRANCH)
FLOWS = (*COMING_BACK, Flow.JUMP, Flow.RETURN, Flow.INDIRECT_JUMP)


def drawn(seed: int, size: int, *, near: int, flows: tuple[Flow, ...] = FLOWS) -> Decoded:
    """A function of instructions of 4 bytes; jumps lead up to `near` instructions away, sometimes out of it."""
    choose = random.Random(seed)
    flow = np.array([choose.choice(flows) for _ in range(size)], np.uint8)
    distance = np.array([choose.randint(-near, near) for _ in range(size)])
    address = START + 4 * np.arange(size)
    none = np.zeros(size, np.uint8)
    found = Instructions(
        address.astype(np.uint64),
        np.maximum(address + 4 * distance, 0).astype(np.uint64),
        none.astype(np.int32),
        none + np.uint8(4),
        none,
        flow,
        none,
        none,
    )
    bounds = np.array([START], np.uint64), np.array([4 * size], np.uint64)
    return decoded(Functions(*bounds, np.zeros(1, np.uint8), ("f",), MappingProxyType({})), found)


def following(code: Decoded, at: int) -> set[int]:
    """Where control may go, as positions; those outside of the function are negative or too large."""
    flow, target = code.instructions.flow[at], (int(code.instructions.target[at]) - START) // 4
    falls = {at + 1} if flow in (Flow.NEXT, Flow.CALL, Flow.BRANCH) else set()
    return falls | ({target} if flow in (Flow.JUMP, Flow.BRANCH) else set())


def reached(code: Decoded, without: int) -> set[int]:
    found, waiting = set[int](), [0]
    while waiting:
        at = waiting.pop()
        if at not in found and at != without and 0 <= at < len(code.instructions):
            found.add(at)
            waiting += following(code, at)
    return found


def leading_into(code: Decoded, core: set[int], entry: int) -> set[int]:
    """The smallest set all of whose members' paths lead into it or the core."""
    found = set[int]()
    while True:
        goals = (core | found) - {entry}
        more = {
            at
            for at in range(len(code.instructions))
            if at not in core
            and at not in found
            and at != entry
            and following(code, at)
            and following(code, at) <= goals
        }
        if not more:
            return found
        found |= more


@pytest.mark.parametrize("seed", long_where(range(40), lambda seed: seed >= 15))
def test_as_following_every_path(seed: int) -> None:
    code = drawn(seed, 40, near=6 if seed % 2 else 45)
    flow, choose = ControlFlows(code).of([0]), random.Random(seed)
    assert flow is not None
    everything = np.arange(len(code.instructions))
    for _ in range(10):
        entry, core = choose.randrange(40), set(choose.sample(range(40), 6))
        assert set(np.flatnonzero(flow.reached_without(everything, entry)).tolist()) == reached(code, entry)
        assert flow.leading_into(frozenset(core), entry) == leading_into(code, core, entry)


def test_many_copies_of_a_large_function_take_no_time() -> None:
    """get_cpu_info_from_stack() of Xen has 2,772 copies; a path through the function for each took 9 s."""
    code = drawn(1, 20_000, near=40, flows=COMING_BACK)
    flows, started = ControlFlows(code), time.process_time()
    for at in range(0, 20_000, 10):
        flow = flows.of([0])
        assert flow is not None
        flow.reached_without(np.arange(at, at + 10), at)
        flow.leading_into(frozenset(range(at, at + 10)), at)
    assert time.process_time() - started < 2
