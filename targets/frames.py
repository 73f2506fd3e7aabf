"""Call frame information (.eh_frame, .debug_frame) -> its FDEs and the address ranges that they describe.

An FDE covers one function, or the cold part of one, from its first byte to its last: of an image without symbols it is
the best evidence there is. Only the two address fields are read, so pyelftools' full parser is not needed: it takes
7 s for the 46,000 FDEs of an amd64 vmlinux.

    length (4; 0xffffffff: 8 more) | CIE id or pointer (4 or 8) | initial location | address range | instructions ...
"""

import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.elf.header import SHF_ALLOC, FileKind
from kinst.targets.image import Image, Section

_SHF_COMPRESSED: Final = 0x800
_ABSOLUTE, _PC_RELATIVE = 0x00, 0x10  # DW_EH_PE_: how the value is meant, bits 4 to 6
# DW_EH_PE_: how the value is stored, bits 0 to 3 (LSB Core 10.5.1).
_FORMATS: Final = {0x0: "<Q", 0x2: "<H", 0x3: "<I", 0x4: "<Q", 0xA: "<h", 0xB: "<i", 0xC: "<q"}


@dataclass(frozen=True, slots=True)
class FrameRecord:
    """One CIE or FDE: where its body starts (after the id) and ends, and the CIE it points to (None: it is one)."""

    start: int
    body: int
    end: int
    cie: int | None


@dataclass(frozen=True, slots=True)
class Described:
    """An FDE and its CIE in the content of their section, and the addresses that it covers.

    `rest` is the offset behind the two address fields.
    """

    address: int
    size: int
    fde: FrameRecord
    cie: FrameRecord
    rest: int


@dataclass(frozen=True, slots=True)
class FrameContent:
    """The bytes of a section and its FDEs; those of .eh_frame have augmentation data behind the addresses."""

    content: bytes
    is_eh: bool
    entries: list[Described]


def frame_ranges(image: Image, *, of_signals: bool = False) -> NDArray[np.uint64]:
    """(n, 2) address and size of what FDEs cover, in address order, inside code regions. Damaged parts are skipped.

    Signal frames (augmentation S) are apart: unwinders look up the address before the one in a frame, so such a
    description may begin a byte before its code, where no instruction begins (glibc's __restore_rt, Linux's vDSO).
    An ET_REL file has none here (its addresses are still to be relocated), nor has a compressed .debug_frame.
    """
    parts = [_covered(image, section, of_signals=of_signals) for section in _sections(image)]
    ranges = np.unique(np.concatenate([np.zeros((0, 2), np.uint64), *parts]), axis=0)
    return ranges[_in_code(image, ranges)]


def _covered(image: Image, section: Section, *, of_signals: bool) -> NDArray[np.uint64]:
    """What the FDEs of a section cover, all of one encoding decoded at once: a vmlinux has 46,000."""
    content = _content(image, section)
    is_eh = bool(section.flags & SHF_ALLOC)
    encodings: dict[int, int | None] = {}
    bodies = defaultdict[int, list[tuple[int, int]]](list)
    for start, body, end, cie in _heads(content, is_eh=is_eh):
        if cie is None:
            if (b"S" in _augmentation(content, body, end)) == of_signals:
                encodings[start] = _cie_encoding(content, FrameRecord(start, body, end, None)) if is_eh else _ABSOLUTE
        elif (encoding := encodings.get(cie)) is not None:
            bodies[encoding].append((body, end))
    parts = [_decoded(content, encoding, found, section.address) for encoding, found in bodies.items()]
    return np.concatenate([np.zeros((0, 2), np.uint64), *parts])


def _decoded(content: bytes, encoding: int, places: list[tuple[int, int]], section_address: int) -> NDArray[np.uint64]:
    """Address and size of FDEs whose bodies begin and end at `places`."""
    form, meaning = _FORMATS.get(encoding & 0x0F), encoding & 0x70
    if form is None or meaning not in (_ABSOLUTE, _PC_RELATIVE):
        return np.zeros((0, 2), np.uint64)
    width = struct.calcsize(form)
    body, end = np.array(places, np.int64).T
    body = body[body + 2 * width <= end]
    raw = np.frombuffer(content, np.uint8)[body[:, None] + np.arange(2 * width)]
    start = np.ascontiguousarray(raw[:, :width]).view(np.dtype(form))[:, 0].astype(np.uint64)  # a sign is extended
    size = np.ascontiguousarray(raw[:, width:]).view(f"<u{width}")[:, 0].astype(np.uint64)  # never signed
    if meaning == _PC_RELATIVE:
        start += np.uint64(section_address) + body.astype(np.uint64)
    return np.stack([start, size], axis=1)


def _in_code(image: Image, ranges: NDArray[np.uint64]) -> NDArray[np.bool_]:
    inside = np.zeros(len(ranges), np.bool_)
    for region in image.code_regions:
        offset = ranges[:, 0] - np.uint64(region.address)  # wraps round below the region: too large
        inside |= (offset < region.size) & (ranges[:, 1] <= np.uint64(region.size)) & (ranges[:, 1] > 0)
    return inside


