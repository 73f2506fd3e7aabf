"""Lines of Motorola S-records.

STLLA...<data>CC    LL bytes follow, of which the address has 2, 3 or 4; the sum of all bytes after T is 0xff
    T  0 header   1, 2, 3 data   5, 6 how many lines of data there are   7, 8, 9 start address, of 4, 3, 2 bytes
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kinst.targets.errors import ImageError
from kinst.targets.packed.record import Form, Record

_WIDTHS: Final = {0: 2, 1: 2, 2: 3, 3: 4, 5: 2, 6: 3, 7: 4, 8: 3, 9: 2}  # bytes of the address
_DATA: Final = frozenset({1, 2, 3})
_COUNTS: Final = (5, 6)
_STARTS: Final = (7, 8, 9)


def _read(line: bytes, content: bytes, at: int) -> Record | None:
    kind = int(line[1:2])
    width = _WIDTHS.get(kind)
    if line[:1] != b"S" or width is None:
        raise ValueError(line)
    if content[0] + 1 != len(content) or len(content) < width + 2 or sum(content) & 0xFF != 0xFF:
        return None
    address, data = int.from_bytes(content[1 : 1 + width], "big"), content[1 + width : -1]
    return Record(at, at + len(line), kind, address, data, at + 4 + 2 * width)


def _placed(records: Sequence[Record]) -> Iterator[Record]:
    return iter(records)


def _entry(record: Record) -> int | None:
    return record.address if record.kind in _STARTS else None


def _line(record: Record, data: bytes) -> str:
    return _of(record.kind, record.address, data)


def _of(kind: int, address: int, data: bytes) -> str:
    width = _WIDTHS[kind]
    content = bytes([width + len(data) + 1]) + address.to_bytes(width, "big") + data
    return f"S{kind}{content.hex().upper()}{~sum(content) & 0xFF:02X}"


def _new(pieces: Iterator[tuple[int, bytes]], records: Sequence[Record]) -> Iterator[str]:
    """As wide as the file's widest lines, or as their addresses need."""
    widest = max((one.kind for one in records if one.kind in _DATA), default=3)
    for address, data in pieces:
        needed = next(kind for kind in (1, 2, 3) if address < 1 << 8 * _WIDTHS[kind])
        yield _of(max(needed, widest), address, data)


def _is_data(line: bytes) -> bool:
    return line[1:2] in (b"1", b"2", b"3")


def _counted(records: Sequence[Record], more: int) -> Iterator[tuple[Record, str]]:
    for record in records:
        if record.kind in _COUNTS:
            count = record.address + more
            if count >= 1 << 8 * _WIDTHS[record.kind]:
                raise ImageError(f"S-records: {count:,} lines are more than its S{record.kind} can count")
            yield record, _of(record.kind, count, record.data)


FORM: Final = Form(
    name="S-records",
    begins=re.compile(rb"S[0-3][0-9A-Fa-f]{6}"),
    lead=2,
    data=_DATA,
    read=_read,
    placed=_placed,
    entry=_entry,
    line=_line,
    new=_new,
    is_data=_is_data,
    counted=_counted,
)
