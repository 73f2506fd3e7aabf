"""A semaphore is raised where a process has it, and nowhere else: not in another page at the same place, nor without
its probe."""

from collections.abc import Callable, Sequence

from kinst.runtime.trap.trap import Enabling, Firing
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.runtime.userspace.semaphores import Semaphores

SITE, SEMAPHORE = 0x40_1000, 0x40_4010
PAGE, OTHER = 0x8000_3000, 0x8000_5000  # physical: the semaphore's, and one that is mapped beside it


class Space:
    """An address space of two pages."""

    def __init__(self) -> None:
        self.raised: Callable[[int, int], Sequence[int]] = lambda _physical, _size: ()
        self.pages: frozenset[int] = frozenset()

    def accessing(self) -> Firing:
        frame = TrapFrame([0], lambda _a, _s: 0, lambda _a, _s, _v: None, lambda _n, _v: None)
        return Firing(frame, Enabling(0, lambda _firing: None, lambda _firing, _index: 0, 0))

    def translated(self, address: int) -> int | None:
        return PAGE + SEMAPHORE % 0x1000 if address == SEMAPHORE else None

    def raise_words(self, pages: frozenset[int], raised: Callable[[int, int], Sequence[int]]) -> None:
        self.pages, self.raised = pages, raised


def test_a_word_is_raised_where_the_process_has_it() -> None:
    space, sites = Space(), {SITE}
    semaphores = Semaphores(space, lambda _firing, site: site in sites)
    semaphores.add([(SITE, SEMAPHORE)])
    assert space.pages == {SEMAPHORE >> 12}
    assert space.raised(PAGE + 0x10, 2) == [PAGE + 0x10]
    assert space.raised(PAGE + 0xC, 8) == space.raised(PAGE + 0x11, 1) == [PAGE + 0x10]  # wider, and half of it
    assert list(space.raised(PAGE + 0x12, 2)) == list(space.raised(PAGE + 0xE, 2)) == []
    assert list(space.raised(OTHER + 0x10, 2)) == []
    sites.clear()  # another program has something else there
    assert list(space.raised(PAGE + 0x10, 2)) == []


def test_a_word_goes_down_with_the_last_of_its_sites() -> None:
    space = Space()
    semaphores = Semaphores(space, lambda _firing, _site: True)
    semaphores.add([(SITE, SEMAPHORE), (SITE + 8, SEMAPHORE)])
    semaphores.keep(frozenset({SITE + 8}))
    assert space.raised(PAGE + 0x10, 2) == [PAGE + 0x10]
    semaphores.keep(frozenset())
    assert not space.pages and list(space.raised(PAGE + 0x10, 2)) == []
