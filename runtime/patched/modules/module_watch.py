"""A kernel that loads modules -> a call when one is in memory, before its code runs, and when it is about to be freed.

Linux calls do_init_module() when relocations are applied and it has written all that it writes into a module when it
loads one (alternatives, returns, the nops of the function tracer), and free_module() when a module is removed or its
initialisation has failed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kinst.runtime.machine.system import System

LOADED: Final = "do_init_module"
FREED: Final = "free_module"


class ModuleWatch:
    """Watches blocks of code that begin at the two functions. The guest is not changed."""

    def __init__(
        self,
        system: "System",
        address_of: Callable[[str], int | None],
        loaded: Callable[[int], None],
        freed: Callable[[int], None],
    ) -> None:
        """
        Args:
            system: the machine.
            address_of: gives the address of a function of the kernel; None: it has none of that name.
            loaded: called with the address of a struct module.
            freed: the same.
        """
        self._live = system.engine.live
        self._module = system.arch.registers[system.arch.arguments[0]]
        pairs = ((address_of(LOADED), loaded), (address_of(FREED), freed))
        self._calls = {address: call for address, call in pairs if address is not None}
        self.can_see = address_of(LOADED) is not None  # whether the kernel loads modules, and where it does
        if self.can_see:
            watch = system.engine.watch_blocks(self._reached)
            for address in self._calls:
                watch.add(address)

    def _reached(self, address: int) -> None:
        call = self._calls.get(address)
        if call is not None:
            call(self._live.get(self._module))
