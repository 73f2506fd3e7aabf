"""An image's segments -> guest memory by physical address, and a record of where they are."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kinst.runtime.machine.loading.linux_image import may_start_at, text_offset
from kinst.runtime.machine.loading.linux_offset import random_offset, random_place, relocate
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.memory import PhysicalMemory
from kinst.targets.elf.header import PT_LOAD, FileKind
from kinst.targets.errors import MachineError
from kinst.targets.kernels.multiboot import BootHeader, boot_header
from kinst.targets.machines.machine import MachineFacts
from kinst.targets.patch import Patch

if TYPE_CHECKING:
    from kinst.targets.image import Image, Segment

_PAGE: Final = 0x1000
_MOST_RAM: Final = 3 << 30  # bytes: the most that a message suggests


def load_image(
    image: "Image",
    facts: MachineFacts,
    memory: PhysicalMemory,
    *,
    skip: int | None = None,
    kaslr_seed: int | None = None,
    patches: Sequence[Patch] = (),
) -> Loaded:
    """Write every PT_LOAD segment to its physical address; what the file does not have of it (.bss) is zero.

    An ET_DYN image that is linked where the machine has no memory is moved to the start of RAM, as QEMU does with
    position-independent firmware. A Linux kernel is put where its boot header says, unless it is linked at such a place
    in RAM, and keeps its virtual addresses, since it maps itself. So does an image whose Multiboot header has address
    fields.

    Args:
        image: what to load.
        facts: the machine.
        memory: its memory, RAM mapped.
        skip: link address of a segment that is not loaded: the trampolines.
        kaslr_seed: move a Linux kernel to a random place, and relocate it if it does not do so itself.
        patches: what was written into the image; its relocations do not apply to it.

    Raises:
        MachineError: a segment is at an address where the machine has no memory.
    """
    segments = [s for s in image.segments if s.kind == PT_LOAD and s.size and s.address != skip]
    if not segments:
        raise MachineError(f"{image.path}: nothing to load: it has no PT_LOAD segment")
    header = boot_header(image) if facts.loads_multiboot else None
    if header is not None and header.load is not None:
        return _load_range(image, header, segments, memory, facts)
    if kaslr_seed is not None and facts.moves_kernels:
        return _load_at_random(image, segments, facts, memory, kaslr_seed, patches)
    bias, distance = _moved(image, segments, facts, memory, kaslr_seed)
    return _loaded(image, segments, facts, memory, Loaded(image, bias, image.entry + bias, ()), distance)


def _load_at_random(
    image: "Image",
    segments: list["Segment"],
    facts: MachineFacts,
    memory: PhysicalMemory,
    seed: int,
    patches: Sequence[Patch],
) -> Loaded:
    """A Linux kernel, moved and relocated. Its entry is a physical address."""
    bias, distance = random_offset(image, segments, memory.regions[0].size, seed)
    loaded = _loaded(image, segments, facts, memory, Loaded(image, bias, image.entry + distance, ()), distance)
    relocate(loaded, memory, patches)
    return loaded


def _loaded(
    image: "Image",
    segments: list["Segment"],
    facts: MachineFacts,
    memory: PhysicalMemory,
    loaded: Loaded,
    distance: int,
) -> Loaded:
    """Write the segments at their physical addresses plus `distance`."""
    placed = tuple((one.address + loaded.bias, one.load_address + distance, one.size) for one in segments)
    for segment, (_, physical, size) in zip(segments, placed, strict=True):
        if memory.find(physical, size) is None:
            whole = range(min(start for _, start, _ in placed), max(start + size for _, start, size in placed))
            raise MachineError(
                f"{image.path}: segment {segment.index}: {_why_not(physical, size, memory, facts, whole)}"
            )
        content = image.data[segment.offset : segment.offset + segment.file_size]
        memory.write(physical, content.data)
    return replace(loaded, segments=placed)


def misplaced(loaded: Loaded, facts: MachineFacts) -> str | None:
    """A warning about an image in the machine's flash that is not linked to begin at its start, as firmware for flash
    is: it is for another board, which has RAM at these addresses. None if the image is in place.
    What a boot ROM starts at EL3 is linked for SRAM, behind what the ROM itself uses there."""
    if facts.start is not None and facts.start.level == "EL3":
        return None
    first = min((physical for _, physical, _ in loaded.segments), default=0)
    for base, size in facts.other_memory:
        if base < first < base + size:
            return (
                f"{loaded.image.path}: is linked for memory at {first:#x} to {loaded.end:#x}, where {facts.name} has "
                f"flash, {base:#x} to {base + size:#x}: it is for another board, and will hardly run on this one"
            )
    return None


def _load_range(
    image: "Image", header: BootHeader, segments: list["Segment"], memory: PhysicalMemory, facts: MachineFacts
) -> Loaded:
    """Write one piece of the file, by a Multiboot header's address fields, whatever the program headers say."""
    load = header.load
    assert load is not None
    where = range(load.address, load.address + load.room)
    if memory.find(load.address, load.room) is None:
        raise MachineError(
            f"{image.path}: its Multiboot header: {_why_not(load.address, load.room, memory, facts, where)}"
        )
    memory.write(load.address, image.data[load.offset : load.offset + load.size].data)
    distance = load.address - load.offset
    placed = tuple((s.address, s.offset + distance, s.size) for s in segments if s.file_size)
    return Loaded(image, 0, image.entry if header.entry is None else header.entry, placed)


