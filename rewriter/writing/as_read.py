"""A plan for an image that was in another file than an ELF file -> such a file, patched, and its manifest beside it."""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.planning.plan import Plan
from kinst.rewriter.planning.slots import GRANULE, Placement
from kinst.rewriter.shell.progress import Progress, silent
from kinst.rewriter.writing.write import mode_of, new_file, write_image
from kinst.targets.elf.file import map_file
from kinst.targets.elf.header import PROGRAM_HEADER, PT_LOAD, read_elf_header, read_program_headers
from kinst.targets.image import Image
from kinst.targets.packed.beside import manifest_beside, path_beside
from kinst.targets.values import dataclass

_PT_NULL: Final = 0
# Behind the memory of a file without headers are .bss, heap and stacks, whose size nobody knows: OpenSBI takes 600 KiB.
_LEFT_FREE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Written:
    """The files that were written besides the image."""

    manifest: Path
    trampolines: Path | None  # those that are not in the image's file
    address: int  # where trampolines have to be loaded


def trampoline_place(image: Image) -> int | None:
    """Where the trampolines of an image without headers go: behind its memory, and what it may use there.

    None: anywhere.
    """
    if image.container is None or image.container.has_headers:
        return None
    end = max((one.address + one.size for one in image.segments if one.kind == PT_LOAD), default=0) + _LEFT_FREE
    return end + -end % GRANULE


def write_as_read(
    plan: Plan,
    out: Path,
    *,
    is_apart: bool = False,
    trampoline_symbols: bool = False,
    progress: Progress = silent,
) -> Written | None:
    """Write a file of the kind that was read. Returns what else was written; None: an ELF file holds all.

    Args:
        plan: of the image.
        out: the file.
        is_apart: whether the trampolines are in another file, if this one has its memory in one piece.
        trampoline_symbols: whether they have names.
        progress: notified while it is written.

    Raises:
        PlacementError: the trampolines cannot be in the file.
        ImageError: such a file is not written.
        OSError: it cannot be written.
    """
    container = plan.image.container
    if container is None:
        write_image(plan, out, trampoline_symbols=trampoline_symbols, progress=progress)
        return None
    with tempfile.TemporaryDirectory(prefix="kinst-") as folder:
        file = Path(folder) / "image.elf"
        write_image(plan, file, trampoline_symbols=trampoline_symbols, progress=progress)
        elf = map_file(file)
    is_apart = is_apart and container.is_flat and plan.placement.size > 0
    content = container.rebuild(without_trampolines(elf, plan.placement) if is_apart else elf)
    manifest = manifest_beside(container, content, elf)
    apart = named_beside(out, "trampolines") if is_apart else None
    with ExitStack() as files:
        for path, data in ((path_beside(out), manifest), (out, content)):
            files.enter_context(new_file(path, mode_of(plan.image.path))).write(data)
        if apart is not None:
            files.enter_context(new_file(apart, mode_of(plan.image.path))).write(trampolines_of(elf, plan.placement))
    return Written(path_beside(out), apart, plan.placement.load_address)


def without_trampolines(elf: NDArray[np.uint8], place: Placement) -> NDArray[np.uint8]:
    """An ELF file without the segments of the trampolines and of the data after them."""
    header = read_elf_header(elf)
    rows = read_program_headers(elf, header).copy()
    inside = rows["load_address"] - np.uint64(place.load_address) < np.uint64(place.size)  # below it wraps round
    rows["kind"][(rows["kind"] == PT_LOAD) & inside] = _PT_NULL
    file = elf.copy()
    table = np.frombuffer(rows.tobytes(), np.uint8)
    file[header.phoff : header.phoff + len(rows) * PROGRAM_HEADER.itemsize] = table
    return file


def trampolines_of(elf: NDArray[np.uint8], place: Placement) -> bytes:
    """The content of these segments, which follow each other in the file as in memory."""
    rows = read_program_headers(elf, read_elf_header(elf))
    row = rows[(rows["kind"] == PT_LOAD) & (rows["load_address"] == place.load_address)][0]
    start = int(row["offset"])
    return elf[start : start + place.size].tobytes()


def named_beside(out: Path, what: str) -> Path:
    """A file beside another: fw.kinst.bin -> fw.kinst.trampolines.bin."""
    return out.with_name(f"{out.stem}.{what}{out.suffix}")
