"""Watched addresses, few and many: each is called for as often as the instruction is executed."""

import itertools
import mmap
import random
from typing import Final

import pytest
import unicorn

from kinst.runtime.engine.address_table import AddressTable
from kinst.runtime.engine.code_watch import ranges
from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.targets.arch.amd64 import AMD64

BASE, SIZE, EXECUTED = 0x8000_0000, 1 << 16, 4000
ADD: Final = bytes.fromhex("ffc0")  # inc eax
OVER: Final = bytes.fromhex("a801 7403 0fafc0")  # test al, 1; je behind; imul eax, eax


def program(draw: random.Random, pieces: int) -> tuple[bytes, list[int]]:
    """A loop without end, and the addresses of its instructions."""
    code, places = b"", list[int]()
    for _ in range(pieces):
        piece, starts = draw.choice(((ADD, (0,)), (b"\x90", (0,)), (OVER, (0, 2, 4))))
        places += [BASE + len(code) + start for start in starts]
        code += piece
    return code + b"\xe9" + (-len(code) - 5 & 0xFFFF_FFFF).to_bytes(4, "little"), [*places, BASE + len(code)]


def executed(code: bytes) -> list[int]:
    """The addresses of what is executed, as Unicorn says by itself."""
    found = list[int]()
    machine = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64)
    machine.mem_map(BASE, SIZE)
    machine.mem_write(BASE, code)
    machine.hook_add(unicorn.UC_HOOK_CODE, lambda _uc, address, _size, _data: found.append(address))
    machine.emu_start(BASE, 0, count=EXECUTED)
    return found[:EXECUTED]


@pytest.mark.parametrize("most", [1, 2, 8, 50])
def test_ranges_have_all_addresses_and_little_else(most: int) -> None:
    draw = random.Random(most)
    addresses = {draw.choice((1 << 12, 1 << 40, 1 << 63)) + draw.randrange(4096) for _ in range(40)}
    found = sorted(ranges(addresses, most))
    assert len(found) == min(most, len(addresses))
    assert all(any(first <= one <= last for first, last in found) for one in addresses)
    assert all(first in addresses and last in addresses for first, last in found)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(found))
    assert ranges((), most) == set()


@pytest.mark.parametrize(("pieces", "share"), [(20, 0.5), (300, 0.1), (300, 0.5), (300, 1.0)])
def test_each_execution_is_a_call(pieces: int, share: float) -> None:
    draw = random.Random(pieces)
    code, places = program(draw, pieces)
    engine, ram, seen = QilingMachine(AMD64), mmap.mmap(-1, SIZE), list[int]()
    ram[: len(code)] = code
    engine.map_memory(BASE, ram)
    engine.on_tlb_fill(lambda address, _access: (address, 7))
    counter = engine.count_instructions()
    watch = engine.watch_code(seen.append)
    wanted = {place for place in places if draw.random() < share}
    order = draw.sample(sorted(wanted), len(wanted))
    watch.add(order[: len(order) // 2])  # from few to many while nothing runs
    watch.add([*order, *(one ^ 1 << 40 for one in order)])
    watch.keep(wanted)
    assert watch.addresses == wanted
    engine.set_pc(BASE)
    counter.grant(EXECUTED)
    engine.run()
    assert counter.executed == EXECUTED
    assert seen == [address for address in executed(code) if address in wanted]


def test_a_table_grows_and_shrinks() -> None:
    draw, table, known = random.Random(1), AddressTable(0), set[int]()
    for _ in range(30):
        fresh = {draw.getrandbits(draw.choice((12, 40, 64))) or 1 for _ in range(draw.choice((1, 20, 300)))}
        table.add(fresh)
        known |= fresh
        if draw.random() < 0.2:
            known = set(draw.sample(sorted(known), len(known) // 3))
            table.keep(known)
        places = table._places[table._places != 0]
        assert set(places.tolist()) == known
        assert len(places) == len(known) <= len(table._places) // 2
