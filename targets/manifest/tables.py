"""The tables of a manifest <-> bytes: what changes from row to row, compressed. All numbers are little-endian.

Each table that is not empty is 8 bytes with the size of what follows, and a frame of zstd, which says
how long its content is. The content of a table of records, column after column:

    a column of numbers     1 byte with the width of the steps; the first number; what is added to each to come to the
                            next one, modulo the width of numbers: the lowest bytes of all steps, then the next ones
    `original` (the last)   only the bytes that the instructions have, without gaps

That of names is the names.

The numbers are untrusted: the size of a table is compared with a bound before memory is allocated for it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.compression import zstd_content, zstd_frame
from kinst.targets.instruction import KEPT, KEPT_BYTES
from kinst.targets.manifest.values import number_of

LEAST_BOUND: Final = 1 << 26  # bytes that all tables together may always have
_SIZE: Final = 8  # bytes of the size before a frame
_WIDTHS: Final = (1, 2, 4, 8)  # bytes of a difference


def packed_table(table: NDArray[Any]) -> bytes:
    """A table as it stands in a manifest; one of bytes is of names."""
    if not len(table):
        return b""
    content = table if table.dtype.names is None else np.concatenate([*_coded(table)])
    frame = zstd_frame(content.data)
    return len(frame).to_bytes(_SIZE, "little") + frame


def _coded(table: NDArray[np.void]) -> Iterator[NDArray[np.uint8]]:
    for name in _order(table.dtype):
        column = table[name]
        if column.dtype.kind == "V":
            code = np.ascontiguousarray(column).view(np.uint8).reshape(-1, KEPT)
            yield code[_is_code(table["size"])]
        else:
            yield from _differences(column)


def _differences(column: NDArray[np.unsignedinteger]) -> Iterator[NDArray[np.uint8]]:
    steps = (column[1:] - column[:-1]).view(_signed(column.dtype.itemsize))
    low, high = int(steps.min(initial=0)), int(steps.max(initial=0))
    width = next(width for width in _WIDTHS if -1 << 8 * width - 1 <= low and high < 1 << 8 * width - 1)
    yield np.array([width], np.uint8)
    yield np.frombuffer(column[:1].tobytes(), np.uint8)
    yield np.ascontiguousarray(steps.astype(_signed(width)).view(np.uint8).reshape(-1, width).T).reshape(-1)


def _signed(width: int) -> np.dtype[Any]:
    return np.dtype(f"<i{width}")


def _order(dtype: np.dtype[Any]) -> list[str]:
    """The columns, with that of code after its sizes."""
    return sorted(dtype.names or (), key=lambda name: dtype[name].kind == "V")


def _is_code(sizes: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """(n, 16): which bytes are the instructions'."""
    result: NDArray[np.bool_] = np.arange(KEPT, dtype=np.uint8) < sizes[:, None]
    return result


def read_tables(
    body: memoryview, counts: Mapping[str, Any], records: Mapping[str, np.dtype[Any]], most: int
) -> Iterator[tuple[str, NDArray[np.void]]]:
    """The tables, read-only.

    Args:
        body: of the manifest, nothing of it trusted.
        counts: how many records each has, not trusted either.
        records: what the records of each are, in the order of the tables.
        most: bytes that all of them may have together.

    Raises:
        ValueError, LookupError, TypeError: it is damaged.
    """
    sizes = {name: number_of(counts[name], most + 1) * dtype.itemsize for name, dtype in records.items()}
    # Before anything is decompressed or allocated: `counts` are numbers that anyone can write into a file.
    if sum(sizes.values()) > most:
        raise ValueError(f"its tables have more than {most >> 20} MiB")
    for name, dtype in records.items():
        table = np.zeros(0, dtype)
        if sizes[name]:
            size = number_of(int.from_bytes(body[:_SIZE], "little"), len(body) - _SIZE + 1)
            content = np.frombuffer(
                # At most the columns at their full width and a byte each for the width of their steps.
                zstd_content(body[_SIZE : _SIZE + size], sizes[name] + len(dtype.names or ())),
                np.uint8,
            )
            table = _decoded(content, dtype, sizes[name] // dtype.itemsize)
            body = body[_SIZE + size :]
        table.flags.writeable = False
        yield name, table
    if len(body):
        raise ValueError("bytes follow its last table")


def _decoded(content: NDArray[np.uint8], dtype: np.dtype[Any], count: int) -> NDArray[np.void]:
    table = np.zeros(count, dtype)
    if dtype.names is None:
        table[:], content = _split(content, count)
    for name in _order(dtype):
        if dtype[name].kind == "V":
            sizes = np.minimum(table["size"], KEPT)
            code, content = _split(content, int(sizes.sum(dtype=np.int64)))
            table[name] = _instructions(code, sizes, dtype[name])
        else:
            table[name], content = _column(content, dtype[name], count)
    if len(content):
        raise ValueError("a table is longer than it says")
    return table


def _column(
    content: NDArray[np.uint8], dtype: np.dtype[Any], count: int
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.uint8]]:
    """A column of numbers, and what is after it."""
    width = int(content[0])
    if width not in _WIDTHS or width > dtype.itemsize:
        raise ValueError("a column of a width that cannot be")
    first, content = _split(content[1:], dtype.itemsize)
    # Stored as planes, all lowest bytes first: the higher ones are nearly all alike and compress to nothing.
    planes, content = _split(content, width * (count - 1))
    steps = np.ascontiguousarray(planes.reshape(width, -1).T).view(_signed(width))[:, 0]
    column = np.empty(count, dtype)
    column[:1] = first.view(dtype)
    column[1:] = steps.astype(_signed(dtype.itemsize)).view(dtype)
    # Steps are modulo the column's width, so the sum wraps round as the difference did.
    return np.cumsum(column, dtype=dtype, out=column), content


def _instructions(code: NDArray[np.uint8], sizes: NDArray[np.uint8], dtype: np.dtype[np.void]) -> NDArray[np.void]:
    """Instructions of these sizes, one after the other -> each with zeros after it."""
    padded = np.concatenate([code, np.zeros(KEPT, np.uint8)])
    from_each_byte: NDArray[np.void] = np.ndarray(len(code) + 1, dtype, padded, strides=(1,))
    found: NDArray[np.void] = from_each_byte[np.cumsum(sizes, dtype=np.int64) - sizes]
    # Each view of 16 bytes reaches into the next instructions: the mask cuts it to size.
    found.view("<u8").reshape(-1, 2)[:] &= KEPT_BYTES[sizes]
    return found


def _split(content: NDArray[np.uint8], size: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The first bytes of a table's content, and those after them."""
    if size > len(content):
        raise ValueError("a table is shorter than it says")
    return content[:size], content[size:]
