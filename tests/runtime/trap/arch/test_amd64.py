"""What displaced amd64 instructions do: by hand-written effects, and by Unicorn running the original where it lies."""

import random
import re
import zlib
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kinst.rewriter.arch.amd64 import DISSECTOR
from kinst.rewriter.disassemble import disassemble
from kinst.runtime.paging.walker import Access, PageFault
from kinst.runtime.trap.arch.amd64 import EMULATOR
from kinst.targets.arch.amd64 import AMD64, EMULABLE, RFLAGS, RIP, RSP, Kind
from kinst.targets.image import open_image
from kinst.targets.instruction import Flow, Instructions, Verdict
from tests.images import at_hand, real_image
from tests.runtime.trap.arch.amd64_unicorn import COMPARED, Cpu, Memory, Outcome, State
from tests.runtime.trap.arch.frames import frame_of
from tests.vectors.amd64 import ADDRESS, VECTORS, Vector

MASK = (1 << 64) - 1
TRAP_FLAG = 1 << 8
FLAGS = {"c": 1 << 0, "p": 1 << 2, "a": 1 << 4, "z": 1 << 6, "s": 1 << 7, "o": 1 << 11}
EMULATED = [vector for vector in VECTORS if vector.verdict is Verdict.EMULATE or vector.kind in EMULABLE]


def random_state(seed: int, rip: int) -> State:
    """Registers that are small, negative, 32 bits wide, one bit, pointers near each other, or anything."""
    rng = random.Random(seed)
    choices = (
        lambda: rng.randrange(4),
        lambda: -rng.randrange(1, 300) & MASK,
        lambda: rng.getrandbits(32),
        lambda: 0x10000000 + rng.randrange(1 << 16),
        lambda: 1 << rng.randrange(64),
        lambda: rng.getrandbits(64),
    )
    general = [rng.choice(choices)() for _ in range(16)]
    flags = 0x202 | rng.getrandbits(12) & (sum(FLAGS.values()) | 1 << 10)  # bit 1 is always set, IF; DF either way
    return State((*general, rip, flags, rng.getrandbits(47), rng.getrandbits(47)), _random_vectors(rng))


def _random_vectors(rng: random.Random) -> tuple[int, ...]:
    return tuple(rng.getrandbits(128) for _ in range(16))


def emulate(kind: Kind, code: bytes, state: State) -> tuple[Memory, set[int]]:
    """The frame and memory after our emulation, and the registers that it says it may write."""
    frame = Memory(list(state.regs), {state.regs[RIP]: code})
    emulation = EMULATOR.emulation(kind, code)
    emulation.run(frame_of(frame))
    return frame, {RIP, *emulation.writes}


def flags_after(flags: int, signed: int, unsigned: int, width: int, *, aux: bool) -> int:
    """rflags after an operation whose exact results are `signed` and `unsigned`."""
    result = unsigned % (1 << width)
    found = {
        "c": unsigned != result,
        "p": bin(result & 0xFF).count("1") % 2 == 0,
        "a": aux,
        "z": result == 0,
        "s": result >= 1 << width - 1,
        "o": not -(1 << width - 1) <= signed < 1 << width - 1,
    }
    return flags & ~sum(FLAGS.values()) | sum(FLAGS[name] for name, is_set in found.items() if is_set)


def signed(value: int, width: int) -> int:
    value %= 1 << width
    return value - (1 << width) if value >> width - 1 else value


def plus(flags: int, old: int, number: int, width: int) -> int:
    a, b = old % (1 << width), number % (1 << width)
    return flags_after(flags, signed(a, width) + signed(b, width), a + b, width, aux=a % 16 + b % 16 > 15)


def minus(flags: int, old: int, number: int, width: int) -> int:
    a, b = old % (1 << width), number % (1 << width)
    return flags_after(flags, signed(a, width) - signed(b, width), a - b, width, aux=a % 16 < b % 16)


class Effect:
    """Evaluates the last column of the table: reads see the old state, writes make the new one."""

    def __init__(self, vector: Vector, state: State) -> None:
        self._old = Memory(list(state.regs), {ADDRESS: vector.code})
        self.new = Memory(list(state.regs), {ADDRESS: vector.code})
        self._names = {
            **dict(zip(COMPARED, state.regs, strict=True)),
            **{letter: bool(state.regs[RFLAGS] & bit) for letter, bit in FLAGS.items()},
            "next": ADDRESS + len(vector.code),
            "target": vector.target,
            "low": lambda value: value & 0xFFFFFFFF,
            "plus": plus,
            "minus": minus,
            "q": lambda address: self._old.load(address & MASK, 8),
        }
        self.new.regs[RIP] = ADDRESS + len(vector.code)
        for assignment in filter(None, vector.effect.split("; ")):
            self._assign(*assignment.split(" = ", 1))

    def _assign(self, where: str, what: str) -> None:
        value = eval(what, {}, self._names)  # the table is ours
        if memory := re.fullmatch(r"q\[(.*)\]", where):
            self.new.store(eval(memory[1], {}, self._names) & MASK, 8, value)
        else:
            self.new.regs[COMPARED.index(where)] = value & MASK


