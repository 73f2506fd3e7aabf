"""The sorted table of call frames, and rules that are moved: what no program of the others happens to have."""

import struct
from pathlib import Path

import numpy as np
import pytest

from kinst.rewriter.frames.moving import Mover
from kinst.rewriter.frames.states import STILL, How, Motion, State, based, signed, transition, unsigned
from kinst.rewriter.frames.tables import old_table
from kinst.targets.elf.header import PT_GNU_EH_FRAME
from kinst.targets.functions.frames import frame_tables
from kinst.targets.image import Image, open_image
from tests.rewriter.frames.test_programs import STEPPED, compiled, counted

RSP, RBP, RIP, RBX, RCX, R10 = 7, 6, 16, 3, 2, 10
AT = 0x1234
MOVER = Mover(RSP, RIP, RIP, (RBX, RBP))
ENTRY = State(RSP, 8, rules=((RIP, (How.SAVED, -8, b"")),))
# What GNU ld says of a PLT: 8 more if the lowest four bits of the program counter are 11 or more.
PLT = based(RSP, 8) + based(RIP, 0) + bytes((0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22))


def table_of(image: Image) -> tuple[np.ndarray, int]:
    """Pairs of addresses, and where the records begin."""
    one = next(one for one in image.segments if one.kind == PT_GNU_EH_FRAME)
    data = image.read(one.address, one.file_size)
    assert data[:4] == bytes((1, 0x1B, 3, 0x3B))
    pointer, count = struct.unpack_from("<iI", data, 4)
    pairs = np.frombuffer(data, "<i4", 2 * count, 12).reshape(-1, 2).astype(np.int64) + one.address
    return pairs, one.address + 4 + pointer


@pytest.mark.parametrize("options", [(), pytest.param(("-static",), marks=pytest.mark.long)], ids=["dynamic", "static"])
def test_each_entry_of_the_table_leads_to_its_record(options: tuple[str, ...], tmp_path: Path) -> None:
    path = compiled(STEPPED, tmp_path / "stepped", *options)
    before, after = open_image(path), open_image(counted(path, probes="fbt:::entry"))
    pairs, records = table_of(after)
    assert (np.diff(pairs[:, 0]) > 0).all()
    for address, record in pairs.tolist():
        begins = struct.unpack("<i", after.read(record + 8, 4))[0] + record + 8
        assert begins == address
    section = after.section(".kinst.eh_frame")
    assert section is not None
    if old_table(before)[0] is not None:
        old, first = table_of(before)
        assert {*map(tuple, old.tolist())} <= {*map(tuple, pairs.tolist())}
        assert records == first
    else:
        assert records == section.address


def test_both_forms_say_the_same(tmp_path: Path) -> None:
    image = open_image(counted(compiled(STEPPED, tmp_path / "stepped")))
    section = image.section(".kinst.eh_frame")
    assert section is not None
    debug = frame_tables(image)[-1]
    assert len(debug.address)
    pairs, _ = table_of(image)
    assert {*debug.address.tolist()} <= {*pairs[:, 0].tolist()}
    for address, record in pairs.tolist():
        if address in debug.address.tolist():
            row = debug.address.tolist().index(address)
            size = struct.unpack("<I", image.read(record + 12, 4))[0]
            code = debug.content[debug.rest[row] : debug.end[row]].rstrip(b"\0")
            assert size == debug.size[row]
            assert image.read(record + 17, len(code)) == code


MOVED = {
    "pushed": (
        ENTRY,
        Motion(136, ((RBX, (None, 0)),)),
        State(RSP, 144, rules=((RBX, (How.SAVED, -144, b"")), ENTRY.rules[0])),
    ),
    "in another": (
        ENTRY,
        Motion(0, ((RBX, (RCX, None)),)),
        State(RSP, 8, rules=((RBX, (How.MOVED, RCX, b"")), ENTRY.rules[0])),
    ),
    "gone": (
        ENTRY,
        Motion(0, ((RBX, (None, None)),)),
        State(RSP, 8, rules=((RBX, (How.LOST, 0, b"")), ENTRY.rules[0])),
    ),
    "scratch": (ENTRY, Motion(0, ((RCX, (None, None)),)), ENTRY),
    "frame pointer": (State(RBP, 16), Motion(136), State(RBP, 16)),
    "base in another": (State(R10, 0), Motion(0, ((R10, (RCX, None)),)), State(-1, 0, based(RCX, 0))),
    "base pushed": (State(R10, 0), Motion(8, ((R10, (None, 0)),)), State(-1, 0, based(RSP, 0) + b"\x06")),
    "base gone": (State(R10, 0), Motion(0, ((R10, (None, None)),)), State(RSP, 0, rules=((RIP, (How.LOST, 0, b"")),))),
    "plt": (
        State(-1, 0, PLT),
        Motion(16),
        State(-1, 0, based(RSP, 24) + b"\x11" + signed(AT & 31) + PLT[len(based(RSP, 8) + based(RIP, 0)) :]),
    ),
    "unknown operation": (State(-1, 0, b"\xe0"), Motion(8), State(RSP, 0, rules=((RIP, (How.LOST, 0, b"")),))),
    "program counter": (State(-1, 0, based(RIP, 0)), STILL, State(RSP, 0, rules=((RIP, (How.LOST, 0, b"")),))),
}


@pytest.mark.parametrize("case", MOVED)
def test_rules_follow_what_moves(case: str) -> None:
    state, motion, expected = MOVED[case]
    found = MOVER.moved(state, motion, AT)
    assert (found.register, found.offset, found.expression) == (expected.register, expected.offset, expected.expression)
    assert dict(found.rules) == dict(expected.rules)


def test_a_state_becomes_another_by_few_bytes() -> None:
    deeper = State(RSP, 16, rules=(*ENTRY.rules, (RBP, (How.SAVED, -16, b""))))
    assert transition(ENTRY, ENTRY) == b""
    assert transition(ENTRY, deeper) == bytes((0x0E, 16, 0x80 | RBP, 2))
    assert transition(deeper, ENTRY) == bytes((0x0E, 8, 0x08, RBP))
    assert transition(ENTRY, State(RBP, 16, rules=ENTRY.rules)) == bytes((0x0C, RBP, 16))
    assert transition(ENTRY, State(RSP, 8, rules=ENTRY.rules, is_signed=True)) == b"\x2d"
    assert unsigned(300) == b"\xac\x02"
    assert signed(-300) == b"\xd4\x7d"
