"""What a guest writes over its sites is taken over as it is there: the record's instruction alone, a return that became
a jump to a thunk as a return, and none that no trampoline can hold."""

import numpy as np
import pytest

from kinst.rewriter.arch.registry import dissector
from kinst.rewriter.assemble import assemble
from kinst.runtime.patched.written_sites import WrittenSites
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.instruction import Flow, Reason
from tests.runtime.providers.traced import Traced, sample, traced

FUNCTION = "vfs_lookup"


@pytest.fixture
def guest() -> Traced:
    return traced(sample("amd64"), [f"kinst::{FUNCTION}:"])


def written(guest: Traced, flow: Flow) -> tuple[WrittenSites, int, int]:
    """The function's sites, the row of the last with this flow, and its address."""
    sites = guest.sites
    records = sites.manifest.sites
    row = int(np.flatnonzero(records["flow"] == flow)[-1])
    made = WrittenSites(records, sites, dissector(AMD64), guest.system)
    return made, row, int(records["address"][row])


def noted(made: WrittenSites, row: int, address: int, code: bytes, length: int) -> list[int]:
    """The rows that are taken over when `code` is at the site, of which `length` bytes are code."""
    content = np.frombuffer(code, np.uint8)
    found = dissector(AMD64).dissect(content, address, np.array([[0, length]]))
    return [int(taken) for taken in made.note(np.array([row]), content, address, found)]


def test_a_return_that_became_a_jump_is_a_return(guest: Traced) -> None:
    made, row, address = written(guest, Flow.RETURN)
    jump = assemble(AMD64, f"jmp {address + 0x100:#x}", address)
    assert noted(made, row, address, jump, len(jump)) == [row]
    assert Flow(made.now["flow"][row]) is Flow.RETURN
    assert int(made.target[row]) == address + 0x100


def test_another_instruction_that_became_a_jump_is_a_jump(guest: Traced) -> None:
    made, row, address = written(guest, Flow.NEXT)
    jump = assemble(AMD64, f"jmp {address + 0x100:#x}", address)
    assert noted(made, row, address, jump, len(jump)) == [row]
    assert Flow(made.now["flow"][row]) is Flow.JUMP


def test_bytes_behind_an_instruction_are_none_of_it(guest: Traced) -> None:
    made, row, address = written(guest, Flow.NEXT)
    assert noted(made, row, address, bytes.fromhex("89c8") + b"\xcc" * 14, 2) == [row]
    assert made.now["original"][row].tobytes() == bytes.fromhex("89c8") + bytes(14)
    assert int(made.now["size"][row]) == 2


def test_where_no_instruction_begins_nothing_is_taken_over(guest: Traced) -> None:
    made, row, address = written(guest, Flow.NEXT)
    before = made.now[row].tobytes()
    code = np.frombuffer(bytes.fromhex("b800000000"), np.uint8)
    found = dissector(AMD64).dissect(code, address - 1, np.array([[0, len(code)]]))
    assert made.note(np.array([row]), code, address - 1, found).tolist() == []
    assert made.now[row].tobytes() == before


def test_what_no_trampoline_can_hold_is_told(guest: Traced) -> None:
    """A displacement that does not reach from there; the slot is left as it is."""
    made, row, address = written(guest, Flow.NEXT)
    load = bytes.fromhex("488b0510000000")
    assert noted(made, row, address, load, len(load)) == [row]
    assert made.reason[row] == Reason.NONE
    slot = int(made.now["trampoline"][row])
    far = (address + (1 << 40)) % (1 << 64)
    assert made.fill(row, far) is None
    assert made.fill(row, slot) == slot
    assert guest.system.space.fetch(slot, 3) == load[:3]
