"""An image that may copy itself elsewhere, and a board -> how much memory the board has, and what the guest is told.

    start        the board's RAM
    ...          what the guest is told of: its image, behind that the trampolines, at its end perhaps a copy
    top          what it is not told of
    copies       the trampolines of a copy, as far behind that as the image's are behind the image
    data         counters, or the ring: those of the image and of its copy are the same
    end          what firmware and QEMU put at the end of RAM: a device tree, tables

U-Boot copies itself to the end of the RAM that it knows. A copy's jumps are the image's own, so trampolines that are a
little behind the image are behind that end for the copy: in memory that nobody but us knows.
"""

from typing import Final

from kinst.rewriter.planning.slots import CHUNK
from kinst.rewriter.standalone.copies import may_copy_itself
from kinst.rewriter.standalone.places.gaps import gaps
from kinst.runtime.live.room.layout import kernel_of
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import UsageError
from kinst.targets.image import Image
from kinst.targets.values import dataclass

_ABOVE: Final = 32 << 20  # bytes that a guest may keep above its copy, such as a frame buffer, where jumps reach so far
_MOST_CODE: Final = 16 << 20  # bytes of trampolines
_MOST_DATA: Final = 40 << 20
_END: Final = 16 << 20
_REACHES: Final = 3  # times the distance that jumps then have to bridge
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class KeptBack:
    """What is kept from a guest, in physical addresses, and how far those of the image are from its link addresses."""

    start: int
    memory: int  # bytes that it is told of
    trampolines: int
    bias: int
    above: int  # bytes that the guest may have between the end of its copy and the end of its memory

    @property
    def top(self) -> int:
        """The first address that the guest is not told of."""
        return self.start + self.memory

    @property
    def data(self) -> int:
        """Where counters or the ring are."""
        return self.top + self.above + _MOST_CODE

    @property
    def copies(self) -> range:
        """Where the trampolines of a copy may be. If they have to be near, the guest may have other plans there: they
        are compared with what they were, as long as it runs."""
        return range(self.top if self.above else self.start, self.data)

    @property
    def total(self) -> int:
        """Bytes of RAM that the board has."""
        size = self.data + _MOST_DATA + _END - self.start
        return size + -size % _MIB


def may_move(image: Image) -> bool:
    """Whether an image is given memory for the trampolines of its copy: it may make one, and has no room inside for
    trampolines that would be in it."""
    code = min((one.address for one in image.code_regions), default=0)
    return may_copy_itself(image) and kernel_of(image) is None and not gaps(image, code)


def kept_back(image: Image, start: int, memory: int, bias: int) -> KeptBack:
    """The layout for a board.

    Args:
        image: the original.
        start: the physical address of the board's RAM.
        memory: how much of it the guest is to have.
        bias: from link addresses to those at which QEMU puts the image.

    Raises:
        UsageError: there is so much of it that what is behind it is out of reach.
    """
    facts = image.facts
    end = max(one.address + one.size for one in image.segments if one.kind == PT_LOAD)
    # riscv64 jumps over 1 MiB only where a register is dead, so there it is near: nothing may be above the copy.
    above = _ABOVE if facts.jump.reach >= _REACHES * _ABOVE else 0
    memory -= memory % CHUNK
    found = KeptBack(start, memory, end + -end % CHUNK + above + bias, bias, above)
    first = min(one.address for one in image.code_regions) + bias
    too_far = found.data + _MOST_DATA - first - facts.trampoline_window
    if too_far >= 0:
        most = max(memory - too_far - 1, 0)
        raise UsageError(
            f"--on: {image.path}: may copy itself to the end of {memory >> 20:,} MiB of memory, where what its probes "
            f"keep is out of reach: give it at most {most >> 20:,} MiB (-m)"
        )
    return found
