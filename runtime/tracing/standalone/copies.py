"""A standalone image in a machine -> whether it has copied itself elsewhere, where its jumps lead to no trampolines."""

import re
from typing import Final

from kinst.rewriter.standalone.report import may_move
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.memory import PhysicalMemory
from kinst.targets.manifest.packed import Manifest

_LOOKED_FOR: Final = 64  # bytes from a jump on: another one has another distance in it


def copy_of(manifest: Manifest, loaded: Loaded, memory: PhysicalMemory) -> int | None:
    """The physical address of a copy of its code, jumps included, in which it can go on."""
    if not may_move(loaded.image, manifest) or not len(manifest.jumps):
        return None
    own = loaded.physical(int(manifest.jumps["address"][len(manifest.jumps) // 2]))
    if own is None or not memory.has(own, _LOOKED_FOR):
        return None
    code = re.compile(re.escape(memory.read(own, _LOOKED_FOR)), re.DOTALL)
    for region in memory.regions:
        found = (one.start() + region.base for one in code.finditer(region.view))
        other = next((address for address in found if address != own), None)
        if other is not None:
            return other
    return None
