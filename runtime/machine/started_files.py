"""Files of `--load` -> a warning for one that the guest has overwritten before control first reaches its first byte.

Firmware copies things to fixed addresses, such as OpenSBI's fw_jump the device tree: over the end of a kernel that is
larger than its builder expected. That kernel then stops without a message.
"""

from collections.abc import Callable

from kinst.runtime.machine.system import System
from kinst.runtime.paging.walker import Access


def watch_started_files(system: System, warn: Callable[[str], None]) -> None:
    """Check each file once, when a block of code begins at its address; `warn` is called at that moment."""

    def reached(address: int) -> None:
        if system.space.physical(address, Access.FETCH) != address:
            return  # a virtual address of something else
        watch.remove(address)
        changes = system.files.changes(address, system.memory, system.pristine)
        if changes is not None:
            warn(changes)

    watch = system.engine.watch_blocks(reached)
    for start in system.files.starts:
        watch.add(start)
