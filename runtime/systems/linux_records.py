"""What clauses read of Linux's current task -> the words of it that a record has to have."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kinst.runtime.providers.structures import Way, find_way
from kinst.runtime.systems.linux_threads import OWN_NUMBERS
from kinst.targets.c_types import ImageTypes
from kinst.targets.standalone import WORD

TASK: Final = "struct task_struct"
# What D calls it -> the member. Others are behind pointers.
MEMBERS: Final = {"pid": "tgid", "tid": "pid", "execname": "comm"}
_CPUS: Final = (("thread_info", "cpu"), ("cpu",))  # where the number of the CPU is, or was
_STACK: Final = "stack"


@dataclass(frozen=True, slots=True)
class TaskWords:
    """Offsets of words in a task, each a multiple of its size."""

    types: ImageTypes

    def of(self, name: str) -> list[int] | None:
        """Those that a variable of D's is in. None: types do not tell."""
        return self._words([self._way(MEMBERS[name])])

    def of_thread(self) -> list[int] | None:
        """Those that tell tasks, and stacks that are not the task's, from each other."""
        own = next((way for way in map(self._way, OWN_NUMBERS) if way), None)
        return self._words([*([own] if own else []), self._way(_STACK)])

    @property
    def stack(self) -> int | None:
        """The one that has the address of its stack."""
        way = self._way(_STACK)
        return way[0][0] if way and way[0][0] % WORD == 0 else None

    @property
    def cpu(self) -> tuple[int, int] | None:
        """Where the number of its CPU is: 4 bytes, at an offset; and the word that these are in."""
        found = next((way for way in (self._way(*names) for names in _CPUS) if way), None)
        return None if found is None else (found[0][0], found[0][0] & -WORD)

    def _way(self, *members: str) -> Way | None:
        return find_way(self.types, TASK, members)

    def _words(self, ways: Iterable[Way | None]) -> list[int] | None:
        found: list[int] = []
        for way in ways:
            if not way:
                return None
            ((offset, size),) = way
            found += range(offset & -WORD, offset + size, WORD)
        return found