def _moved(
    image: "Image", segments: list["Segment"], facts: MachineFacts, memory: PhysicalMemory, seed: int | None
) -> tuple[int, int]:
    """How far the image's virtual and physical addresses move, in bytes."""
    first = min(segments, key=lambda segment: segment.load_address)
    lowest = first.load_address
    end = max(segment.load_address + segment.size for segment in segments)
    has_memory = memory.find(lowest, end - lowest) is not None
    offset = text_offset(image, first)
    if offset is not None:
        is_right = has_memory and lowest >= facts.ram_base and may_start_at(lowest, offset)
        at_random = 0 if seed is None else random_place(end - lowest, memory.regions[0].size, seed)
        return 0, at_random if is_right else facts.ram_base + offset + at_random - lowest
    if has_memory:
        return 0, 0
    if image.kind is not FileKind.DYN:
        return 0, 0
    bias = facts.ram_base - (lowest & ~0xFFF)
    return bias, bias


def _why_not(physical: int, size: int, memory: PhysicalMemory, facts: MachineFacts, whole: range) -> str:
    """Why [physical, physical + size) of an image that is linked for `whole` cannot be loaded, and what would help.
    More memory only extends RAM at its end."""
    ram = next(region for region in memory.regions if region.base == facts.ram_base)
    what = f"{size:#x} bytes at {physical:#x} are not in {facts.name}'s RAM, {ram.base:#x} to {ram.base + ram.size:#x}"
    if facts.file is not None:  # the user's own board, which may lack SRAM: trees do not have what firmware uses
        start, end = physical & -_PAGE, -(-(physical + size) // _PAGE) * _PAGE
        place = f"address = {start:#x}, size = {end - start:#x}"
        return f"{what}: if the board has memory there, add [memory.sram] with {place}"
    wanted = f"{whole.start:#x} to {whole.stop:#x}"
    if whole.start < ram.base or whole.stop - ram.base > _MOST_RAM:
        return (
            f"{what}, and no --memory will do: the image wants {wanted}, and is linked for another board, see --machine"
        )
    advice = f"--memory {-(-(whole.stop - ram.base) >> 20)}m or more"
    if whole.start < ram.base + facts.ram_size:
        return f"{what}: try {advice}"
    return f"{what}: the image wants RAM at {wanted}, as another board has it; if it is for this one, {advice}"
