"""An image -> where its debug information is: in itself, or in a file that its build-id or .gnu_debuglink leads to.

A separate file is taken only if it was made from this image: it has the same build-id and, where .gnu_debuglink led to
it, the CRC that is recorded there.
"""

import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.elf.file import ElfFile, ElfLike, open_elf
from kinst.targets.elf.header import FileKind
from kinst.targets.elf.notes import build_id
from kinst.targets.elf.same_build import check_same_code, has_same_build_id
from kinst.targets.elf.sections import Section, content
from kinst.targets.errors import ImageError

DEBUG_FOLDERS: Final = (Path("/usr/lib/debug"),)
_PIECE: Final = 1 << 24


def find_debug(
    image: ElfLike, debug_file: Path | None = None, *, folders: tuple[Path, ...] = DEBUG_FOLDERS
) -> DebugSections:
    """The DWARF sections of an image.

    Args:
        image: the image.
        debug_file: the file that has them (--debug-file); else the image itself, or a file beside it or in `folders`.
        folders: where distributions keep debug files.

    Raises:
        ImageError: there are none, with the places that were searched; the file was made from another image; or they
            are of a kind that is not supported.
    """
    if debug_file is not None:
        return _usable(_checked(image, debug_file, is_linked=False))
    if (own := DebugSections(image)).has_dwarf:
        return _usable(own)
    looked: list[Path] = []
    for path, is_linked in _places(image, folders):
        # An image may be named as its own debug file (a link, or .gnu_debuglink with its own name).
        if path not in looked and path.is_file() and not path.samefile(image.path):
            return _usable(_checked(image, path, is_linked=is_linked))
        looked.append(path)
    places = "".join(f"\n  looked for {path}" for path in dict.fromkeys(looked))
    hint = "" if looked else "; it has neither a build-id nor .gnu_debuglink that would lead to a debug file"
    raise ImageError(f"{image.path}: no debug information (.debug_info){hint}: give one with --debug-file{places}")


def _places(image: ElfLike, folders: tuple[Path, ...]) -> Iterator[tuple[Path, bool]]:
    """Where gdb looks, too: by build-id, then by name; and whether the name is that of .gnu_debuglink."""
    identity = build_id(image)
    if identity is not None and len(identity) > 1:
        for folder in folders:
            yield folder / ".build-id" / identity.hex()[:2] / f"{identity.hex()[2:]}.debug", False
    link = _debug_link(image)
    if link is not None:
        here = image.path.resolve().parent
        yield here / link[0], True
        yield here / ".debug" / link[0], True
        for folder in folders:
            yield folder / here.relative_to(here.anchor) / link[0], True
            yield folder / link[0], True


def _checked(image: ElfLike, path: Path, *, is_linked: bool) -> DebugSections:
    file = _placed_as(image, open_elf(path))
    sections = DebugSections(file)
    if not sections.has_dwarf:
        raise ImageError(f"{path}: no debug information (.debug_info)")
    _check_same_build(image, file, is_linked=is_linked)
    return sections


def _placed_as(image: ElfLike, file: ElfFile) -> ElfFile:
    """The debug file of a module, its sections at the addresses of the module's: without content they lie elsewhere in
    it."""
    if image.header.kind is not FileKind.REL or file.kind is not FileKind.REL:
        return file
    places = dict(_by_name(image.sections))
    moved = tuple(
        replace(section, address=places.get(name, section.address))
        for section, (name, _) in zip(file.sections, _by_name(file.sections), strict=True)
    )
    by = np.array([new.address - old.address for new, old in zip(moved, file.sections, strict=True)] or [0], np.int64)
    symbols = file.symbols
    rows = np.flatnonzero(symbols.section < len(moved))
    address = symbols.address.copy()
    # Modulo 2**64: a section may move down.
    address[rows] += by[symbols.section[rows]].astype(np.uint64)
    return replace(file, sections=moved, symbols=replace(symbols, address=address))


def _by_name(sections: tuple[Section, ...]) -> Iterator[tuple[tuple[str, int], int]]:
    """Sections by name, and number among those of the same name; and their addresses."""
    seen = Counter[str]()
    for section in sections:
        yield (section.name, seen[section.name]), section.address
        seen[section.name] += 1


def _check_same_build(image: ElfLike, file: ElfFile, *, is_linked: bool) -> None:
    """By build-id; without one, or if .gnu_debuglink led to the file, by its CRC; else by where the code lies."""
    is_known = has_same_build_id(image, file)
    if is_known and not is_linked:
        return
    link = _debug_link(image)
    # The CRC is that of the file that the link names, not of any other that the user gave.
    if link is None or link[0] != file.path.name:
        check_same_code(image, file)
    elif (crc := _crc(file.data)) != link[1]:
        what = "damaged or changed" if is_known else "made from another build"
        raise ImageError(
            f"{file.path}: {what}: its CRC is {crc:#010x}, .gnu_debuglink of {image.path} says {link[1]:#010x}"
        )


def _usable(sections: DebugSections) -> DebugSections:
    """The same sections. Raises ImageError with the file's name if half of the DWARF is in another file."""
    sections.check()
    return sections


def _debug_link(elf: ElfLike) -> tuple[str, int] | None:
    """.gnu_debuglink: a file name ended by NUL, padded to 4; the file's CRC."""
    section = _named(elf, ".gnu_debuglink")
    if section is None:
        return None
    data = content(elf.data, section).tobytes()
    name = data.split(b"\0")[0]
    at = -(-(len(name) + 1) // 4) * 4
    text = name.decode(errors="surrogateescape")
    # The name comes from the image: with a slash it could lead anywhere in the file system.
    if not text or "/" in text or at + 4 > len(data):
        return None
    return text, int.from_bytes(data[at : at + 4], "little")


def _named(elf: ElfLike, name: str) -> Section | None:
    return next((section for section in elf.sections if section.name == name), None)


def _crc(data: NDArray[np.uint8]) -> int:
    crc = 0
    for start in range(0, len(data), _PIECE):
        crc = zlib.crc32(data[start : start + _PIECE].tobytes(), crc)
    return crc
