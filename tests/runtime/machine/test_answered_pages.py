"""Words that are seen as one more through some virtual pages: drawn loads and stores beside a process's own view."""

import random
from typing import Final

import pytest

from kinst.runtime.machine.physical.frames import MIRROR, PAGE
from kinst.runtime.machine.watching.mirrored_pages import MemoryAccess, MirroredPages
from kinst.runtime.paging.walker import Access, Permission

PHYSICAL, VIRTUAL, OTHER = 0x8000_3000, 0x40_0000, 0x50_0000
READ_WRITE: Final = int(Permission.READ | Permission.WRITE)


class Ram:
    """A page, and what is written as code."""

    def __init__(self, content: bytes) -> None:
        self.content = bytearray(content)
        self.code_pages: set[int] = set()

    def load(self, address: int, size: int) -> int:
        return int.from_bytes(self.content[address - PHYSICAL :][:size], "little")

    def store(self, address: int, size: int, value: int) -> None:
        self.write(address, value.to_bytes(size, "little"))

    def write(self, address: int, data: bytes) -> None:
        self.content[address - PHYSICAL : address - PHYSICAL + len(data)] = data


def raised(words: list[int]) -> tuple[MirroredPages, Ram, list[str]]:
    draw, forgotten = random.Random(len(words)), list[str]()
    ram = Ram(draw.randbytes(PAGE))
    pages = MirroredPages(ram, lambda: forgotten.append("forgotten"))

    def those(address: int, size: int) -> list[int]:
        return [word for word in words if word < address + size and address < word + 2]

    pages.answer(frozenset({VIRTUAL // PAGE}), those)
    return pages, ram, forgotten


def place(pages: MirroredPages, address: int, access: Access) -> int:
    return pages.granted(address, (PHYSICAL | address % PAGE, READ_WRITE), access)[0]


@pytest.mark.parametrize("seed", range(4))
def test_a_process_sees_its_own_words(seed: int) -> None:
    draw = random.Random(seed)
    words = [PHYSICAL + at for at in (0x10, 0x12, 0x21, 0xFFE)]
    pages, ram, _ = raised(words)
    ram.content[0x10:0x12] = b"\xff\xff"  # one more is 0
    seen = bytearray(ram.content)
    for word in words:
        at = word - PHYSICAL
        seen[at : at + 2] = (int.from_bytes(seen[at : at + 2], "little") + 1 & 0xFFFF).to_bytes(2, "little")
    for _ in range(300):
        size = draw.choice((1, 2, 4, 8))
        at = draw.choice((draw.randrange(8, 0x30), PAGE - size - draw.randrange(4)))
        offset = place(pages, VIRTUAL | at, Access.READ) - MIRROR
        if draw.random() < 0.5:
            assert pages.read(offset, size) == int.from_bytes(seen[at : at + size], "little")
            continue
        value = draw.getrandbits(8 * size)
        pages.write(offset, size, value)
        seen[at : at + size] = value.to_bytes(size, "little")
    for word in words:
        at = word - PHYSICAL
        assert (
            int.from_bytes(ram.content[at : at + 2], "little")
            == int.from_bytes(seen[at : at + 2], "little") - 1 & 0xFFFF
        )


def test_no_other_page_is_answered() -> None:
    pages, ram, _ = raised([PHYSICAL + 0x10])
    assert place(pages, OTHER | 0x10, Access.READ) == PHYSICAL | 0x10
    assert place(pages, VIRTUAL | 0x10, Access.FETCH) == PHYSICAL | 0x10
    told = list[MemoryAccess]()
    pages.watch(range(PHYSICAL, PHYSICAL + PAGE), Access.READ, told.append)
    before = ram.load(PHYSICAL + 0x10, 2)
    assert pages.read(place(pages, OTHER | 0x10, Access.READ) - MIRROR, 2) == before
    assert pages.read(place(pages, VIRTUAL | 0x10, Access.READ) - MIRROR, 2) == (before + 1) & 0xFFFF
    assert [one.before for one in told] == [before, (before + 1) & 0xFFFF]


def test_pages_of_processes_that_ended_make_room() -> None:
    pages, _, forgotten = raised([])
    before, found = len(forgotten), set[int]()
    for number in range(1000):
        physical = PHYSICAL + number * PAGE
        frame = pages.granted(VIRTUAL, (physical, READ_WRITE), Access.WRITE)[0]
        assert pages.real(frame) == physical
        found.add(frame)
    assert len(forgotten) > before
    assert len(found) < 1000
