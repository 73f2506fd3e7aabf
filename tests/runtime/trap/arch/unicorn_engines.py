"""Engines of Unicorn in the state after power-on, with memory at every address: lent, given back, and lent again. To
run one instruction on a new one takes three times as long.

The virtual TLB asks for each page that is touched, and finds it in a pool.
"""

import weakref
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import unicorn

PAGE: Final = 4096
_POOL_PAGES: Final = 64
Switches = tuple[tuple[int, int], ...]  # registers that are written at first, and what


@dataclass(frozen=True, slots=True)
class _Engine:
    uc: unicorn.Uc
    fresh: Any  # its state after power-on
    content: list[Callable[[int], bytes]]  # of a page: given by the borrower, none while it is free
    pages: dict[int, int]  # page -> number in the pool


# By arch, mode, what is written at first, and whether its runs are counted: Unicorn keeps a hook for counting, and when
# a run is not counted deletes it, which asks for the pages of every run before, more than the pool has.
_FREE: Final = defaultdict[tuple[int, int, Switches, bool], list[_Engine]](list)


class Engine:
    """An engine, for as long as somebody has this."""

    def __init__(
        self, arch: int, mode: int, content: Callable[[int], bytes], switches: Switches = (), *, counted: bool
    ) -> None:
        """`content` says what a page holds when it is first touched; `counted`: whether all its runs have a `count`."""
        free = _FREE[arch, mode, switches, counted]
        self._lent = lent = free.pop() if free else _made(arch, mode, switches)
        self.uc = lent.uc
        lent.content.append(content)
        weakref.finalize(self, _give_back, lent, free)

    def write(self, registers: Sequence[int], values: Sequence[int]) -> None:
        """A value for each register."""
        for register, value in zip(registers, values, strict=True):
            self.uc.reg_write(register, value)

    def read(self, registers: Sequence[int]) -> tuple[int, ...]:
        """The value of each register."""
        return tuple(map(self.uc.reg_read, registers))

    def changed_pages(self) -> dict[int, bytes]:
        """The touched pages that do not hold what they held at first."""
        (content,) = self._lent.content
        now = {page: bytes(self.uc.mem_read(at * PAGE, PAGE)) for page, at in self._lent.pages.items()}
        return {page: held for page, held in now.items() if held != content(page)}


def forget() -> None:
    """Whoever borrows next gets a new one."""
    _FREE.clear()


def _made(arch: int, mode: int, switches: Switches) -> _Engine:
    uc = unicorn.Uc(arch, mode)
    uc.ctl_set_tlb_mode(unicorn.UC_TLB_VIRTUAL)
    uc.mem_map(0, _POOL_PAGES * PAGE)
    for register, value in switches:
        uc.reg_write(register, value)
    made = _Engine(uc, uc.context_save(), [], {})

    def fill(uc: unicorn.Uc, address: int, access: int, entry: Any, data: object) -> bool:
        """Unicorn asks in pages of 1 KiB on arm64: what is answered is the address within the page."""
        page, offset = divmod(address, PAGE)
        if (at := made.pages.get(page)) is None:
            at = made.pages[page] = len(made.pages)
            uc.mem_write(at * PAGE, made.content[0](page))
        entry.paddr, entry.perms = at * PAGE + offset, unicorn.UC_PROT_ALL
        return True

    uc.hook_add(unicorn.UC_HOOK_TLB_FILL, fill)
    return made


def _give_back(engine: _Engine, free: list[_Engine]) -> None:
    """Nothing is left of what its user did: neither registers nor pages, nor translations of what they held."""
    engine.uc.context_restore(engine.fresh)
    engine.uc.ctl(unicorn.UC_CTL_TLB_FLUSH, unicorn.UC_CTL_IO_WRITE)
    engine.uc.ctl_flush_tb()
    engine.pages.clear()
    engine.content.clear()
    free.append(engine)
