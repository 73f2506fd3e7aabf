"""A plan and the original file -> the patched file, byte for byte the original except where the plan says otherwise."""

import hashlib
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.patched_bytes import placed
from kinst.rewriter.planning.layout import lay_out
from kinst.rewriter.planning.plan import Plan
from kinst.rewriter.shell.fresh_file import fresh_file
from kinst.rewriter.shell.progress import Progress, silent
from kinst.rewriter.standalone.code.parts import ranges
from kinst.rewriter.writing.second_look import check_written
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.errors import ManifestError, UsageError
from kinst.targets.image import Image
from kinst.targets.manifest.packed import Manifest

_BLOCK = 1 << 23
LONGEST = 16  # bytes that a site may have


def write_image(plan: Plan, out: Path, *, trampoline_symbols: bool = False, progress: Progress = silent) -> Manifest:
    """Write the patched image and check it. Returns the manifest as it is in the file.

    If this fails or is interrupted nothing is left behind, and a file that was there stays as it was.

    Raises:
        UsageError: `out` cannot be an output.
        DefectError: what was written is not what was planned.
        OSError: it cannot be written.
    """
    original = plan.original.data
    with new_file(out, mode_of(plan.image.path)) as file:
        digest = copy(original, file, progress)
        layout = lay_out(plan, digest, trampoline_symbols=trampoline_symbols)
        # Patches first: a breakpoint or a jump may lie on a patched instruction, whose bytes are already the new ones
        # in `plan.image`.
        for offset, patch in placed(plan.original, plan.manifest.patches):
            write_at(file, offset, patch.code)
        for offset, code in patched_code(plan):
            write_at(file, offset, code.data)
        for offset, code in overwritten(plan.image, plan.manifest.jumps, plan.manifest.jump_code):
            write_at(file, offset, code.data)
        for piece in (*layout.changes, *layout.appended):
            file.seek(piece.offset)
            for part in piece.parts:
                file.write(part)
        # Still under its temporary name: what fails the check never appears.
        check_written(plan, layout, file)
    return layout.manifest


def patched_code(plan: Plan) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """(file offset, bytes) of every stretch of code with sites, breakpoints in place."""
    sites = plan.manifest.patched
    for offset, code, at, rows in touched_code(plan.image, sites["address"]):
        put_breakpoints(code, at, sites["size"][rows], plan.image.facts)
        yield offset, code


def overwritten(image: Image, places: NDArray[np.void], content: bytes) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """(file offset, bytes) of every stretch of code with such places (`JUMPS`), overwritten by `content`, their bytes
    back to back.

    Raises:
        ManifestError: a place is not wholly in the file.
    """
    sizes, new = places["size"].astype(np.int64), np.frombuffer(content, np.uint8)
    first, is_done = np.cumsum(sizes) - sizes, np.zeros(len(places), np.bool_)
    for offset, code, at, rows in touched_code(image, places["address"], int(sizes.max(initial=0))):
        whole = at + sizes[rows] <= len(code)  # one that is cut here is whole in a segment that overlaps
        at, rows = at[whole], rows[whole]
        code[ranges(at, sizes[rows])] = new[ranges(first[rows], sizes[rows])]
        is_done[rows] = True
        yield offset, code
    if not is_done.all():
        raise ManifestError(f"{image.path}: the file has not all of {int(places['address'][~is_done][0]):#x}, a jump")


def touched_code(
    image: Image, addresses: NDArray[np.uint64], longest: int = LONGEST
) -> Iterator[tuple[int, NDArray[np.uint8], NDArray[np.int64], NDArray[np.intp]]]:
    """The bytes of each segment (of a module: section) from its first site to its last, and `longest` bytes for that
    one.

    Four values: file offset, a copy to write to, offsets of the sites in it, rows of these sites. By segments and not
    by sections: an image that had no section table has one once it is patched.
    """
    offsets = image.offsets_of(addresses)
    if (offsets < 0).any():
        raise ManifestError(f"{image.path}: {int(addresses[offsets < 0][0]):#x} is a site, but not in the file")
    for _, start, size in image.in_file:
        rows = np.flatnonzero((offsets >= start) & (offsets < start + size))
        if len(rows):
            first, last = int(offsets[rows].min()), int(offsets[rows].max()) + longest
            code = image.data[first : min(last, start + size)].copy()
            yield first, code, offsets[rows] - first, rows


def put_breakpoints(
    code: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.uint8], facts: ArchFacts
) -> None:
    """Write the breakpoint for each instruction's size at its offset into `code`."""
    for size, breakpoint_ in facts.breakpoints.items():
        at = offsets[sizes == size]
        for index, byte in enumerate(breakpoint_):
            code[at + index] = byte


def patched_sizes(sizes: NDArray[np.uint8], facts: ArchFacts) -> NDArray[np.int64]:
    """How many bytes are patched at sites of these instruction sizes."""
    table = np.zeros(256, np.int64)
    for size, breakpoint_ in facts.breakpoints.items():
        table[size] = len(breakpoint_)
    return table[sizes]


def put_originals(
    code: NDArray[np.uint8], offsets: NDArray[np.int64], sites: NDArray[np.void], facts: ArchFacts
) -> None:
    """Undo `put_breakpoints` with the pristine bytes of the manifest."""
    sizes = patched_sizes(sites["size"], facts)
    original = np.ascontiguousarray(sites["original"]).view(np.uint8).reshape(-1, 16)
    for index in range(int(sizes.max(initial=0))):
        rows = sizes > index
        code[offsets[rows] + index] = original[rows, index]


def copy(data: NDArray[np.uint8], file: BufferedRandom, progress: Progress) -> str:
    """Copy the original block by block. Returns its SHA-256."""
    digest = hashlib.sha256()
    with progress("writing", len(data)) as done:
        for start in range(0, len(data), _BLOCK):
            block = data[start : start + _BLOCK].data
            digest.update(block)
            file.write(block)
            done(len(block))
    return digest.hexdigest()


def write_at(file: BufferedRandom, offset: int, data: bytes | memoryview) -> None:
    """Write in the middle of the file."""
    file.seek(offset)
    file.write(data)


def mode_of(path: Path) -> int:
    """Permission bits of a file."""
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def new_file(path: Path, mode: int) -> Iterator[BufferedRandom]:
    """A file that appears under its name only when the block ends without an error; else nothing is left.

    It is written under a temporary name in the same folder and renamed. A link is followed: its target is replaced.
    """
    if str(path) == "-":
        raise UsageError("-: an image is not written to standard output: name a file")
    path = path.resolve()
    if path.is_dir():
        raise UsageError(f"{path}: is a folder: name a file")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path}: is not a regular file: the image is written beside it and renamed")
    with fresh_file(path, mode) as file:
        yield file
