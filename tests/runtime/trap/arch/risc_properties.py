"""Random instructions of real images with random states: emulated, or in a trampoline, against Unicorn in place."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from kinst.rewriter.arch.dissector import Dissector
from kinst.rewriter.arch.patterns import PatternTable
from kinst.rewriter.arch.registry import dissector as dissector_of
from kinst.runtime.trap.arch.emulator import Emulator
from kinst.targets.arch.registry import arch_by_name
from kinst.targets.instruction import Instructions, Verdict
from tests.rewriter.arch.real_code import Code, real_code
from tests.runtime.trap.arch.frames import frame_of
from tests.runtime.trap.arch.risc_unicorn import Cpu, Memory, Model, State

_SPECIAL = (0, 1, 2, 5, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


@dataclass(frozen=True)
class Sample:
    """One distinct instruction of a real image."""

    kind: int
    code: bytes


def samples(dissector: Dissector, images: Sequence[str], verdict: Verdict, limit: int) -> dict[int, list[Sample]]:
    """Kind -> up to `limit` distinct instructions of it."""
    found: dict[int, set[bytes]] = {}
    generator = np.random.default_rng(3)
    for code, sites in (found for image in images for found in _dissected(dissector.facts.name, image)):
        for kind in np.unique(sites.kind[sites.verdict == verdict]).tolist():
            rows = np.flatnonzero((sites.kind == kind) & (sites.verdict == verdict))
            chosen = generator.permutation(rows)[:limit]
            found.setdefault(kind, set()).update(
                _bytes_at(code.bytes, code.address, sites.address[chosen], sites.size[chosen])
            )
    return {kind: [Sample(kind, code) for code in sorted(codes)] for kind, codes in found.items()}


@cache
def _dissected(machine: str, image: str) -> tuple[tuple[Code, Instructions], ...]:
    """Each region of its code with what is there: a file of tests asks for several verdicts."""
    dissect = dissector_of(arch_by_name(machine)).dissect
    return tuple((code, dissect(code.bytes, code.address, code.ranges)) for code in real_code(image))


def invented(table: PatternTable, size: int, count: int) -> dict[int, list[Sample]]:
    """Kind -> instructions that fit its patterns, with random fields: also what no image at hand holds."""
    generator = np.random.default_rng(4)
    found: dict[int, list[Sample]] = {}
    for row, pattern in enumerate(table.patterns):
        fields = generator.integers(0, 1 << 8 * size, count, dtype=np.uint32) & np.uint32(~pattern.mask & 0xFFFF_FFFF)
        words = fields | np.uint32(pattern.value)
        words = words[(table.match(words) == row) & (pattern.verdict == Verdict.EMULATE)]
        codes = [int(word).to_bytes(size, "little") for word in words]
        found.setdefault(pattern.kind, []).extend(Sample(pattern.kind, code) for code in codes)
    return {kind: drawn for kind, drawn in found.items() if drawn}


def _bytes_at(code: NDArray[np.uint8], address: int, at: NDArray[np.uint64], sizes: NDArray[np.uint8]) -> list[bytes]:
    offsets = (at - np.uint64(address)).tolist()
    return [code[start : start + size].tobytes() for start, size in zip(offsets, sizes.tolist(), strict=True)]


def states(count: int, fixed: dict[int, int], vector_bits: int) -> st.SearchStrategy[State]:
    """`count` registers, of which some have values of their own (sp, flags), and vectors; one draw, for speed."""

    def made(seed: int) -> State:
        source = random.Random(seed)
        regs = [source.choice(_SPECIAL) if source.random() < 0.5 else source.getrandbits(64) for _ in range(count)]
        for index, value in fixed.items():
            regs[index] = value
        return State(tuple(regs), tuple(source.getrandbits(vector_bits) for _ in range(32)))

    return st.builds(made, st.integers(0, (1 << 32) - 1))


def check_emulation(model: Model, emulator: Emulator, sample: Sample, state: State, site: int) -> None:
    """The emulation does what Unicorn does with the instruction in place, and says what it writes."""
    facts, code = emulator.facts, {site: sample.code}
    state = State((*state.regs[: facts.pc], site, *state.regs[facts.pc + 1 :]), state.vectors)
    expected = Cpu(model, code).run(state, site, count=1)
    frame = Memory(list(state.regs), list(state.vectors), code)
    emulation = emulator.emulation(sample.kind, sample.code)

    emulation.run(frame_of(frame))

    assert expected.fault == ""
    assert frame.outcome() == expected
    changed = {index for index, value in enumerate(state.regs) if frame.regs[index] != value}
    assert changed <= {*emulation.writes, facts.pc}


def check_trampoline(model: Model, dissector: Dissector, sample: Sample, state: State, site: int, slot: int) -> None:
    """The trampoline does what the instruction does in place and ends at its second breakpoint, 4 bytes on."""
    facts = dissector.facts
    code = np.frombuffer(sample.code, np.uint8)
    sites = dissector.dissect(code, site, np.array([[0, len(code)]], np.int64))
    original = np.zeros((1, 16), np.uint8)
    original[0, : len(code)] = code
    made = dissector.trampolines(sites, original, np.array([slot], np.uint64)).code.tobytes()

    both = {site: sample.code, slot: made}  # in both runs: the instruction may write to either's page
    expected = Cpu(model, both).run(state, site, count=1)
    displaced = Cpu(model, both).run(state, slot, count=3)

    assert displaced.fault, "the breakpoint was not reached"
    end = displaced.state.regs[facts.pc] - slot
    resumed = site + (len(code) if end == 4 else end) if not expected.fault else site + end
    regs = list(displaced.state.regs)
    regs[facts.pc] = resumed
    assert State(tuple(regs), displaced.state.vectors) == expected.state
    assert displaced.pages == expected.pages