@pytest.mark.parametrize("vector", [vector for vector in EMULATED if b"\x66" not in vector.code[:-1]], ids=str)
def test_effect_is_what_the_table_says(vector: Vector) -> None:
    for seed in range(8):
        state = random_state(seed, ADDRESS)
        frame, may_write = emulate(vector.kind, vector.code, state)
        expected = Effect(vector, state).new

        assert dict(zip(COMPARED, frame.regs, strict=True)) == dict(zip(COMPARED, expected.regs, strict=True))
        assert frame.changed == expected.changed
        assert {at for at, (old, new) in enumerate(zip(state.regs, frame.regs, strict=True)) if old != new} <= may_write


@pytest.mark.parametrize("vector", EMULATED, ids=str)
def test_effect_is_what_unicorn_does(vector: Vector) -> None:
    """Three states each, at its own address and where a relocated image has it."""
    for seed, address in enumerate((ADDRESS, 0xFFFFFFFF81000FFD, 0x7FFFFFF0)):
        state = random_state(seed + 100, address)
        expected = Cpu({address: vector.code}).run(state, address, until=0, count=1)
        frame, _ = emulate(vector.kind, vector.code, state)

        assert expected.fault == ""
        assert tuple(frame.regs) == expected.state.regs
        assert frame.changed == expected.pages


class Faulting(Memory):
    """Memory that may not be touched, or only read."""

    readable: bool = False

    def load(self, address: int, size: int) -> int:
        if not self.readable:
            raise PageFault(address, Access.READ, 0)
        return super().load(address, size)

    def store(self, address: int, size: int, value: int) -> None:
        raise PageFault(address, Access.WRITE, 0)


@pytest.mark.parametrize("vector", [vector for vector in EMULATED if "q" in vector.effect], ids=str)
@pytest.mark.parametrize("readable", [False, True])
def test_a_fault_leaves_the_frame_as_it_was(vector: Vector, readable: bool) -> None:  # noqa: FBT001
    state = random_state(7, ADDRESS)
    frame = Faulting(list(state.regs), {ADDRESS: vector.code})
    frame.readable = readable
    if readable and "q[" not in vector.effect:
        EMULATOR.emulation(vector.kind, vector.code).run(frame_of(frame))  # it only reads
        assert tuple(frame.regs) != state.regs
        return

    with pytest.raises(PageFault):
        EMULATOR.emulation(vector.kind, vector.code).run(frame_of(frame))
    assert tuple(frame.regs) == state.regs


@pytest.mark.parametrize("vector", [vector for vector in VECTORS if vector not in EMULATED], ids=str)
def test_what_is_not_emulated_has_no_emulation(vector: Vector) -> None:
    with pytest.raises(ValueError, match=vector.kind.name):
        EMULATOR.emulation(vector.kind, vector.code)


# Real images. The kernel of 590 MB is used where a benchmark or a test of that size has fetched it.
IMAGES = at_hand("gnumach", "u-boot-amd64", "linux-amd64")
# What depends on time or chance, or waits.
_NOT_REPEATABLE = re.compile(r"rdtsc|rdrand|rdseed|rdpmc|hlt|mwait|monitor")


@cache
def real_instructions() -> dict[Kind, dict[str, list[tuple[int, bytes]]]]:
    """Kind -> mnemonic -> (address, code) of instructions that may be probed, spread over the images."""
    chosen: dict[Kind, dict[str, list[tuple[int, bytes]]]] = {}
    for name in IMAGES:
        image = open_image(real_image(name))
        region = max(image.code_regions, key=lambda region: region.size)
        code = image.data[region.offset : region.offset + min(region.size, 1 << 20)]
        starts = np.arange(0, len(code), 2048)
        found = DISSECTOR.dissect(code, region.address, np.stack([starts, np.append(starts[1:], len(code))], axis=1))
        for row in _spread(found):
            address, size = int(found.address[row]), int(found.size[row])
            instruction = code[address - region.address :][:size].tobytes()
            mnemonic = disassemble(AMD64, instruction, address)[0].text.split()[0]
            if not _NOT_REPEATABLE.match(mnemonic):
                by_mnemonic = chosen.setdefault(Kind(found.kind[row]), {})
                by_mnemonic.setdefault(mnemonic, []).append((address, instruction))
    return chosen


