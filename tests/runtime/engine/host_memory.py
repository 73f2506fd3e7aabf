"""Memory of this process as that of a Unicorn engine, which executes a host's machine code on it, and that code."""

import ctypes
from collections.abc import Iterable, Iterator

import unicorn

from kinst.runtime.engine.host.routine import Routine

_PAGE = 4096


def map_pages(cpu: unicorn.Uc, mapped: set[int], places: Iterable[tuple[int, int]]) -> None:
    """Map what lies at these addresses, of these sizes in bytes, but for pages in `mapped`, to which they are added."""
    wanted = {page for at, size in places for page in range(at // _PAGE, (at + size + _PAGE - 1) // _PAGE)} - mapped
    for start, count in _runs(sorted(wanted)):
        at = start * _PAGE
        cpu.mem_map_ptr(at, count * _PAGE, unicorn.UC_PROT_ALL, ctypes.c_void_p(at))
    mapped |= wanted


def _runs(pages: list[int]) -> Iterator[tuple[int, int]]:
    """The first of pages that follow each other, and how many they are."""
    start = 0
    for end in range(1, len(pages) + 1):
        if end == len(pages) or pages[end] != pages[end - 1] + 1:
            yield pages[start], end - start
            start = end


def host_code(routine: Routine, host: str) -> bytes:
    """The machine code of a routine for a host that has it."""
    found = routine.code(host)
    assert found is not None
    return found
