"""A task of Linux -> the key of its self-> variables, which no other task ever gets; and when a task has ended.

The kernel uses the memory of a task again for the next one, and soon. So a task is known by its address and by a number
of its own: the canary of its stack, which is random, stays the same across exec, and is there in kernels that are built
with a stack protector; else the time at which it was started.

How a task ends is not watched. Whenever there are twice as many tasks as were alive the last time, those that are dead
are forgotten with their variables: what is kept is never more than twice what is needed, and a new task costs two looks
at others.
"""

from collections.abc import Callable
from typing import Final

from kinst.runtime.clauses.environment import Memory
from kinst.runtime.providers.structures import Way, followed
from kinst.runtime.trap.faults import Fault
from kinst.targets.values import dataclass

_WORD: Final = 8
_ADDRESSES: Final = 1 << 64
_FEWEST: Final = 64  # tasks that are kept before any is checked
OWN_NUMBERS: Final = ("stack_canary", "start_time", "start_boottime")  # members that identify a task, the best first


@dataclass(frozen=True, slots=True)
class Known:
    """A task that is known: its stack is above `low` and up to `high`, and a word has a value of its own (the virtual
    address, and the value)."""

    low: int
    high: int
    word: tuple[int, int]


_Task = tuple[int, int]  # its address, and its own number


class LinuxThreads:
    """The tasks that used self->. `find` gives the way from a task to a member; None: the kernel does not have it."""

    def __init__(
        self, memory: Memory, find: Callable[[str], Way | None], stack_size: int | None, *, sees_others: bool = True
    ) -> None:
        """Nothing is read yet.

        Args:
            memory: the guest's.
            find: see the class.
            stack_size: that of the kernel's stacks in bytes; None if it is not known.
            sees_others: whether memory has other tasks than the current one. If not, a task has ended when another one
                is at its address.
        """
        self._memory, self._load, self._find = memory, memory.load, find
        self._size = stack_size or _ADDRESSES
        self._sees_others = sees_others
        self._latest: dict[int, _Task] = {}  # by address, where others are not seen
        self._keys: dict[_Task, tuple[int, int]] = {}  # -> its key, and the first address of its stack
        self._count = 0
        self._limit = _FEWEST
        self._own: int | None = None  # offset of the number
        self._forget: Callable[[int], None] = lambda _key: None
        self._on_change: list[Callable[[], None]] = []

    def on_change(self, call: Callable[[], None]) -> None:
        """Call `call` when tasks were forgotten."""
        self._on_change.append(call)

    def begin(self, forget: Callable[[int], None]) -> None:
        """A program uses self->. `forget` frees what belongs to a key."""
        self._forget = forget
        found = (way for way in map(self._find, OWN_NUMBERS) if way)
        self._own = next((way[0][0] for way in found), None)

    def key(self, task: int, sp: int | None) -> int | None:
        """The key of a task. None: `sp`, a stack pointer of the kernel's, is on another stack, an interrupt's."""
        if self._own is None:
            return task
        found = task, self._load(task + self._own, _WORD)
        known = self._keys.get(found) or self._new(found)
        if sp is not None and not 0 < sp - known[1] <= self._size:
            return None
        return known[0]

    def known(self, task: int) -> Known | None:
        """How to identify a task that has a key; None if only its address identifies it."""
        if self._own is None:
            return None
        word = task + self._own, self._load(task + self._own, _WORD)
        found = self._keys.get((task, word[1]))
        return None if found is None else Known(found[1], found[1] + self._size, word)

    def _new(self, task: _Task) -> tuple[int, int]:
        if self._sees_others:
            if len(self._keys) >= self._limit:
                self._sweep()
        else:
            if (gone := self._latest.get(task[0])) is not None:
                self._forget(self._keys.pop(gone)[0])
            self._latest[task[0]] = task
        self._count += 1
        known = self._keys[task] = self._count, self._number(task[0], "stack")
        return known

    def _sweep(self) -> None:
        """Forget the tasks that are dead."""
        for task in [task for task in self._keys if self._is_dead(*task)]:
            self._forget(self._keys.pop(task)[0])
        for call in self._on_change:
            call()
        self._limit = max(_FEWEST, 2 * len(self._keys))

    def _is_dead(self, task: int, number: int) -> bool:
        """Whether a task never runs again: its memory is another's, or it has ended and the scheduler has let it go."""
        try:
            if self._own is None or self._load(task + self._own, _WORD) != number:
                return True
        except Fault:
            return True
        is_running = self._number(task, "on_rq") or self._number(task, "on_cpu")
        return bool(self._number(task, "exit_state")) and not is_running

    def _number(self, task: int, member: str) -> int:
        way = self._find(member)
        return followed(self._memory, task, way) if way else 0
