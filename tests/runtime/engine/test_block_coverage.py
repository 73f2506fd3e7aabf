"""What counts blocks for coverage: its machine code, executed by Unicorn for each host, against the same in Python."""

import random
from collections import Counter

import pytest
import unicorn

from kinst.runtime.engine.covered.block_coverage import BlockCoverage
from kinst.runtime.engine.host.cover import COVER, CoverState
from tests.runtime.engine.host_memory import host_code
from tests.runtime.engine.test_native_hooks import BACK, CODE, HOSTS, STATE, UC, Host

TABLE, FRESH, STACK = 0x200000, 0x40000, 0x30000
SIZES = (0, 1, 3, 200)
RANGES = ((0x7000, 0x20), (0xFFFF_FFFF_8000_0000, 0x1000))


def failed(error: BaseException) -> None:
    raise error


def drawn(seed: int) -> list[tuple[int, int]]:
    """Blocks, of which many are the same."""
    draw = random.Random(seed)
    near = (*range(0x7000, 0x7040, 3), 0, (1 << 64) - 1, *range(0xFFFF_FFFF_8000_0000, 0xFFFF_FFFF_8000_0040, 5))
    return [(draw.choice(near), draw.choice(SIZES)) for _ in range(400)]


def counted(coverage: BlockCoverage) -> Counter[tuple[int, int]]:
    found = coverage.taken()
    return Counter(
        dict(zip(zip(found.address.tolist(), found.size.tolist(), strict=True), found.runs.tolist(), strict=True))
    )


def executed(host: Host, code: bytes, coverage: BlockCoverage, block: tuple[int, int]) -> bool:
    """Execute the host's code for a block that may have a row; returns whether it asks for one."""
    cpu = unicorn.Uc(host.arch, host.mode)
    for start, size in ((CODE, 0x50000), (TABLE, len(coverage._memory))):
        cpu.mem_map(start, size)
    state, asked = CoverState.from_buffer_copy(coverage._state), list[int]()
    state.rows, state.fresh = TABLE, FRESH
    for start, content in (
        (CODE, code),
        (STATE, bytes(state)),
        (TABLE, bytes(coverage._memory)),
        (FRESH, host.returns),
    ):
        cpu.mem_write(start, content)
    cpu.mem_write(STACK, BACK.to_bytes(8, "little"))
    cpu.reg_write(host.stack, STACK)
    if host.arch == unicorn.UC_ARCH_ARM64:
        cpu.reg_write(unicorn.arm64_const.UC_ARM64_REG_LR, BACK)
    for register, value in zip(host.arguments, (UC, *block, STATE), strict=True):
        cpu.reg_write(register, value)
    cpu.hook_add(unicorn.UC_HOOK_CODE, lambda *_: asked.append(1), begin=FRESH, end=FRESH)
    cpu.emu_start(CODE, BACK)
    coverage._memory[:] = bytes(cpu.mem_read(TABLE, len(coverage._memory)))
    last = CoverState.from_buffer_copy(cpu.mem_read(STATE, len(bytes(state)))).last
    coverage._state.last = last and last - TABLE + coverage._state.rows
    return bool(asked)


@pytest.mark.parametrize("ranges", [(), RANGES])
@pytest.mark.parametrize("name", HOSTS)
def test_blocks_are_counted_as_in_python(name: str, ranges: tuple[tuple[int, int], ...]) -> None:
    code, here = host_code(COVER, name), BlockCoverage(lambda _address: 0, failed)
    there = BlockCoverage(lambda _address: 0, failed)
    for one in (here, there):
        one._make_rows(1 << 10)
        one.confine(ranges)
    for address, size in drawn(len(ranges))[:120]:
        here.count(address, size)
        if executed(HOSTS[name], code, there, (address, size)):
            there._fresh(0, address, size, 0)
        rows = [one._state.last and one._state.last - one._state.rows for one in (here, there)]
        assert rows[0] == rows[1]
    assert counted(here) == counted(there)
    assert max(counted(here).values()) > 1


def test_a_table_that_grows_keeps_its_counts() -> None:
    coverage = BlockCoverage(lambda address: address % 7, failed)
    coverage._make_rows(8)
    blocks = drawn(3)
    for block in blocks:
        coverage.count(*block)
    assert counted(coverage) == Counter((address, size or 1) for address, size in blocks)
    assert coverage._state.mask > 8
    assert all(
        place == address % 7
        for address, place in zip(coverage.taken().address.tolist(), coverage.taken().place.tolist(), strict=True)
    )


def test_what_a_block_did_not_do_is_known() -> None:
    coverage = BlockCoverage(lambda _address: 0, failed)
    for pc, has_begun in ((100, False), (104, False), (104, True), (110, False), (99, True)):
        coverage.count(100, 10)
        coverage.leave(pc, has_begun=has_begun)
        coverage.leave(pc, has_begun=has_begun)  # nothing is noted twice
    taken = coverage.taken()
    assert (taken.runs.tolist(), taken.left) == ([4], ((0, 4, 1), (0, 5, 1)))
