"""D's own memory."""

import pytest

from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.trap.faults import Fault, FaultKind

Access = tuple[FaultKind, int]


def fault(function: object, *arguments: object) -> Access:
    with pytest.raises(Fault) as caught:
        function(*arguments)  # type: ignore[operator]
    return caught.value.kind, caught.value.value


@pytest.mark.parametrize("how", ["allocate", "keep"])
def test_blocks_are_zero_and_keep_what_is_stored(how: str) -> None:
    scratch = Scratch(64)
    first, second = getattr(scratch, how)(3), getattr(scratch, how)(16)
    assert scratch.read(first, 3) + scratch.read(second, 16) == bytes(19)
    scratch.store(second, 8, -2)
    scratch.write(second + 8, b"text\0")
    assert scratch.load(second, 4) == 0xFFFF_FFFE
    assert scratch.read(second, 13) == b"\xfe" + b"\xff" * 7 + b"text\0"
    assert (scratch.string(second + 8, 10), scratch.string(second + 8, 2)) == (b"text", b"te")
    assert scratch.read(first, 3) == bytes(3)


def test_only_what_is_allocated_can_be_reached() -> None:
    scratch = Scratch(64)
    address, kept = scratch.allocate(8), scratch.keep(8)
    for begin in (address, kept):
        assert fault(scratch.load, begin + 4, 8) == (FaultKind.BADADDR, begin + 4)
        assert fault(scratch.read, begin - 8, 8) == (FaultKind.BADADDR, begin - 8)
        assert fault(scratch.store, begin + 8, 1, 1) == (FaultKind.BADADDR, begin + 8)
        assert fault(scratch.write, begin, bytes(9)) == (FaultKind.BADADDR, begin)
        scratch.write(begin, b"no end??")
        assert scratch.string(begin, 8) == b"no end??"
        assert fault(scratch.string, begin, 9) == (FaultKind.BADADDR, begin + 8)
        assert fault(scratch.read, begin, -1) == (FaultKind.BADADDR, begin)


def test_a_new_clause_finds_its_part_empty_and_variables_stay() -> None:
    scratch = Scratch(64)
    kept, address = scratch.keep(8), scratch.copy(b"hello")
    scratch.store(kept, 8, 5)
    scratch.reset()
    assert fault(scratch.read, address, 1)[0] is FaultKind.BADADDR
    assert scratch.load(kept, 8) == 5
    assert scratch.allocate(16) == address
    assert scratch.read(address, 16) == bytes(16)


@pytest.mark.parametrize("size", [65, -1, 1 << 63])
def test_there_is_a_limit(size: int) -> None:
    scratch = Scratch(64)
    assert fault(scratch.allocate, size)[0] is FaultKind.NOSCRATCH
    scratch.allocate(64)
    assert fault(scratch.copy, b"")[0] is FaultKind.NOSCRATCH


def test_variables_have_a_limit_of_their_own() -> None:
    scratch = Scratch(64)
    assert fault(scratch.keep, 1 << 40)[0] is FaultKind.NOSCRATCH
    scratch.keep(64 << 20)
    assert fault(scratch.keep, 8)[0] is FaultKind.NOSCRATCH


def test_no_machine_has_these_addresses() -> None:
    scratch = Scratch(64)
    for address in (scratch.allocate(8), scratch.keep(8)):
        for bits in (48, 57):  # amd64, riscv64: the bits above are the sign's copies
            assert address >> bits - 1 not in (0, (1 << 65 - bits) - 1)
        assert address >> 52 & 0xF not in (0, 0xF)  # arm64, where the top byte may be a tag
