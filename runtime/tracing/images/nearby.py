"""An image that is patched in memory -> an address for its trampolines from which jumps reach the image, if
possible."""

from typing import TYPE_CHECKING, Final

from kinst.runtime.trap.arch.registry import jump
from kinst.targets.elf.header import PT_LOAD

if TYPE_CHECKING:
    from kinst.targets.image import Image

_BELOW: Final = 64 << 20  # bytes below the image: the trampolines of eight million sites
_KERNEL_HALF: Final = 1 << 63  # of the address space


def nearby(image: "Image") -> int | None:
    """An address below the image; None: trampolines go where they go by default.

    In the kernel's half of the address space there is nothing below the image but modules, which are allocated from the
    other end. In the lower half there may be RAM that the guest uses. Where no jump reaches, or where trampolines
    return through an address in memory, any address serves.
    """
    make, segments = jump(image.facts), [one for one in image.segments if one.kind == PT_LOAD and one.size]
    if make is None or not segments:
        return None
    first = min(segment.address for segment in segments)
    end = max(segment.address + segment.size for segment in segments)
    base = (first - _BELOW) & -_BELOW
    if base < _KERNEL_HALF or make(base, end) is None:
        return None
    return base
