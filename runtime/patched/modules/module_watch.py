"""A kernel that loads modules -> a call when one is in memory, before its code runs, and when it is about to be freed.

Linux calls do_init_module() when relocations are applied and it has written all that it writes into a module when it
loads one (alternatives, returns, the nops of the function tracer), and free_module() when a module is removed or its
initialisation has failed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kinst.runtime.paging.walker import Access

if TYPE_CHECKING:
    from kinst.runtime.engine.block_watch import BlockWatch
    from kinst.runtime.machine.loading.loaded import Loaded
    from kinst.runtime.machine.system import System

LOADED: Final = "do_init_module"
FREED: Final = "free_module"
_PAGE: Final = 4096
Call = Callable[[int], None]  # with the address of a struct module


class ModuleWatch:
    """Watches blocks of code that begin at the two functions, wherever the kernel maps them. The guest is not
    changed."""

    def __init__(
        self, system: "System", kernel: "Loaded", link_address: Callable[[str], int | None], loaded: Call, freed: Call
    ) -> None:
        """
        Args:
            system: the machine.
            kernel: the image that loads modules.
            link_address: gives that of a function of the kernel; None: it has none of that name.
            loaded: called when a module is loaded.
            freed: called when one is about to be freed.
        """
        self._live = system.engine.live
        self._module = system.arch.registers[system.arch.arguments[0]]
        self._calls: dict[int, Call] = {}  # by virtual address
        self._places: dict[int, list[tuple[int, Call]]] = {}  # physical page -> offsets in it
        self.can_see = link_address(LOADED) is not None  # whether the kernel loads modules, and where it does
        self._watch: BlockWatch | None = None
        if self.can_see:
            self._watch = system.engine.watch_blocks(self._reached)
            for name, call in ((LOADED, loaded), (FREED, freed)):
                self._add(kernel, link_address(name), call)
            system.space.on_executable(self._executable)

    def _add(self, kernel: "Loaded", link: int | None, call: Call) -> None:
        if link is None:
            return
        self._watch_at(link + kernel.bias, call)
        physical = kernel.physical(link)
        if physical is not None:
            self._places.setdefault(physical // _PAGE, []).append((physical % _PAGE, call))

    def _watch_at(self, address: int, call: Call) -> None:
        if self._watch is not None and address not in self._calls:
            self._calls[address] = call
            self._watch.add(address)

    def _executable(self, address: int, physical: int, _access: Access) -> None:
        """A page is about to be executed at a virtual address: a kernel may have moved itself by any distance."""
        for offset, call in self._places.get(physical // _PAGE, ()):
            self._watch_at((address & -_PAGE) + offset, call)

    def _reached(self, address: int) -> None:
        call = self._calls.get(address)
        if call is not None:
            call(self._live.get(self._module))
