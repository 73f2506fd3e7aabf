"""Two files that are no ELF files, original and patched -> what of the second one is not what its image makes.

The images are compared elsewhere. Here the patched file is made again from the original file and the patched image.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.planning.slots import CHUNK, Placement
from kinst.rewriter.writing.as_read import named_beside, trampolines_of, without_trampolines
from kinst.targets.elf.file import map_file
from kinst.targets.errors import ImageError, PlacementError
from kinst.targets.image import Image
from kinst.targets.manifest.packed import Manifest

_SHOWN = 16  # bytes


def wrong_files(original: Image, patched: Image, manifest: Manifest) -> Iterator[tuple[int, str, bytes, bytes, str]]:
    """Each a place: offset, file, what is expected and what is there; or why it is wrong."""
    if original.container is None:
        return
    found = map_file(patched.path)
    expected = _made(original, patched.data)
    if expected is not None and np.array_equal(expected, found):
        return
    place = _placement(manifest)
    apart = _made(original, without_trampolines(patched.data, place)) if place.size else None
    if apart is not None and np.array_equal(apart, found):
        yield from _wrong_trampolines(patched, place)
        return
    yield _first(patched.path.name, found, expected if expected is not None else apart)


def _made(original: Image, elf: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
    assert original.container is not None, "the caller has looked"
    try:
        return np.frombuffer(original.container.rebuild(elf), np.uint8)
    except (ImageError, PlacementError):
        return None


def _placement(manifest: Manifest) -> Placement:
    """Of the trampolines, and of a standalone image's data if they are right after them."""
    (address, size), data = manifest.trampolines, manifest.standalone
    if data is not None and data.address == address + size:
        size += data.size + -data.size % CHUNK
    return Placement(address, address, size)


def _wrong_trampolines(patched: Image, place: Placement) -> Iterator[tuple[int, str, bytes, bytes, str]]:
    path = named_beside(patched.path, "trampolines")
    try:
        found = map_file(path)
    except ImageError as error:
        yield 0, path.name, b"", b"", str(error)
        return
    expected = np.frombuffer(trampolines_of(patched.data, place), np.uint8)
    if not np.array_equal(found, expected):
        yield _first(path.name, found, expected)


def _first(
    name: str, found: NDArray[np.uint8], expected: NDArray[np.uint8] | None
) -> tuple[int, str, bytes, bytes, str]:
    if expected is None:
        return 0, name, b"", b"", "no such file can be made of its image"
    both = min(len(found), len(expected))
    different = np.flatnonzero(found[:both] != expected[:both])
    if not len(different):
        return both, name, b"", b"", f"has {len(found):,} bytes, expected {len(expected):,}"
    at = int(different[0])
    return at, name, expected[at : at + _SHOWN].tobytes(), found[at : at + _SHOWN].tobytes(), ""
