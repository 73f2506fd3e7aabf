"""A standalone image in a machine -> whether it has copied itself elsewhere: the jumps in a copy miss the
trampolines."""

import re
from typing import Final

from kinst.rewriter.standalone.report import may_move
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.memory import PhysicalMemory
from kinst.targets.manifest.packed import Manifest

_SEARCHED: Final = 64  # bytes from a jump on. They are unique: each jump has a different displacement


def copy_of(manifest: Manifest, loaded: Loaded, memory: PhysicalMemory) -> int | None:
    """The physical address of a copy of the image's code, jumps included; None: there is none, or the image is known
    not to move."""
    if not may_move(loaded.image, manifest) or not len(manifest.jumps):
        return None
    own = loaded.physical(int(manifest.jumps["address"][len(manifest.jumps) // 2]))
    if own is None or not memory.has(own, _SEARCHED):
        return None
    code = re.compile(re.escape(memory.read(own, _SEARCHED)), re.DOTALL)
    for region in memory.regions:
        found = (one.start() + region.base for one in code.finditer(region.view))
        other = next((address for address in found if address != own), None)
        if other is not None:
            return other
    return None
