"""Where an image is in the guest's memory."""

from typing import TYPE_CHECKING

from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.targets.image import Image


@dataclass(frozen=True, slots=True)
class Loaded:
    """An image in memory. Link addresses are virtual (p_vaddr). `bias`: how far its loader moved them, in bytes."""

    image: "Image"
    bias: int
    entry: int  # e_entry plus the bias, virtual or physical as in the image
    segments: tuple[tuple[int, int, int], ...]  # (virtual with bias, physical, memory size) of each PT_LOAD

    @property
    def end(self) -> int:
        """The first physical address after everything that was loaded."""
        return max((physical + size for _, physical, size in self.segments), default=0)

    @property
    def physical_entry(self) -> int:
        """The physical address of the entry, for a start with translation off."""
        found = self.physical(self.entry - self.bias)
        return self.entry if found is None else found

    def physical(self, address: int) -> int | None:
        """The physical address of a link address (without bias); None if no segment holds it."""
        for virtual, physical, size in self.segments:
            if virtual <= address + self.bias < virtual + size:
                return address + self.bias - virtual + physical
        return None

    @property
    def has_arrived(self) -> bool:
        """Whether it is, or was, in memory."""
        return True

    def has_lost(self, _address: int) -> bool:
        """Whether other code has taken the place of the image's at one of its virtual addresses."""
        return False
