"""An image's segments -> guest memory by physical address; where it ended up."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kinst.runtime.linux_image import text_offset
from kinst.runtime.memory import PhysicalMemory
from kinst.targets.elf_header import PT_LOAD, FileKind
from kinst.targets.errors import MachineError
from kinst.targets.machines.machine import MachineFacts

if TYPE_CHECKING:
    from kinst.targets.image import Image, Segment


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
        return max((physical + size for _, physical, size in self.segments), default=0)

    @property
    def physical_entry(self) -> int:
        """Where to start while translation is off."""
        found = self.physical(self.entry - self.bias)
        return self.entry if found is None else found

    def physical(self, address: int) -> int | None:
        """Where a link address (without bias) was loaded; None if no segment holds it."""
        for virtual, physical, size in self.segments:
            if virtual <= address + self.bias < virtual + size:
                return address + self.bias - virtual + physical
        return None


def load_image(image: "Image", facts: MachineFacts, memory: PhysicalMemory, *, skip: int | None = None) -> Loaded:
    """Write every PT_LOAD segment to its physical address; the rest of it (.bss) is zero.

    An ET_DYN image that is linked where the machine has no memory is moved to the start of RAM, as QEMU does with
    position-independent firmware. A Linux kernel that is linked there goes where its boot header says, and keeps its
    virtual addresses: it maps itself.

    Args:
        image: what to load.
        facts: the machine.
        memory: its memory, RAM mapped.
        skip: link address of a segment that is not the guest's business: the trampolines.

    Raises:
        MachineError: a segment lies where the machine has no memory.
    """
    segments = [s for s in image.segments if s.kind == PT_LOAD and s.size and s.address != skip]
    if not segments:
        raise MachineError(f"{image.path}: nothing to load: it has no PT_LOAD segment")
    bias, distance = _moved(image, segments, facts, memory)
    for segment in segments:
        _load_segment(image, segment, segment.load_address + distance, memory, facts)
    placed = tuple((s.address + bias, s.load_address + distance, s.size) for s in segments)
    return Loaded(image, bias, image.entry + bias, placed)


def _moved(image: "Image", segments: list["Segment"], facts: MachineFacts, memory: PhysicalMemory) -> tuple[int, int]:
    """How far the image's virtual and its physical addresses move."""
    first = min(segments, key=lambda segment: segment.load_address)
    lowest = first.load_address
    end = max(segment.load_address + segment.size for segment in segments)
    if memory.find(lowest, end - lowest) is not None:
        return 0, 0
    offset = text_offset(image, first)
    if offset is not None:
        return 0, facts.ram_base + offset - lowest
    if image.kind is not FileKind.DYN:
        return 0, 0
    bias = facts.ram_base - (lowest & ~0xFFF)
    return bias, bias


def _load_segment(
    image: "Image", segment: "Segment", physical: int, memory: PhysicalMemory, facts: MachineFacts
) -> None:
    if memory.find(physical, segment.size) is None:
        raise MachineError(
            f"{image.path}: segment {segment.index} at {physical:#x} ({segment.size:#x} bytes) does not fit the memory "
            f"of {facts.name}, which begins at {facts.ram_base:#x}: try another --memory or --machine"
        )
    content = image.data[segment.offset : segment.offset + segment.file_size]
    memory.write(physical, content.data)
