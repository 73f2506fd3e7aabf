"""An ELF file for `--load` -> its segments as they are in physical memory, and where it starts."""

from pathlib import Path
from typing import Final

from kinst.runtime.machine.configuration import FileAt
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import ImageError, UsageError
from kinst.targets.image import Segment, open_to_run

_MOST: Final = 1 << 30  # bytes from the first to the last segment


def placed_elf(path: Path, address: int | None) -> FileAt:
    """The file, at its physical addresses (p_paddr), or moved as a whole so that its lowest byte is at `address`. What
    has no content in it (.bss) is zero.

    Raises:
        UsageError: there is nothing to load, or its segments are too far apart.
    """
    try:
        image = open_to_run(path)
    except ImageError as error:
        raise UsageError(f"--load {error}") from None
    segments = [one for one in image.segments if one.kind == PT_LOAD and one.size]
    if not segments:
        raise UsageError(f"--load {path}: an ELF file without a PT_LOAD segment: there is nothing to load")
    lowest = min(one.load_address for one in segments)
    size = max(one.load_address + one.size for one in segments) - lowest
    if size > _MOST:
        raise UsageError(
            f"--load {path}: an ELF file whose segments are {size:#x} bytes apart: load its parts by themselves"
        )
    content = bytearray(size)
    for one in segments:
        at = one.load_address - lowest
        content[at : at + one.file_size] = image.data[one.offset : one.offset + one.file_size].data
    start = lowest if address is None else address
    entry, filled = _entry(image.entry, segments), max(one.load_address + one.file_size for one in segments) - lowest
    return FileAt(path.name, start, bytes(content), entry - lowest + start, filled)


def _entry(entry: int, segments: list[Segment]) -> int:
    """The physical address of the file's entry point."""
    for one in segments:
        if 0 <= entry - one.address < one.size:
            return entry - one.address + one.load_address
    return entry
