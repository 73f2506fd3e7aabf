"""Intel HEX and Motorola S-records, lines of hex digits that say where their bytes go -> memory; and back, in place.

A patched file keeps all its lines. Those whose bytes are others get these, and their sum; what is new is in lines of
its own behind the last line of data. (bincopy and intelhex keep no lines: both make one memory of them.)
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.registry import arch_by_name
from kinst.targets.errors import ImageError, PlacementError
from kinst.targets.packed import intel_hex, s_records
from kinst.targets.packed.layer import Layer
from kinst.targets.packed.memory import Span, elf_of_memory, memory_of
from kinst.targets.packed.reading import Reading
from kinst.targets.packed.record import Form, Record

_FORMS: Final[tuple[Form, ...]] = (intel_hex.FORM, s_records.FORM)
_MOST_LINES: Final = 1 << 22
_IN_A_LINE: Final = 16  # bytes of data, of new lines
_ADDRESSES: Final = 1 << 32


def read_records(data: NDArray[np.uint8], head: bytes, reading: Reading) -> Layer | None:
    """A file of either kind, for the machine that the user names; None: it is no such file.

    Raises:
        ImageError: it is damaged, or the user names no machine.
    """
    form = next((form for form in _FORMS if form.begins.match(head)), None)
    if form is None:
        return None
    if not reading.machine:
        raise ImageError(f"{form.name}: does not say for which machine it is: name that, as with --raw arm64")
    text = data.tobytes()
    records = [*_records(text, form)]
    spans = [*_spans(one for one in form.placed(records) if one.kind in form.data)]
    elf = elf_of_memory(arch_by_name(reading.machine), spans, _entry(records, spans, form, reading))
    return Layer(form.name, elf, lambda new: _rewritten(text, records, form, new), has_headers=False)


def _records(text: bytes, form: Form) -> Iterator[Record]:
    """The lines that are not empty, with their addresses as they stand there."""
    start = 0
    for number, line in enumerate(text.split(b"\n"), 1):
        if number > _MOST_LINES:
            raise ImageError(f"{form.name}: more than {_MOST_LINES:,} lines")
        if stripped := line.strip():
            at = start + line.index(stripped)
            yield _record(stripped, at, number, form)
        start += len(line) + 1


def _record(line: bytes, at: int, number: int, form: Form) -> Record:
    try:
        content = bytes.fromhex(line[form.lead :].decode("ascii"))
        found = form.read(line, content, at)
    except (ValueError, IndexError):
        raise ImageError(
            f"{form.name}: line {number} is none: {line[:40].decode('ascii', 'backslashreplace')!r}"
        ) from None
    if found is None:
        raise ImageError(f"{form.name}: damaged: line {number} has another sum or length than it says")
    return found


def _spans(records: Iterator[Record]) -> Iterator[Span]:
    """What follows without a gap is one span, in whatever order it comes."""
    start, end, parts = 0, -1, list[bytes]()
    for record in sorted((one for one in records if one.data), key=lambda one: one.address):
        if record.address != end:
            yield from _span(start, parts)
            start, parts = record.address, []
        parts.append(record.data)
        end = record.address + len(record.data)
    yield from _span(start, parts)


def _span(start: int, parts: Sequence[bytes]) -> Iterator[Span]:
    if parts:
        yield Span(start, np.frombuffer(b"".join(parts), np.uint8))


def _entry(records: Sequence[Record], spans: Sequence[Span], form: Form, reading: Reading) -> int:
    """Where it starts: as the user says, or the file; 0 there means that nobody said anything, if nothing is at 0."""
    if reading.entry is not None:
        return reading.entry
    said = next((found for one in records if (found := form.entry(one)) is not None), 0)
    lowest = min((span.address for span in spans), default=0)
    return said or lowest


def _rewritten(text: bytes, records: Sequence[Record], form: Form, elf: NDArray[np.uint8]) -> bytes:
    """The file with other bytes of memory."""
    file, known = bytearray(text), set[int]()
    memory = memory_of(elf)
    starts = np.array([span.address for span in memory], np.uint64)
    for line, record in zip(records, form.placed(records), strict=True):
        if record.kind not in form.data or not record.data:
            continue
        row = int(np.searchsorted(starts, np.uint64(record.address), "right")) - 1
        inside = record.address - memory[row].address
        new = memory[row].data[inside : inside + len(record.data)].tobytes()
        known.add(row)
        if new != record.data:
            _put(file, line, new, form)
    added = [span for row, span in enumerate(memory) if row not in known]
    return _with_lines(file, records, form, added)


def _put(file: bytearray, record: Record, new: bytes, form: Form) -> None:
    """Other bytes of a line, with the letters that it has."""
    line = bytes(file[record.start : record.end])
    changed = form.line(record, new).encode()
    is_lower = line != line.upper()
    head = record.at - record.start
    digits = changed[head:]
    file[record.at : record.end] = digits.lower() if is_lower else digits


def _with_lines(file: bytearray, records: Sequence[Record], form: Form, added: Sequence[Span]) -> bytes:
    """The file with lines for more memory."""
    if not added:
        return bytes(file)
    if added[-1].end > _ADDRESSES:
        raise PlacementError(
            f"trampolines: {form.name} have no addresses such as {added[-1].address:#x}: name another place with "
            "--trampoline-base"
        )
    last = max((row for row, one in enumerate(records) if one.kind in form.data), default=0)
    after = records[last].end
    newline = b"\r\n" if file[after : after + 2] == b"\r\n" else b"\n"
    lines = [line.encode() for span in added for line in form.new(_cut(span), records)]
    counted = form.counted(records, len([line for line in lines if form.is_data(line)]))
    for record, line in counted:
        file[record.start : record.end] = line.encode()
    file[after:after] = b"".join(newline + line for line in lines)
    return bytes(file)


def _cut(span: Span) -> Iterator[tuple[int, bytes]]:
    """Pieces for a line each, none of which passes a multiple of `_IN_A_LINE`, and so of 64 KiB."""
    at = span.address
    while at < span.end:
        size = min(_IN_A_LINE - at % _IN_A_LINE, span.end - at)
        yield at, span.data[at - span.address :][:size].tobytes()
        at += size
