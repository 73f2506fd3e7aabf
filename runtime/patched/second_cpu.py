"""Guest code that is run ahead, to see what it would do: in another emulator, on copies of the CPU's registers and of
the pages that it accesses. The guest cannot observe it.
"""

import mmap
from collections.abc import Callable
from functools import cached_property
from typing import Final, NoReturn

from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.runtime.engine.reports import Stop
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.system import System
from kinst.runtime.paging.walker import Access, PageFault, Permission
from kinst.runtime.trap.trap_frame import TrapFrame

_PAGE: Final = 4096
_OFFSET: Final = _PAGE - 1
_ADDRESS: Final = (1 << 64) - 1
_DATA_PAGES: Final = 256  # copies, for each run anew
_CODE_PAGES: Final = 8192  # copies that are kept, so that their translation is, too
_FEWEST: Final = 512  # free ones when a run begins
_DATA: Final = int(Permission.READ | Permission.WRITE)
_CODE: Final = int(Permission.READ | Permission.EXECUTE)


class SecondCpu:
    """A CPU that begins each run as the guest's is at the moment."""

    def __init__(self, system: System, loaded: Loaded) -> None:
        """The emulator behind it is made when it runs for the first time. `loaded` is where the guest's image is."""
        self._system = system
        self._image = loaded
        self._physical: dict[int, int] = {}  # of the image's pages by virtual address, which do not change
        self._data: dict[int, int] = {}  # of this run: physical address of a page -> page of the pool
        # By the addresses at which runs stop, for which code is translated: virtual page -> its bytes in the guest,
        # page of the pool.
        self._code_of: dict[frozenset[int], dict[int, tuple[bytes, int]]] = {}
        self._code: dict[int, tuple[bytes, int]] = {}
        self._code_pages = 0  # that are in use
        self._stops: frozenset[int] = frozenset()
        self._change: Callable[[int, memoryview], None] = _as_it_is
        self._pool = memoryview(b"")

    @cached_property
    def _engine(self) -> QilingMachine:
        engine = QilingMachine(self._system.arch)
        pool = mmap.mmap(-1, (_DATA_PAGES + _CODE_PAGES) * _PAGE)
        engine.map_memory(0, pool)
        engine.on_tlb_fill(self._fill)
        self._pool = memoryview(pool)
        self._counter = engine.count_instructions()
        self._state = self._system.engine.states.save()
        return engine

    @cached_property
    def frame(self) -> TrapFrame:
        """Its registers after a run, and its memory."""
        return TrapFrame(self._engine.frame.regs, self._load, _no_store, lambda _number, _value: None)

    # -- running ------------------------------------------------------------------------------------------------------

    def begin(self, pc: int, change: Callable[[int, memoryview], None]) -> None:
        """Copy the guest's registers, and go to `pc`. `change` is called with the address and the content of each page
        of data that is copied, and may change the copy."""
        engine = self._engine
        # A page of code cannot be reused by itself: what was translated of it would run in place of the new code.
        if self._code_pages > _CODE_PAGES - _FEWEST:
            self._code_of.clear()
            self._code_pages = 0
            engine.forget_all_code()
        self._data.clear()
        self._change = change
        self._system.engine.states.save_to(self._state)
        engine.states.restore(self._state)
        engine.flush_tlb()  # it has the data pages of the last run
        engine.set_pc(pc)

    def go_to(self, pc: int) -> None:
        """Continue elsewhere."""
        self._engine.set_pc(pc)

    def run(self, stops: frozenset[int], limit: int) -> int | None:
        """Run until the PC is one of `stops`, at most `limit` instructions. Returns the PC; None if it reached none."""
        engine = self._engine
        if stops is not self._stops:
            self._stops, self._code = stops, self._code_of.setdefault(stops, {})
            engine.stop_at(list(stops))
        self._counter.grant(limit)
        reason = engine.run()  # a fault or an exception ends it as well: nothing handles them here
        pc = engine.pc()
        if reason is not Stop.HALTED or pc not in stops:
            return None
        engine.frame.read()
        return pc

    # -- memory -------------------------------------------------------------------------------------------------------

    def _fill(self, address: int, access: Access) -> tuple[int, int] | None:
        virtual = address & ~_OFFSET
        physical = self._translate(virtual)
        region = None if physical is None else self._system.memory.find(physical, _PAGE)
        if physical is None or region is None:
            return None
        content = region.view[physical - region.base : physical - region.base + _PAGE]
        is_code = access is Access.FETCH
        page = self._code_page(virtual, content) if is_code else self._data_page(virtual, physical, content)
        return None if page is None else (page * _PAGE | address & _OFFSET, _CODE if is_code else _DATA)

    def _translate(self, virtual: int) -> int | None:
        physical = self._physical.get(virtual)
        if physical is None:
            physical = self._system.space.observe(virtual)
            if physical is not None and any(start <= virtual < start + size for start, _, size in self._image.segments):
                self._physical[virtual] = physical
        return physical

    def _data_page(self, virtual: int, physical: int, content: memoryview) -> int | None:
        page = self._data.get(physical)
        if page is None and len(self._data) < _DATA_PAGES:
            page = self._data[physical] = len(self._data)
            copy = self._pool[page * _PAGE : (page + 1) * _PAGE]
            copy[:] = content
            self._change(virtual, copy)
        return page

    def _code_page(self, virtual: int, content: memoryview) -> int | None:
        """A copy without breakpoints. A page that the guest has changed gets another: the first one has been
        translated."""
        known = self._code.get(virtual)
        if known is not None and known[0] == content:
            return known[1]
        if self._code_pages == _CODE_PAGES:
            return None
        page = _DATA_PAGES + self._code_pages
        self._code_pages += 1
        kept = bytes(content)
        self._pool[page * _PAGE : (page + 1) * _PAGE] = self._system.pristine(virtual, kept)
        self._code[virtual] = kept, page
        return page

    def _load(self, address: int, size: int) -> int:
        first = min(size, _PAGE - (address & _OFFSET))
        value = self._load_in_page(address, first)
        return value if first == size else value | self._load_in_page(address + first, size - first) << 8 * first

    def _load_in_page(self, address: int, size: int) -> int:
        physical = self._translate(address & _ADDRESS & ~_OFFSET)
        if physical is None or self._system.memory.find(physical, _PAGE) is None:
            raise PageFault(address & _ADDRESS, Access.READ, 0)
        page, offset = self._data.get(physical), address & _OFFSET
        if page is None:
            return self._system.memory.load(physical | offset, size)
        return int.from_bytes(self._pool[page * _PAGE | offset : (page * _PAGE | offset) + size], "little")


def _as_it_is(_address: int, _copy: memoryview) -> None:
    """Change nothing."""


def _no_store(address: int, _size: int, _value: int) -> NoReturn:
    raise PageFault(address, Access.WRITE, 0)
