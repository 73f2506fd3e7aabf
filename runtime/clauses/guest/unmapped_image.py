"""Addresses of the image that the guest's page tables do not map yet -> where the loader put them.

A kernel that is linked high is loaded low and turns paging on itself. Until then, in BEGIN and in its first functions,
nothing is mapped at the addresses of its variables, although a clause means these variables. Once the guest uses its
own page tables, only what they map is memory: a NULL pointer must be a fault even if something is linked at 0.
"""

from collections.abc import Callable, Sequence
from typing import Final

from kinst.runtime.clauses.guest.guest_memory import Translate
from kinst.runtime.machine.physical.stage import Stage

_LOW: Final = 0xFFFF_FFFF


def with_unmapped_image(
    observe: Translate, segments: Sequence[tuple[int, int, int]], stage: Callable[[], Stage]
) -> Translate:
    """A translation by `observe`, and where that finds nothing, by the image's segments: (virtual, physical, size)
    each."""
    high = [segment for segment in segments if segment[0] != segment[1]]
    if not high:
        return observe
    lowest, end = min(virtual for virtual, _, _ in high), max(virtual + size for virtual, _, size in high)

    def translate(address: int) -> int | None:
        found = observe(address)
        # An x86 CPU without paging uses only the low half of an address.
        if not lowest <= address < end or (found is not None and found != address & _LOW):
            return found
        now = stage()
        is_there = found == address and now is Stage.PHYSICAL  # a low address, which is the physical one
        if now is not Stage.TRANSLATED and not is_there:
            for virtual, physical, size in high:
                if virtual <= address < virtual + size:
                    return address - virtual + physical
        return found

    return translate
