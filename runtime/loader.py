"""An image's segments -> guest memory by physical address; where it ended up."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kinst.targets.image import Image


@dataclass(frozen=True, slots=True)
class Loaded:
    """An image in memory. Link addresses are virtual (p_vaddr); `bias` is what an ET_DYN image was moved by."""

    image: "Image"
    bias: int
    entry: int  # where to start, bias included, as e_entry says (virtual or physical as the image has it)
    segments: tuple[tuple[int, int, int], ...]  # (virtual with bias, physical, memory size) of each PT_LOAD

    @property
    def end(self) -> int:
        """First physical address behind everything loaded."""
        return max(physical + size for _, physical, size in self.segments)
