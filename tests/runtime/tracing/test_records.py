"""Fields of records -> columns, the order of all CPUs' records, and the memory that clauses read at a hit."""

import random
from pathlib import Path

import numpy as np
import pytest

from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.tracing.standalone.columns import CpuSource, columns_of, own_number
from kinst.runtime.tracing.standalone.constants import ConstantMemory
from kinst.runtime.tracing.standalone.forms import Forms
from kinst.runtime.tracing.standalone.record_memory import RecordMemory
from kinst.runtime.trap.faults import Fault
from kinst.targets.arch.arm64 import ARM64
from kinst.targets.image import open_image
from kinst.targets.standalone import (
    StackField,
    asks_for_task,
    behind_field,
    behind_of,
    member_field,
    member_of,
    stack_of,
    width_of,
)
from tests.samples.machines import MACHINES

OWN_NUMBER = own_number(ARM64)
TASK, SP = 0xFFFF_8880_0123_4000, 0xFFFF_C900_0000_3F00


def test_fields_are_written_as_they_are_read() -> None:
    for one in (StackField(4), StackField(512, 0x18, 0x4000)):
        assert stack_of(str(one)) == one
        assert width_of(str(one)) == 1 + one.words
        assert asks_for_task(str(one)) == (one.size > 0)
    assert member_of(member_field(0x768)) == 0x768
    assert [member_of(other) for other in ("task", "task+768", "task+0x12345", "arg0")] == [None] * 4
    assert behind_of(behind_field(0x20, 0x3F58)) == (0x20, 0x3F58)
    assert asks_for_task(behind_field(0x20, 0)) and member_of(behind_field(0x20, 0)) is None
    assert [behind_of(other) for other in ("task+0x20", "task", "stack*4+0x18:0x4000")] == [None] * 3
    assert [stack_of(other) for other in ("stack", "stack*0", "stack*99999", "stack*4+0x18")] == [None] * 4


def test_where_fields_are() -> None:
    fields = ("arg0", "time", "rsp", "task", member_field(0x18), member_field(0x768), "stack*3")
    found = columns_of(fields, CpuSource(member_field(0x18), 32))
    assert (dict(found.named), dict(found.members)) == ({"arg0": 1, "rsp": 3}, {0x18: 5, 0x768: 6})
    assert (found.time, found.cpu, found.task, found.stack, found.plain) == (2, 5, 4, 7, 7)
    found = columns_of(("cpu", "arg1"), OWN_NUMBER)
    assert (found.cpu, found.stack, found.plain) == (1, None, 3)


def test_the_cpu_is_some_bits_of_a_word_and_may_have_another_place() -> None:
    assert CpuSource(mask=0xFFFF_FFFF, shift=32).cpu(0x3_0000_0007) == 3
    assert [CpuSource(order={4: 3}).cpu(number) for number in (4, 2)] == [3, 2]
    assert OWN_NUMBER.cpu(0x8000_0003) == 3  # bit 31 of mpidr_el1 is 1


def test_records_are_in_the_order_of_time_and_else_of_their_beginning() -> None:
    records = np.array([[0, 30, 1], [0, 10, 2], [0, 30, 3], [0, 20, 4]], np.uint64)
    assert forms(("time", "arg0")).in_order(records)[:, 2].tolist() == [2, 4, 1, 3]
    assert forms(("arg1", "arg0")).in_order(records) is records


def test_a_record_without_a_time_stays_behind_those_that_its_cpu_took_before() -> None:
    """Two CPUs take places one after the other, and read the time later or earlier."""
    several = forms(("time",), ("arg0",))
    for seed in range(200):
        draw, taken, now = random.Random(seed), list[tuple[int, int, int]](), 0  # CPU, form, time
        waiting: dict[int, int] = {}
        while len(taken) < 30 or waiting:
            cpu, now = draw.randrange(3), now + draw.randrange(2)
            if cpu in waiting:
                place = waiting.pop(cpu)
                taken[place] = (cpu, 0, now)
            elif len(taken) < 30:
                waiting |= {cpu: len(taken)} if (form := draw.randrange(2)) == 0 else {}
                taken.append((cpu, form, 0))
        rows = np.array([[form, time] for _, form, time in taken], np.uint64)
        found = several.in_order(np.column_stack([rows, np.arange(30)]).astype(np.uint64))
        places = found[:, 2].tolist()
        times = [taken[place][2] for place in places if taken[place][1] == 0]
        assert times == sorted(times)
        for cpu in range(3):
            own = [place for place in places if taken[place][0] == cpu]
            assert own == sorted(own), (seed, taken)


def forms(*several: tuple[str, ...]) -> Forms:
    """Those of sites with the same numbers."""
    return Forms(several, np.arange(len(several)), OWN_NUMBER, ARM64)


@pytest.fixture
def memory() -> RecordMemory:
    return RecordMemory(ConstantMemory(open_image(Path(MACHINES["amd64"].image)), Scratch(1 << 16)))


def test_what_was_recorded_is_read_and_nothing_else(memory: RecordMemory) -> None:
    comm = b"swapper/0\0\0\0\0\0\0\0"
    words = {0x760: 7 << 32, 0x768: int.from_bytes(comm[:8], "little"), 0x770: int.from_bytes(comm[8:], "little")}
    memory.show(TASK, words, SP, bytes(range(32)))
    assert memory.load(TASK + 0x764, 4) == 7
    assert memory.string(TASK + 0x768, 16) == b"swapper/0"
    assert memory.string(TASK + 0x768, 4) == b"swap"
    assert memory.read(TASK + 0x76A, 10) == comm[2:12]
    assert memory.load(SP + 8, 8) == int.from_bytes(bytes(range(8, 16)), "little")
    assert not memory.is_cut
    for address, size in ((TASK + 0x778, 8), (TASK + 0x774, 8), (TASK + 0x758, 8), (SP - 8, 8)):
        with pytest.raises(Fault):
            memory.load(address, size)
    assert not memory.is_cut
    with pytest.raises(Fault):
        memory.load(SP + 28, 8)
    assert memory.is_cut
    memory.hide()
    with pytest.raises(Fault):
        memory.load(TASK + 0x768, 8)
