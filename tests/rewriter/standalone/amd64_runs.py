"""Groups of instructions of amd64, run where they are and in their trampolines: what else differs."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from kinst.rewriter.liveness.effects import effector
from kinst.rewriter.standalone.code.trampoline import code_generator
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.instruction import Flow
from kinst.targets.standalone import RING_HEAD, WORD
from tests.rewriter.standalone.amd64_guest import PAGE, SPACE, Guest, drawn
from tests.rewriter.standalone.single import Count, Covered, Record, trampoline_of

GENERATOR = code_generator(AMD64)
HELD = effector(AMD64).held
FLAGS = sum(effector(AMD64).flags.values())
EVERYTHING = FLAGS | 0xFFFF
APART = 0x10_0000  # from code to its trampoline, and from there to what tasks write
MOST = 50  # instructions of a group that is a loop
_RED_ZONE = 128
_SCRATCH = _RED_ZONE + 8 * WORD  # as far below the stack pointer tasks may write, but for a red zone


@dataclass(frozen=True)
class Moved:
    """A group, its trampoline, and by how much both are moved from their link addresses."""

    group: Sequence[Covered]
    delta: int

    @property
    def address(self) -> int:
        return self.group[0].address

    @property
    def code(self) -> bytes:
        return b"".join(one.code for one in self.group)

    @property
    def trampoline(self) -> bytes:
        """Raises ImmovableError: there is none."""
        return trampoline_of(GENERATOR, self.group, self.address + APART)

    def differences(self, choose: random.Random, may_differ: Callable[[int], int]) -> str:
        """What a run leaves otherwise than it should; empty: nothing.

        `may_differ`: registers and flags that are dead at a link address.
        """
        trampoline, start = self.trampoline, self.address + self.delta
        inside = range(start + APART, start + APART + len(trampoline))
        plain, changed = Guest({start: self.code}), Guest({start: self.code, inside.start: trampoline})
        state = drawn(choose, start)
        first = plain.run(state, {one.address + self.delta for one in self.group}, MOST)
        if len(plain.path) == MOST or plain.read(start, len(self.code)) != self.code:
            return ""  # a loop without end, or code that writes over itself
        before = self._counts(changed)
        second = changed.run(replace(state, pc=inside.start), inside, 100 * MOST)
        if plain.fault != changed.fault or (not plain.fault and first.pc != second.pc):
            return f"ends at {second.pc:#x}, {changed.fault}, not at {first.pc:#x}, {plain.fault}"
        hits = self._executed([at - self.delta for at, _ in plain.path])
        counts = [count - start for start, count in zip(before, self._counts(changed), strict=True)]
        if counts != [hits[one.address] for one in self.group if isinstance(one.task, Count)]:
            return f"counts {counts}, not {hits}"
        # After an exception Unicorn has flags from before the last instructions.
        dead = may_differ(first.pc - self.delta) if not plain.fault else self._dead(plain) | FLAGS
        if first.differs(second) & ~dead:
            return f"{first.differs(second) & ~dead:#x} differ"
        own = {at % SPACE // PAGE for at in (*inside, *(at + self.delta for at in self._own()))}
        apart = _stained(plain, changed, own) - set(self._scratch(plain.path))
        return f"{len(apart)} bytes at {min(apart):#x} differ" if apart else ""

    def _own(self) -> Iterable[int]:
        """Addresses that tasks write to, and others on the same pages."""
        for task in (one.task for one in self.group):
            match task:
                case Count(cell):
                    yield cell
                case Record():
                    yield from range(task.ring, task.ring + RING_HEAD + (task.mask + 2) * task.stride, WORD)
                case None:
                    pass

    def _counts(self, guest: Guest) -> list[int]:
        return [guest.word(one.task.cell + self.delta) for one in self.group if isinstance(one.task, Count)]

    def _dead(self, plain: Guest) -> int:
        return next(one.dead for one in self.group if one.address + self.delta == plain.path[-1][0])

    def _executed(self, path: Sequence[int]) -> Counter[int]:
        """How often each instruction ran. String instructions are told of once a turn."""
        flows = {one.address: one.flow for one in self.group}
        turns = [at == last and flows[at] == Flow.NEXT for last, at in pairwise([0, *path])]
        return Counter(at for at, is_turn in zip(path, turns, strict=True) if not is_turn)

    def _scratch(self, path: Iterable[tuple[int, int]]) -> Iterable[int]:
        """Where trampolines may write: behind red zones, and below the return address that a call leaves."""
        by_address = {one.address + self.delta: one for one in self.group}
        for at, stack in ((at, stack % SPACE) for at, stack in path):
            if by_address[at].has_stack:
                yield from range(stack - _SCRATCH, stack - _RED_ZONE)
            if by_address[at].flow in (Flow.CALL, Flow.INDIRECT_CALL):
                yield from range(stack - 2 * WORD, stack - WORD)


def _stained(first: Guest, second: Guest, own: Iterable[int]) -> set[int]:
    """Addresses at which memory differs, but for those of some pages."""
    pages = (first.pages | second.pages) - {*own}
    found = set[int]()
    for page in pages:
        one, other = first.read(page * PAGE, PAGE), second.read(page * PAGE, PAGE)
        found |= {page * PAGE + at for at in range(PAGE) if one[at] != other[at]} if one != other else set()
    return found


def moved_by(choose: random.Random) -> int:
    """A distance by which an image may be moved."""
    return choose.choice((0, PAGE * choose.getrandbits(16)))
