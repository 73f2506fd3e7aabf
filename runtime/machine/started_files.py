"""Files of `--load` -> a warning for one that the guest has written over before control first comes to its first byte.

Firmware copies things to where it was built to have them, such as OpenSBI's fw_jump its device tree: over the end of a
kernel that is larger than was thought of. What is started then stops without a word.
"""

from collections.abc import Callable

from kinst.runtime.machine.system import System
from kinst.runtime.paging.walker import Access


def watch_started_files(system: System, warn: Callable[[str], None]) -> None:
    """Look at each file once, when a block of code begins at its address; `warn` is called at once."""

    def reached(address: int) -> None:
        if system.space.physical(address, Access.FETCH) != address:
            return  # a virtual address of something else
        watch.remove(address)
        changes = system.files.changes(address, system.memory)
        if changes is not None:
            warn(changes)

    watch = system.engine.watch_blocks(reached)
    for start in system.files.starts:
        watch.add(start)
