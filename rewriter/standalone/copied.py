"""A standalone image that copies itself elsewhere -> the trampolines of the copy, which keep hits where the image's do.

A copy has the image's jumps, byte for byte, so its trampolines are as far from it as the image's are from the image. In
them everything that refers to code moves along, and what refers to counters or the ring does not.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from kinst.rewriter.planning.slots import Placement
from kinst.rewriter.program import Program
from kinst.rewriter.shell.progress import Progress
from kinst.rewriter.standalone.plan import plan_again
from kinst.targets.errors import PlacementError
from kinst.targets.manifest.packed import Manifest

_ADDRESSES: Final = 1 << 64


def code_for_copy(program: Program, manifest: Manifest, distance: int, progress: Progress) -> bytes:
    """The trampolines for a copy, from its first one on.

    Args:
        program: the original.
        manifest: of the standalone image.
        distance: bytes from the image to the copy, a multiple of the page size.
        progress: notified of finished groups.

    Raises:
        PlacementError: from there counters or the ring are out of reach, or need longer code.
    """
    kept, (start, size) = manifest.standalone, manifest.trampolines
    assert kept is not None, "it is standalone"
    nearer = replace(manifest, standalone=replace(kept, address=(kept.address - distance) % _ADDRESSES))
    plan, generated = plan_again(program, nearer, Placement(start, start, size), progress)
    same = np.array_equal(generated.trampolines, manifest.sites["trampoline"])
    if generated.refused or not same:
        raise PlacementError(
            f"{program.image.path}: it copied itself by {distance:#x} bytes, from where what its probes keep is out of "
            "reach"
        )
    return plan.trampolines.tobytes()
