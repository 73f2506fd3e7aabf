"""Where the CPU's PC is in the host's memory: on every machine, and not where several words or none can be it."""

import ctypes

import pytest

from kinst.runtime.engine.live_pc import find_live_pc
from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.registry import ARCHES, NAMES


@pytest.mark.parametrize("arch", ARCHES, ids=NAMES)
def test_the_word_is_the_pc(arch: ArchFacts) -> None:
    engine = QilingMachine(arch)
    engine.set_pc(0x1234_5678)

    place = find_live_pc(engine._handle.value or 0, engine.pc, engine._write_pc_only)

    assert place is not None
    assert engine.pc() == 0x1234_5678
    word = ctypes.c_uint64.from_address(place)
    for value in (0x8000_0000, 0xFFFF_FFFF_8000_0004 if arch.name != "arm64" else 0x4000_0000):
        engine.set_pc(value)
        assert word.value == value
        word.value = value + 4
        assert engine.pc() == value + 4


class Words:
    """What may be an engine that points to its CPU, which has some words for the PC."""

    def __init__(self, count: int, *, is_read: bool = True) -> None:
        self.cpu = (ctypes.c_uint64 * 64)()
        self.engine = (ctypes.c_uint64 * 512)(0, 3, ctypes.addressof(self.cpu))
        self.count, self.is_read = count, is_read

    def read(self) -> int:
        return self.cpu[5] if self.is_read else 0

    def write(self, value: int) -> None:
        for number in range(self.count):
            self.cpu[5 + 8 * number] = value

    def find(self) -> int | None:
        return find_live_pc(ctypes.addressof(self.engine), self.read, self.write)


def test_one_word_is_found_and_keeps_what_it_had() -> None:
    words = Words(1)
    words.cpu[5] = 77

    assert words.find() == ctypes.addressof(words.cpu) + 40
    assert words.cpu[5] == 77


@pytest.mark.parametrize("words", [Words(0), Words(2), Words(1, is_read=False)], ids=["none", "two", "not read"])
def test_a_word_that_may_be_another_is_not_taken(words: Words) -> None:
    assert words.find() is None