def frame_contents(image: Image) -> Iterator[FrameContent]:
    """The call frame information of an image, a section at a time; of an ET_REL file none."""
    for section in _sections(image):
        yield _read(image, section)


def _sections(image: Image) -> list[Section]:
    found = [] if image.kind is FileKind.REL else [image.section(name) for name in (".eh_frame", ".debug_frame")]
    return [section for section in found if section is not None and not section.flags & _SHF_COMPRESSED]


def _content(image: Image, section: Section) -> bytes:
    return image.data[section.offset : section.offset + section.size].tobytes()


def _read(image: Image, section: Section) -> FrameContent:
    content = _content(image, section)
    is_eh = bool(section.flags & SHF_ALLOC)
    cies: dict[int, tuple[FrameRecord, int | None]] = {}
    found = []
    for record in (FrameRecord(*head) for head in _heads(content, is_eh=is_eh)):
        if record.cie is None:
            cies[record.start] = record, _cie_encoding(content, record) if is_eh else _ABSOLUTE
            continue
        cie, encoding = cies.get(record.cie, (record, None))
        values = None if encoding is None else _range(content, record, encoding, section.address)
        if values is not None and encoding is not None:
            rest = record.body + 2 * struct.calcsize(_FORMATS[encoding & 0x0F])
            found.append(Described(*values, record, cie, rest))
    return FrameContent(content, is_eh, found)


def _heads(content: bytes, *, is_eh: bool) -> Iterator[tuple[int, int, int, int | None]]:
    """The records in order, as the fields of `FrameRecord`.

    In .eh_frame a CIE's id is 0, an FDE's the way back; in .debug_frame -1 and the offset.
    """
    position, size = 0, len(content)
    while position + 8 <= size:
        (length,) = struct.unpack_from("<I", content, position)
        field, width = position + 4, 4
        if length == 0xFFFFFFFF and position + 12 <= size:
            (length,) = struct.unpack_from("<Q", content, field)
            field, width = position + 12, 4 if is_eh else 8
        end = field + length
        if length == 0 or end > size or length < width:
            # A zero length ends .eh_frame of one object file; the linker may have put another one's behind it.
            position = field if length == 0 else size
            continue
        identity = int.from_bytes(content[field : field + width], "little")
        is_cie = identity == (0 if is_eh else (1 << 8 * width) - 1)
        yield position, field + width, end, None if is_cie else field - identity if is_eh else identity
        position = end


def _augmentation(content: bytes, body: int, end: int) -> bytes:
    """What a CIE says beyond the standard, a letter a thing; it stands behind the version."""
    return content[body + 1 : max(content.find(b"\0", body + 1, end), 0)]


def _cie_encoding(content: bytes, record: FrameRecord) -> int | None:
    """How the FDEs of a CIE store addresses: the byte that its augmentation's R stands for; None: cannot be told."""
    version = content[record.body]
    name_end = content.find(b"\0", record.body + 1, record.end)
    if name_end < 0:
        return None
    augmentation = content[record.body + 1 : name_end]
    if not augmentation.startswith(b"z"):
        return _ABSOLUTE if not augmentation else None
    position = name_end + 1
    for _ in range(2):  # code and data alignment
        position = skip_leb128(content, position)
    position = position + 1 if version == 1 else skip_leb128(content, position)  # return address register
    position = skip_leb128(content, position)  # length of the augmentation data
    return _augmented_encoding(content[position : record.end], augmentation[1:].decode("latin-1"))


def _augmented_encoding(data: bytes, letters: str) -> int | None:
    """Walk the augmentation data to R: before it may stand L (one byte) and P (how a pointer is stored, and it)."""
    position = 0
    for letter in letters:
        if letter == "R":
            return data[position] if position < len(data) else None
        if letter == "P":
            form = _FORMATS.get(data[position] & 0x0F) if position < len(data) else None
            if form is None:
                return None
            position += struct.calcsize(form)
        position += letter in "LP"
    return _ABSOLUTE


def skip_leb128(content: bytes, position: int) -> int:
    """Where the number at `position` ends."""
    while position < len(content) and content[position] & 0x80:
        position += 1
    return position + 1


def _range(content: bytes, record: FrameRecord, encoding: int, section_address: int) -> tuple[int, int] | None:
    form, meaning = _FORMATS.get(encoding & 0x0F), encoding & 0x70
    if form is None or meaning not in (_ABSOLUTE, _PC_RELATIVE):
        return None
    width = struct.calcsize(form)
    if record.body + 2 * width > record.end:
        return None
    (start,) = struct.unpack_from(form, content, record.body)
    size = int.from_bytes(content[record.body + width : record.body + 2 * width], "little")  # never signed
    if meaning == _PC_RELATIVE:
        start += section_address + record.body
    return start & (1 << 64) - 1, size
