"""What the hook at blocks counts: its machine code, executed by Unicorn for each host, against what it stands for in
Python."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pytest
import unicorn

from kinst.runtime.engine.host.blocks import BLOCKS
from kinst.runtime.engine.native_hooks import BlockHook
from tests.runtime.engine.host_memory import host_code
from tests.runtime.engine.test_native_hooks import BACK, CODE, HOSTS, STATE, STOP, UC, Host, state_in, state_with

LINK, HERE, THERE = 0x40_0000, 0x10_0000, 0x8000_0000  # where code was linked, and how far from there it is
TABLES: Final = {"bits": 0x200000, "rows": 0x240000, "cells": 0x280000}


@dataclass(frozen=True)
class Case:
    """Sites by distance from where code was linked, from how far before them control comes to each, and a block."""

    sites: tuple[int, ...]
    leads: tuple[int, ...]
    off: int  # a site that is turned off
    place: int
    start: int
    size: int
    is_stopped: bool

    def hook(self) -> BlockHook:
        hook = BlockHook(STOP, lambda error: pytest.fail(str(error)))
        addresses = np.array(self.sites, np.uint64) + np.uint64(LINK)
        hook.counters.set(addresses, np.array(self.leads, np.uint64))
        hook.counters.turn_on(np.arange(len(self.sites)))
        hook.counters.turn_off(np.array([self.off]))
        hook.counters.be_at([HERE, THERE])
        if self.is_stopped:
            hook.request()
        return hook

    @property
    def block(self) -> tuple[int, int]:
        return LINK + self.place + self.start, self.size


def cases() -> Iterator[Case]:
    draw = random.Random(2)
    for _ in range(250):
        sites = tuple(sorted(draw.sample(range(64, 400), draw.choice((1, 2, 5)))))
        gaps = (site - before for before, site in zip((0, *sites), sites, strict=False))
        leads = tuple(draw.choice((0, 0, 5)) if gap > 5 else 0 for gap in gaps)
        near = draw.choice(sites) - draw.choice((0, 0, 5, 1, 60, 100))
        yield Case(
            sites=sites,
            leads=leads,
            off=draw.randrange(len(sites)),
            place=draw.choice((HERE, HERE, THERE, 0)),
            start=draw.choice((near, near, -20000, 20000)),
            size=draw.choice((1, 4, 5, 6, 30, 57, 58, 120, 300)),
            is_stopped=draw.random() < 0.1,
        )


Done = tuple[bool, list[int], bool]


def in_python(case: Case) -> Done:
    """Whether the run ended, what was counted, and whether a site inside is why."""
    hook = case.hook()
    ended = case.is_stopped or hook.counters.count(*case.block)
    return ended, hook.counters._cells[0].tolist(), hook.counters.stopped_before() is not None


def executed(case: Case, host: Host, code: bytes) -> Done:
    hook, cpu = case.hook(), unicorn.Uc(host.arch, host.mode)
    for start, size in ((CODE, 0x50000), (0x200000, 0x100000)):
        cpu.mem_map(start, size)
    counters = hook.counters
    cpu.mem_write(CODE, code)
    cpu.mem_write(STATE, state_with(hook, TABLES))
    cpu.mem_write(TABLES["bits"], bytes(counters._bits))
    cpu.mem_write(TABLES["rows"], counters._rows.tobytes())
    cpu.mem_write(STOP, host.returns)
    cpu.reg_write(host.stack, 0x30000)
    cpu.mem_write(0x30000, BACK.to_bytes(8, "little"))
    if host.arch == unicorn.UC_ARCH_ARM64:
        cpu.reg_write(unicorn.arm64_const.UC_ARM64_REG_LR, BACK)
    for register, value in zip(host.arguments, (UC, *case.block, STATE), strict=True):
        cpu.reg_write(register, value)
    cpu.emu_start(CODE, BACK)
    cells = np.frombuffer(cpu.mem_read(TABLES["cells"], 8 * len(case.sites)), np.uint64).tolist()
    after = state_in(cpu)
    return bool(after.has_stopped), cells, bool(after.inside)


@pytest.mark.parametrize("name", HOSTS)
def test_blocks_are_counted_as_in_python(name: str) -> None:
    seen = set()
    for case in cases():
        found = executed(case, HOSTS[name], host_code(BLOCKS, name))
        assert found == in_python(case), case
        seen.add((found[0], any(found[1]), found[2]))
    assert seen == {(False, False, False), (False, True, False), (True, False, False), (True, False, True)}


def test_a_hit_is_taken_back_where_the_run_ended_before_it() -> None:
    hook = Case((100,), (5,), 0, HERE, 95, 30, is_stopped=False).hook()
    hook.counters.turn_on(np.array([0]))
    for start, size, hits in ((95, 30, 1), (100, 4, 1), (95, 5, 0)):
        hook.counters.count(LINK + HERE + start, size)
        assert hook.counters._cells[0].tolist() == [hits]
        hook.counters.take_back(LINK + HERE + start)
        assert not hook.counters.take()


def test_each_cpu_has_its_own() -> None:
    hook = Case((100, 200), (0, 0), 1, HERE, 0, 0, is_stopped=False).hook()
    for cpu in (0, 1, 1):
        hook.counters.use(cpu)
        hook.counters.count(LINK + HERE + 100, 4)
    assert hook.counters.take() == [(0, 0, 1), (1, 0, 2)]
    assert hook.counters.take() == []
