"""An ELF file for `--load` -> its segments as they are in physical memory, and where it starts."""

from pathlib import Path
from typing import Final

from kinst.runtime.machine.configuration import FileAt
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import ImageError, ManifestError, UsageError
from kinst.targets.image import Image, Segment, open_to_run
from kinst.targets.manifest.packed import find_manifest

_MOST: Final = 1 << 30  # bytes from the first to the last segment


def placed_elf(path: Path, address: int | None) -> FileAt:
    """The file, at its physical addresses (p_paddr), or moved as a whole so that its lowest byte is at `address`. What
    has no content in it (.bss) is zero. A patched file is as it was before: its breakpoints are written when its code
    is about to run.

    Raises:
        UsageError: there is nothing to load, or its segments are too far apart.
    """
    try:
        image = _original(path)
    except (ImageError, ManifestError) as error:
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


def _original(path: Path) -> Image:
    """The image without the breakpoints that its file may have."""
    image = open_to_run(path)
    manifest = find_manifest(image)
    if manifest is None or manifest.standalone is not None:
        return image
    from kinst.rewriter.writing.restore import open_original  # what few files need

    return open_original(path, read=open_to_run)[0]


def _entry(entry: int, segments: list[Segment]) -> int:
    """The physical address of the file's entry point."""
    for one in segments:
        if 0 <= entry - one.address < one.size:
            return entry - one.address + one.load_address
    return entry
