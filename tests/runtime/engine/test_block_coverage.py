"""What counts blocks for coverage: its machine code, executed by Unicorn for each host, against the same in Python."""

import random
from collections import Counter

import pytest
import unicorn

from kinst.runtime.engine.covered.block_coverage import BlockCoverage
from kinst.runtime.engine.host.cover import COVER, CoverState
from tests.runtime.engine.host_memory import host_code
from tests.runtime.engine.test_native_hooks import BACK, CODE, HOSTS, STATE, UC, Host

TABLE, FRESH, FULL, STACK, LOG = 0x200000, 0x40000, 0x41000, 0x30000, 0x42000
SIZES = (0, 1, 3, 200)
RANGES = ((0x7000, 0x20), (0xFFFF_FFFF_8000_0000, 0x1000))


def failed(error: BaseException) -> None:
    raise error


def is_call(address: int, place: int) -> bool:
    return address % 2 == place


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


def stored(coverage: BlockCoverage) -> list[int]:
    assert coverage.log is not None
    return [number for part in coverage.log.taken() for number in part.tolist()]


def executed(host: Host, code: bytes, coverage: BlockCoverage, block: tuple[int, int]) -> bool:
    """Execute the host's code for a block that may have a row; returns whether it asks for one. What it stores of
    calls, or asks to be stored, goes to the log."""
    cpu = unicorn.Uc(host.arch, host.mode)
    for start, size in ((CODE, 0x50000), (TABLE, len(coverage._memory))):
        cpu.mem_map(start, size)
    state, asked = CoverState.from_buffer_copy(coverage._state), list[int]()
    full = list[int]()
    assert coverage.log is not None
    room = (coverage.log._used + 1) % 3  # often there is none
    state.rows, state.fresh, state.full, state.next, state.end = TABLE, FRESH, FULL, LOG, LOG + 4 * room
    for start, content in (
        (CODE, code),
        (STATE, bytes(state)),
        (TABLE, bytes(coverage._memory)),
        (FRESH, host.returns),
        (FULL, host.returns),
    ):
        cpu.mem_write(start, content)
    cpu.mem_write(STACK, BACK.to_bytes(8, "little"))
    cpu.reg_write(host.stack, STACK)
    if host.arch == unicorn.UC_ARCH_ARM64:
        cpu.reg_write(unicorn.arm64_const.UC_ARM64_REG_LR, BACK)
    for register, value in zip(host.arguments, (UC, *block, STATE), strict=True):
        cpu.reg_write(register, value)
    cpu.hook_add(unicorn.UC_HOOK_CODE, lambda *_: asked.append(1), begin=FRESH, end=FRESH)
    cpu.hook_add(unicorn.UC_HOOK_CODE, lambda *_: full.append(1), begin=FULL, end=FULL)
    cpu.emu_start(CODE, BACK)
    coverage._memory[:] = bytes(cpu.mem_read(TABLE, len(coverage._memory)))
    after = CoverState.from_buffer_copy(cpu.mem_read(STATE, len(bytes(state))))
    coverage._state.last = after.last and after.last - TABLE + coverage._state.rows
    count = (after.next - LOG) // 4
    numbers = ([coverage._last_call()] if full else []) + list(memoryview(cpu.mem_read(LOG, 4 * count)).cast("I"))
    assert len(numbers) <= 1 and (not full or not room)
    for number in numbers:
        coverage.log.add(number)
    return bool(asked)


@pytest.mark.parametrize("ranges", [(), RANGES])
@pytest.mark.parametrize("name", HOSTS)
def test_blocks_are_counted_as_in_python(name: str, ranges: tuple[tuple[int, int], ...]) -> None:
    code, here = host_code(COVER, name), BlockCoverage(lambda _address: 0, failed, is_call)
    there = BlockCoverage(lambda _address: 0, failed, is_call)
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
    assert stored(here) == stored(there) != []
    assert max(counted(here).values()) > 1


def test_a_table_that_grows_keeps_its_counts() -> None:
    coverage = BlockCoverage(lambda address: address % 7, failed, lambda address, _place: address % 3 == 0)
    coverage._make_rows(8)
    blocks = drawn(3)
    for block in blocks:
        coverage.count(*block)
    first = {block: number for number, block in enumerate(dict.fromkeys((at, size or 1) for at, size in blocks), 1)}
    assert stored(coverage) == [first[at, size or 1] for at, size in blocks if at % 3 == 0]
    assert counted(coverage) == Counter((address, size or 1) for address, size in blocks)
    assert coverage._state.mask > 8
    assert all(
        place == address % 7
        for address, place in zip(coverage.taken().address.tolist(), coverage.taken().place.tolist(), strict=True)
    )


def test_what_a_block_did_not_do_is_known() -> None:
    coverage = BlockCoverage(lambda _address: 0, failed, lambda _address, _place: True)
    for pc, has_begun in ((100, False), (104, False), (104, True), (110, False), (99, True)):
        coverage.count(100, 10)
        coverage.leave(pc, has_begun=has_begun)
        coverage.leave(pc, has_begun=has_begun)  # nothing is noted twice
    taken = coverage.taken()
    assert (taken.runs.tolist(), taken.left) == ([4], ((0, 4, 1), (0, 5, 1)))
    assert stored(coverage) == [1] * 4
