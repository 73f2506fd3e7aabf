"""Semaphores of static probes: words of a program that say whether somebody traces, and are read before arguments are
computed that cost time.

A tracer counts them up in the memory of each process. Here nothing is stored: what the process loads from such a word
is one more than what is there, and what it stores to it one less. So pages stay shared with the file, a fork copies
what was there, and who reads the memory in another way sees no tracer.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from kinst.runtime.trap.trap import Firing

_PAGE_SHIFT, _IN_PAGE = 12, 0xFFF
_WORD: Final = 2  # bytes of a semaphore

Raised = Callable[[int, int], Sequence[int]]


class WordMachine(Protocol):
    """What is asked of the machine."""

    def accessing(self) -> Firing:
        """A firing at the instruction whose access is being answered."""
        ...

    def translated(self, address: int) -> int | None:
        """The physical address of a virtual one in the address space that runs."""
        ...

    def raise_words(self, pages: frozenset[int], raised: Raised) -> None:
        """From now on, ask `raised` at each access through a virtual page: it is given a physical address and a size
        in bytes, and gives the physical addresses of the 16-bit words there that are raised."""
        ...


class Semaphores:
    """Those of all processes, by their virtual addresses."""

    def __init__(self, machine: WordMachine, is_site: Callable[[Firing, int], bool]) -> None:
        """None is raised. `is_site` says whether a site with a semaphore is at an address in the process of a
        firing."""
        self._machine, self._is_site = machine, is_site
        self._sites: dict[int, set[int]] = {}  # by the address of a semaphore, those of its sites
        self._by_place: dict[int, list[int]] = {}  # by the place in a page, addresses of semaphores

    def prepare(self) -> None:
        """Let semaphores be raised, also while the machine runs. Between two runs."""
        self._tell()

    def add(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Raise semaphores: addresses of a site and of its semaphore, wherever a process has both."""
        before = len(self._sites)
        for site, semaphore in pairs:
            if semaphore & _IN_PAGE <= _IN_PAGE + 1 - _WORD:  # compilers align it
                self._sites.setdefault(semaphore, set()).add(site)
        if len(self._sites) != before:
            self._tell()

    def keep(self, sites: frozenset[int]) -> None:
        """Forget those of other sites than these."""
        before = len(self._sites)
        kept = {semaphore: own & sites for semaphore, own in self._sites.items()}
        self._sites = {semaphore: own for semaphore, own in kept.items() if own}
        if len(self._sites) != before:
            self._tell()

    def _tell(self) -> None:
        self._by_place = {}
        for semaphore in self._sites:
            self._by_place.setdefault(semaphore & _IN_PAGE, []).append(semaphore)
        self._machine.raise_words(frozenset(one >> _PAGE_SHIFT for one in self._sites), self._raised)

    def _raised(self, physical: int, size: int) -> Sequence[int]:
        places = range(physical - _WORD + 1, physical + size)
        found = [(place, one) for place in places for one in self._by_place.get(place & _IN_PAGE, ())]
        if not found:
            return ()
        firing = self._machine.accessing()
        return [
            place for place, one in found if self._machine.translated(one) == place and self._is_raised(firing, one)
        ]

    def _is_raised(self, firing: Firing, semaphore: int) -> bool:
        return any(self._is_site(firing, site) for site in self._sites[semaphore])
