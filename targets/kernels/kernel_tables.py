"""Tables that Linux kernels keep about their own code: where one is in an image, and the addresses in its records."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.linux import Pointer
from kinst.targets.debuginfo.dwarf.relocations import relocate
from kinst.targets.elf.header import SHT_NOBITS, FileKind
from kinst.targets.image import Image
from kinst.targets.visible import visible

_LONGEST: Final = 256  # bytes of a text


def table_place(image: Image, name: str, symbols: tuple[str, str] | None) -> tuple[int, int] | None:
    """(address, size) of a table that is a section, or else lies between two symbols; None: the file has none."""
    section = image.section(name)
    if section is not None and section.kind != SHT_NOBITS and section.size:
        return section.address, section.size
    if symbols is None:
        return None
    start, end = (image.symbols.address_of(name) for name in symbols)
    if start is None or end is None or end <= start:
        return None
    first, last = image.offset_of(start), image.offset_of(end - 1)
    return (start, end - start) if first is not None and last is not None and last - first == end - start - 1 else None


def records_of(image: Image, place: tuple[int, int], width: int) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    """(n, width) bytes of the records of a table, and their addresses. Those of a module are as its loader leaves them.

    Raises:
        ImageError: it cannot be read.
    """
    address, size = place
    content = np.frombuffer(image.read(address, size), np.uint8)
    section = next((one for one in image.sections if (one.address, one.size) == place), None)
    if image.kind is FileKind.REL and section is not None:
        content = relocate(content, section, image)
    rows = content.reshape(-1, width)
    return rows, np.uint64(address) + np.arange(len(rows), dtype=np.uint64) * np.uint64(width)


def record_addresses(
    image: Image, rows: NDArray[np.uint8], starts: NDArray[np.uint64], field: Pointer
) -> NDArray[np.uint64]:
    """The link addresses in one field of records: `rows` has their bytes, `starts` their addresses."""
    width = 4 if field.is_relative and not field.is_wide else 8
    raw = np.ascontiguousarray(rows[:, field.offset : field.offset + width])
    places = starts + np.uint64(field.offset)
    if field.is_relative:
        return places + raw.view(f"<i{width}")[:, 0].astype(np.int64).view(np.uint64)
    values = raw.view("<u8")[:, 0].astype(np.uint64)
    # In a position-independent kernel (arm64) the words may be 0 in the file: the relocations hold the addresses.
    table = image.relocations
    order = np.argsort(table.address, kind="stable")
    at = np.searchsorted(table.address, places, sorter=order)
    if len(order):
        row = order[np.minimum(at, len(order) - 1)]
        stored = (table.address[row] == places) & table.relative[row]
        values[stored] = table.addend[row[stored]]
    return values


def words_at(image: Image, addresses: NDArray[np.uint64], count: int) -> NDArray[np.uint64]:
    """(n, count) words at some addresses, as pointers; zeros where the file does not have all of them."""
    offsets = image.offsets_of(addresses)
    is_there = (offsets >= 0) & (offsets + 8 * count <= len(image.data))
    rows = image.data[np.where(is_there, offsets, 0)[:, None] + np.arange(8 * count)]
    columns = [record_addresses(image, rows, addresses, Pointer(8 * at, is_relative=False)) for at in range(count)]
    return np.where(is_there[:, None], np.stack(columns, axis=1), np.uint64(0))


def text_at(image: Image, address: int) -> str | None:
    """The NUL-terminated text at an address; None if there is none."""
    offset = image.offset_of(address) if address else None
    if offset is None:
        return None
    text, end, _ = image.data[offset : offset + _LONGEST].tobytes().partition(b"\0")
    return visible(text.decode("ascii", "replace")) if end else None