def _spread(found: Instructions) -> list[int]:
    """At most 2,000 rows of each kind."""
    rows: list[int] = []
    for kind in np.unique(found.kind):
        members = np.flatnonzero((found.kind == kind) & (found.verdict != Verdict.REFUSE))
        rows += members[:: max(1, len(members) // 2000)].tolist()
    return rows


def displaced(address: int, code: bytes, state: State) -> tuple[Outcome, Outcome]:
    """The original at its own address, and its trampoline: up to the instruction behind, or where either goes."""
    following = address + len(code)
    site = DISSECTOR.dissect(np.frombuffer(code, np.uint8), address, np.array([[0, len(code)]]))
    original = np.frombuffer(code.ljust(16, b"\0"), np.uint8)[None, :]
    slots = [(address + distance) & MASK for distance in (0x1000000, -0x1000000)]
    both = site.take(np.array([0, 0]))
    built = DISSECTOR.trampolines(both, original.repeat(2, axis=0), np.array(slots, np.uint64))
    row = int(built.reason[0] != 0)  # an operand almost 2 GiB away is in reach of one of the two
    slot, trampoline = slots[row], built.code[row].tobytes()
    memory = {address: code, slot: trampoline}
    count = 0 if site.flow[0] == Flow.NEXT else 1
    there = Cpu(memory).run(state, slot, following, count)
    if there.fault and slot <= there.state.regs[RIP] < slot + len(trampoline):
        regs = list(there.state.regs)
        regs[RIP] = regs[RIP] - slot + address  # what the machine shows the guest
        there = Outcome(State(tuple(regs), there.state.xmm), there.pages, there.fault)
    return Cpu(memory).run(state, address, following, count), there


@pytest.mark.skipif("linux-amd64" not in IMAGES, reason="linux-amd64 was not downloaded: only it has all of them")
def test_the_images_hold_every_kind_that_compilers_emit() -> None:
    assert {kind for kind in Kind if kind < Kind.FAR_JUMP} <= set(real_instructions())
    assert len(real_instructions()[Kind.OTHER]) > 100


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_a_real_instruction_emulated_does_what_the_original_does(data: st.DataObject) -> None:
    samples = real_instructions()
    kind = data.draw(
        st.sampled_from(sorted(kind for kind in samples if Kind.JUMP <= kind <= Kind.NOP or kind in EMULABLE))
    )
    mnemonic = data.draw(st.sampled_from(sorted(samples[kind])))
    address, code = data.draw(st.sampled_from(samples[kind][mnemonic]))
    state = random_state(data.draw(st.integers(0, 1 << 32)), address)

    expected = Cpu({address: code}).run(state, address, until=0, count=1)
    frame, _ = emulate(kind, code, state)

    assert expected.fault == ""
    assert tuple(frame.regs) == expected.state.regs
    assert frame.changed == expected.pages


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_a_real_instruction_in_its_trampoline_does_what_the_original_does(data: st.DataObject) -> None:
    samples = real_instructions()
    kind = data.draw(st.sampled_from((Kind.OTHER, Kind.RELATIVE, *sorted(EMULABLE))))
    mnemonic = data.draw(st.sampled_from(sorted(samples[kind])))
    address, code = data.draw(st.sampled_from(samples[kind][mnemonic]))
    state = random_state(data.draw(st.integers(0, 1 << 32)), address)
    if mnemonic.startswith("popf"):
        assume(not Memory(list(state.regs), {}).load(state.regs[RSP], 2) & TRAP_FLAG)  # see the rule of popf

    here, there = displaced(address, code, state if not mnemonic.startswith("rep") else _short_repeat(state))

    assert there == here


@pytest.mark.parametrize("vector", [vector for vector in VECTORS if vector.verdict is Verdict.COPY], ids=str)
def test_the_table_in_trampolines_does_what_the_original_does(vector: Vector) -> None:
    if _NOT_REPEATABLE.match(vector.text):
        return
    seed = zlib.crc32(vector.code) % 2  # one state each, of two
    here, there = displaced(ADDRESS, vector.code, _short_repeat(random_state(seed, ADDRESS)))

    assert there == here


def _short_repeat(state: State) -> State:
    """With so small a count in rcx that a repeated instruction ends soon."""
    return State((state.regs[0], state.regs[1] % 20, *state.regs[2:]), state.xmm)
