"""A target and inputs -> inputs that reach something new, and those that crash it: guided by coverage."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.engine.host.edges import EDGES
from kinst.runtime.fuzzing.mutating import Mutator
from kinst.runtime.fuzzing.target import Target, kind_of, smaller
from kinst.runtime.machine.calling.called import Called
from kinst.runtime.machine.configuration import End
from kinst.targets.values import dataclass

_FIRST: Final = (b"\0", bytes(16), b"0")  # inputs where nobody gives any
_RECENT: Final = 8  # inputs that are changed as often as all others together
_OFTEN: Final = 256  # calls after which somebody may want to show where it is
_MOST_TRIES: Final = 400  # calls to make an input smaller
_STOPPING: Final = frozenset({End.INTERRUPTED, End.WALL_TIMEOUT})


def _classes() -> NDArray[np.uint8]:
    """AFL's: how often a pair of blocks was seen, as one of eight bits."""
    bounds = (1, 2, 3, 4, 8, 16, 32, 128, 256)
    table = np.zeros(256, np.uint8)
    for bit in range(8):
        table[bounds[bit] : bounds[bit + 1]] = 1 << bit
    return table


@dataclass(frozen=True, slots=True)
class Finding:
    """An input that crashes the function, or makes it hang."""

    data: bytes
    called: Called
    kind: tuple[str, ...]
    number: int  # of the call that found it


@dataclass(slots=True)
class Progress:
    """What has been done."""

    calls: int = 0
    kept: list[bytes] = field(default_factory=list)  # inputs, each of which has reached something new
    findings: list[Finding] = field(default_factory=list)
    edges: int = 0  # pairs of blocks that were reached


Told = Callable[[bytes | Finding | None], None]


class Fuzzer:
    """Fuzzes one function. What it does follows from the seed, the inputs and the words."""

    def __init__(
        self, target: Target, inputs: Iterable[bytes], words: Sequence[Sequence[bytes]], seed: int, largest: int
    ) -> None:
        """Nothing is called yet. `largest` is the size that no input exceeds, in bytes."""
        self._target, self._draw, self._largest = target, Random(seed), largest
        self._mutator = Mutator(self._draw, words, largest)
        self._inputs = list(inputs) or list(_FIRST)
        self._seen = np.zeros(EDGES // 8, np.uint64)
        self._class_of = _classes()
        self._kinds: set[tuple[str, ...]] = set()
        self._deadline: int | None = None
        self.progress = Progress()

    def run(self, most: int | None, seconds: float | None, told: Told) -> None:
        """Call the function until there were so many calls, or that time of the host's has passed, or somebody ends it.
        `told` is called with each input that reaches something new, with each finding, and now and then with None."""
        self._deadline = None if seconds is None else time.monotonic_ns() + int(seconds * 1e9)
        for data in self._inputs:
            if not self._try(data, told) or self._is_over(most):
                return
        while not self._is_over(most) and self._try(self._next(), told):
            pass

    def _is_over(self, most: int | None) -> bool:
        return most is not None and self.progress.calls >= most

    def _next(self) -> bytes:
        kept, draw = self.progress.kept or self._inputs, self._draw
        chosen = draw.choice(kept[-_RECENT:] if draw.random() < 0.5 else kept)
        return self._mutator.mutated(chosen, kept)

    def _left(self) -> int | None:
        return None if self._deadline is None else max(0, self._deadline - time.monotonic_ns())

    def _try(self, data: bytes, told: Told) -> bool:
        """Make one call. Returns whether to go on."""
        called = self._target.run(data, self._left())
        if called.end in _STOPPING:
            return False
        self.progress.calls += 1
        if not self.progress.calls % _OFTEN:
            told(None)
        is_new, kind = self._is_new(), kind_of(called)
        if kind is None:
            if is_new:
                self.progress.kept.append(data)
                told(data)
        elif kind not in self._kinds:
            self._kinds.add(kind)
            least, called = self._smallest(data, called, kind)
            finding = Finding(least, called, kind, self.progress.calls)
            self.progress.findings.append(finding)
            told(finding)
        return True

    def _is_new(self) -> bool:
        """Whether the last call has reached a pair of blocks that no call has, or one more often than any."""
        places, words = self._target.edges.taken()
        classes = self._class_of[words.view(np.uint8)].view(np.uint64)
        known = self._seen[places]
        if not (classes & ~known).any():
            return False
        self._seen[places] = known | classes
        self.progress.edges = int(np.count_nonzero(self._seen.view(np.uint8)))
        return True

    def _smallest(self, data: bytes, called: Called, kind: tuple[str, ...]) -> tuple[bytes, Called]:
        """An input that does the same and is as small as is found soon."""
        tries, is_smaller = 0, kind != ("hang",)
        while is_smaller and tries < _MOST_TRIES:
            is_smaller = False
            for less in smaller(data):
                tries += 1
                outcome = self._target.run(less, self._left())
                if kind_of(outcome) == kind:
                    data, called, is_smaller = less, outcome, True
                    break
                if tries >= _MOST_TRIES or outcome.end in _STOPPING:
                    return data, called
        return data, called
