"""Trampolines, and the original's call frame information -> how to unwind from each of their instructions.

From a trampoline a frame looks as it does from the instruction that is displaced there, but for what the trampoline has
moved: an unwinder that begins there finds the same callers as one that begins at the original instruction.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.frames import encoding
from kinst.rewriter.frames.encoding import Frames
from kinst.rewriter.frames.motions import FrameFacts, Motions, frame_facts
from kinst.rewriter.frames.moving import Mover
from kinst.rewriter.frames.original import Common, OriginalFrames, Rows
from kinst.rewriter.frames.spans import ONE, Spans
from kinst.rewriter.frames.states import STILL, How, Motion, State, transition
from kinst.rewriter.frames.tables import old_table
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.columns import ranges
from kinst.targets.image import Image
from kinst.targets.values import dataclass

Read = Callable[[int, int], bytes]  # address and end of code of a trampoline -> the code
_NARROW, _BYTE, _HALF = 1 << 6, 1 << 8, 1 << 16  # advances of 1, 2, 3 and 5 bytes


def frames_of(image: Image, spans: Spans, read: Read) -> Frames | None:
    """How to unwind from trampolines; None: the original has no call frame information of the displaced instructions.

    Args:
        image: the original.
        spans: the trampolines.
        read: their code.
    """
    original = OriginalFrames(image)
    if not original or not len(spans):
        return None
    rows = original.rows_of(spans.origin)
    lines = _lines(image.facts, spans, read)
    row = rows.at(lines.origin)
    known = row >= 0
    lines, row = lines.take(known), row[known]
    if not len(row):
        return None
    facts, states = frame_facts(image.facts), _States(image.facts, original)
    state = states.of(rows, row, lines)
    return _records(image, facts, original, states, rows, row, lines, state)


@dataclass(frozen=True, slots=True, eq=False)
class _Lines:
    """Stretches of code in which nothing moves: `motion` by number."""

    address: NDArray[np.uint64]
    end: NDArray[np.uint64]
    origin: NDArray[np.uint64]
    motion: NDArray[np.int64]
    motions: tuple[Motion, ...]

    def take(self, rows: NDArray[np.bool_]) -> "_Lines":
        """Some of them."""
        return _Lines(self.address[rows], self.end[rows], self.origin[rows], self.motion[rows], self.motions)


def _lines(facts: ArchFacts, spans: Spans, read: Read) -> _Lines:
    """Each span, cut where its code moves something. Code of the same template and size does the same."""
    motions, known = Motions(facts), dict[Motion, int]({STILL: 0})
    size = (spans.end - spans.address).astype(np.int64)
    key = np.where(spans.template == ONE, ONE, spans.template << 16 | np.minimum(size, 0xFFFF))
    distinct, first, number = np.unique(key, return_index=True, return_inverse=True)
    count, at, motion = [], list[int](), list[int]()
    for one, row in zip(distinct.tolist(), first.tolist(), strict=True):
        code = b"" if one == ONE else read(int(spans.address[row]), int(spans.end[row]))
        found = motions.of(code)
        count.append(len(found))
        at += [offset for offset, _ in found]
        motion += [known.setdefault(moved, len(known)) for _, moved in found]
    counts = np.array(count, np.int64)
    begins = np.cumsum(counts) - counts
    own = np.repeat(np.arange(len(spans)), counts[number])
    part = ranges(begins[number], counts[number])
    address = spans.address[own] + np.array(at, np.uint64)[part]
    is_last = np.append(own[1:] != own[:-1], True)
    end = np.where(is_last, spans.end[own], np.append(address[1:], np.uint64(0)))
    return _Lines(address, end, spans.origin[own], np.array(motion, np.int64)[part], tuple(known))


class _States:
    """States in trampolines, by number."""

    def __init__(self, facts: ArchFacts, original: OriginalFrames) -> None:
        own, stack_pointer = frame_facts(facts), facts.unwind.dwarf_registers.index(facts.stack_pointer)
        self._commons = [*original.commons]
        self._original = [*original.states]
        self._movers = [
            Mover(stack_pointer, own.pc, one.return_register, facts.unwind.preserved) for one in self._commons
        ]
        self._known: dict[State, int] = {}

    def of(self, rows: Rows, row: NDArray[np.int64], lines: _Lines) -> NDArray[np.int64]:
        """The state of each line."""
        pairs = np.stack([rows.state[row], rows.common[row], lines.motion], axis=1)
        distinct, number = np.unique(pairs, axis=0, return_inverse=True)
        found, depends = np.zeros(len(distinct), np.int64), np.zeros(len(distinct), np.bool_)
        for at, (state, common, motion) in enumerate(distinct.tolist()):
            depends[at] = _has_expression(self._original[state])
            found[at] = self._number(state, common, lines.motions[motion], 0)
        result = found[number.reshape(-1)]
        # Those with an expression may depend on the address: a PLT's do.
        for line in np.flatnonzero(depends[number.reshape(-1)]).tolist():
            state, common, motion = pairs[line].tolist()
            result[line] = self._number(state, common, lines.motions[motion], int(lines.origin[line]))
        return result

    def _number(self, state: int, common: int, motion: Motion, address: int) -> int:
        moved = self._movers[common].moved(self._original[state], motion, address)
        return self._known.setdefault(moved, len(self._known))

    @property
    def every(self) -> tuple[State, ...]:
        """All that were numbered."""
        return tuple(self._known)


def _has_expression(state: State) -> bool:
    return bool(state.expression) or any(how in (How.AT, How.GIVEN) for _, (how, _, _) in state.rules)


def _records(
    image: Image,
    facts: FrameFacts,
    original: OriginalFrames,
    states: _States,
    rows: Rows,
    row: NDArray[np.int64],
    lines: _Lines,
    state: NDArray[np.int64],
) -> Frames:
    """Records for stretches of code whose instructions are of the same function."""
    stack_pointer = image.facts.unwind.dwarf_registers.index(image.facts.stack_pointer)
    commons = [_common(facts, stack_pointer, one) for one in original.commons]
    distinct = [*dict.fromkeys(commons)]
    common = np.array([distinct.index(one) for one in commons], np.int64)[rows.common[row]]
    function = rows.function[row]
    begins = np.append(True, (lines.address[1:] != lines.end[:-1]) | (function[1:] != function[:-1]))
    changes = begins | np.append(True, state[1:] != state[:-1])
    kept, first = np.flatnonzero(changes), np.flatnonzero(begins)
    # A state has its number, what a `Common` begins with the one before -1.
    before = np.where(begins[kept], -1 - common[kept], state[np.append(0, kept[:-1])])
    pool, at, length = _transitions(np.stack([before, state[kept]], axis=1), distinct, states.every)
    steps = (lines.address[kept] - lines.address[np.append(0, kept[:-1])]).astype(np.int64) // facts.code_factor
    steps[begins[kept]] = -1
    advance, advanced = _advances(steps)
    sizes = advanced + length
    starts = np.cumsum(sizes) - sizes
    code = np.zeros(int(sizes.sum()), np.uint8)
    code[ranges(starts, advanced)] = advance[np.repeat(np.arange(len(kept)), advanced), _within(advanced)]
    code[ranges(starts + advanced, length)] = pool[ranges(at, length)]
    last = np.append(first[1:], len(lines.end)) - 1
    own = np.append(starts, len(code))[np.append(np.searchsorted(kept, first), len(kept))]
    table, is_loaded = old_table(image)
    address = lines.address[first]
    return Frames(distinct, common[first], address, lines.end[last] - address, code, own, table, is_loaded)


def _common(facts: FrameFacts, stack_pointer: int, one: Common) -> encoding.Common:
    offset, saved = facts.at_entry
    rules = tuple((register, (How.SAVED, place, b"")) for register, place in saved)
    start = State(stack_pointer, offset, rules=rules)
    return encoding.Common(facts.code_factor, one.return_register, one.is_signal, one.has_key_b, start)


def _transitions(
    pairs: NDArray[np.int64], commons: list[encoding.Common], states: tuple[State, ...]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """The bytes of all distinct transitions, and where those of each pair are, and how many."""
    distinct, number = np.unique(pairs, axis=0, return_inverse=True)
    codes = [
        transition(states[before] if before >= 0 else commons[-1 - before].start, states[after])
        for before, after in distinct.tolist()
    ]
    length = np.array([len(one) for one in codes], np.int64)
    start, number = np.cumsum(length) - length, number.reshape(-1)
    return np.frombuffer(b"".join(codes), np.uint8), start[number], length[number]


def _advances(steps: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(n, 5) instructions that advance, and how many bytes each has; none for a step of -1."""
    found = np.zeros((len(steps), 5), np.uint8)
    length = np.select([steps < 0, steps < _NARROW, steps < _BYTE, steps < _HALF], [0, 1, 2, 3], 5)
    found[:, 0] = np.where(length == 1, 0x40 | np.maximum(steps, 0) & 0x3F, np.where(length == 5, 4, length))
    wide = np.maximum(steps, 0).astype("<u4")[:, None].view(np.uint8)
    found[:, 1:] = np.where((length > 1)[:, None], wide, 0)
    return found, length


def _within(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return ranges(np.zeros(len(counts), np.int64), counts)
