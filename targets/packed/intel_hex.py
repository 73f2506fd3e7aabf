"""Lines of Intel HEX (Hexadecimal Object File Format Specification, revision A).

:LLAAAATT<data>CC    LL bytes of data at AAAA; the sum of all bytes is 0
    TT  0 data   1 end of file   2 segment, x 16   3 start, CS:IP   4 upper 16 bits of addresses   5 start address
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kinst.targets.packed.record import Form, Record

_DATA, _SEGMENT, _START_SEGMENT, _UPPER, _START = 0, 2, 3, 4, 5
_DIGITS_BEFORE: Final = 9  # characters before the data
_BEFORE: Final = 4  # bytes before the data
_BASES: Final = {_SEGMENT: 4, _UPPER: 16}  # bits by which such a line's number is moved


def _read(line: bytes, content: bytes, at: int) -> Record | None:
    size, kind = content[0], content[3]
    if len(content) != size + _BEFORE + 1 or sum(content) & 0xFF or kind > _START:
        return None
    data = content[_BEFORE:-1]
    if (kind in _BASES and len(data) != 2) or (kind in (_START_SEGMENT, _START) and len(data) != 4):
        return None
    return Record(at, at + len(line), kind, int.from_bytes(content[1:3], "big"), data, at + _DIGITS_BEFORE)


def _placed(records: Sequence[Record]) -> Iterator[Record]:
    base = 0
    for one in records:
        if one.kind in _BASES:
            base = int.from_bytes(one.data, "big") << _BASES[one.kind]
        yield Record(one.start, one.end, one.kind, base + one.address, one.data, one.at)


def _entry(record: Record) -> int | None:
    if record.kind == _START:
        return int.from_bytes(record.data, "big")
    if record.kind == _START_SEGMENT:
        return int.from_bytes(record.data[:2], "big") * 16 + int.from_bytes(record.data[2:], "big")
    return None


def _line(record: Record, data: bytes) -> str:
    return _of(record.kind, record.address & 0xFFFF, data)


def _of(kind: int, address: int, data: bytes) -> str:
    content = bytes([len(data), address >> 8, address & 0xFF, kind]) + data
    return f":{content.hex().upper()}{-sum(content) & 0xFF:02X}"


def _new(pieces: Iterator[tuple[int, bytes]], _records: Sequence[Record]) -> Iterator[str]:
    upper = None
    for address, data in pieces:
        if address >> 16 != upper:
            upper = address >> 16
            yield _of(_UPPER, 0, upper.to_bytes(2, "big"))
        yield _of(_DATA, address & 0xFFFF, data)


def _is_data(line: bytes) -> bool:
    return line[7:9] == b"00"


def _counted(_records: Sequence[Record], _more: int) -> Iterator[tuple[Record, str]]:
    """None of its lines counts others."""
    return iter(())


FORM: Final = Form(
    name="Intel HEX",
    begins=re.compile(rb":[0-9A-Fa-f]{6}0[0-5][0-9A-Fa-f]{2}"),
    lead=1,
    data=frozenset({_DATA}),
    read=_read,
    placed=_placed,
    entry=_entry,
    line=_line,
    new=_new,
    is_data=_is_data,
    counted=_counted,
)
