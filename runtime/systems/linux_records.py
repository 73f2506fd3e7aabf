"""Variables of D that describe Linux's current task -> offsets of the words of it that a record must have."""

from collections.abc import Iterable
from typing import Final

from kinst.runtime.providers.structures import Way, find_way
from kinst.runtime.systems.linux_threads import OWN_NUMBERS
from kinst.targets.c_types import ImageTypes
from kinst.targets.standalone import WORD
from kinst.targets.values import dataclass

TASK: Final = "struct task_struct"
# The variable of D -> the member. Those of other variables are behind pointers.
MEMBERS: Final = {"pid": "tgid", "tid": "pid", "execname": "comm"}
_CPUS: Final = (("thread_info", "cpu"), ("cpu",))  # with CONFIG_THREAD_INFO_IN_TASK, in newer and older kernels
_STACK: Final = "stack"


@dataclass(frozen=True, slots=True)
class TaskWords:
    """Offsets of words in a task, each a multiple of the word's size."""

    types: ImageTypes

    def of(self, name: str) -> list[int] | None:
        """The words that a variable of D is in. None: the type of tasks is not known, or has no such member."""
        return self._words([self._way(MEMBERS[name])])

    def of_thread(self) -> list[int] | None:
        """The words by which one task is distinguished from the next at its address, and its stack from others."""
        own = next((way for way in map(self._way, OWN_NUMBERS) if way), None)
        return self._words([*([own] if own else []), self._way(_STACK)])

    @property
    def stack(self) -> int | None:
        """The offset of the word with the address of its stack."""
        way = self._way(_STACK)
        return way[0][0] if way and way[0][0] % WORD == 0 else None

    @property
    def cpu(self) -> tuple[int, int] | None:
        """The offset of the number of its CPU, which has 4 bytes, and that of the word that these are in."""
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
