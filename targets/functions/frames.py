"""Call frame information (.eh_frame, .debug_frame) -> its FDEs and the address ranges that they describe.

An FDE covers one function, or the cold part of one, from its first byte to its last: for an image without symbols it is
the best evidence there is. Only the fields before the instructions are read, all FDEs of one encoding at once:
pyelftools takes 7 s for the 46,000 FDEs of an amd64 vmlinux, and fails on the .debug_frame of an arm64 one.

    length (4; 0xffffffff: 8 more) | CIE id or pointer (4 or 8) | initial location | address range | instructions ...
"""

import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.columns import unique_rows
from kinst.targets.elf.header import SHF_ALLOC, SHF_COMPRESSED, FileKind
from kinst.targets.elf.sections import content
from kinst.targets.errors import ImageError
from kinst.targets.image import Image, Section
from kinst.targets.leb128 import leb
from kinst.targets.values import dataclass

_ABSOLUTE, _PC_RELATIVE = 0x00, 0x10  # DW_EH_PE_: how the value is meant, bits 4 to 6
# DW_EH_PE_: how the value is stored, bits 0 to 3 (LSB Core 10.5.1).
_FORMATS: Final = {0x0: "<Q", 0x2: "<H", 0x3: "<I", 0x4: "<Q", 0xA: "<h", 0xB: "<i", 0xC: "<q"}


@dataclass(frozen=True, slots=True)
class Cie:
    """What FDEs have in common. `body` is the offset after the id, `end` that of the next record."""

    body: int
    end: int
    augmentation: bytes  # what it adds to the standard, a letter for each addition
    encoding: int | None  # DW_EH_PE_ of the addresses of its FDEs; None: unknown


@dataclass(frozen=True, slots=True)
class FrameTable:
    """The sound FDEs of a section, in its order. Columns of the same length; offsets are into the section."""

    content: bytes
    address: NDArray[np.uint64]
    size: NDArray[np.uint64]
    rest: NDArray[np.int64]  # what stands after the two address fields
    end: NDArray[np.int64]
    cie: NDArray[np.int64]  # the start of its CIE
    cies: Mapping[int, Cie]  # by their starts


@dataclass(frozen=True, slots=True)
class FrameRanges:
    """(n, 2) address and size of what FDEs cover, in address order, inside code regions.

    Signal frames (augmentation S) are apart: unwinders look up the address before the one in a frame, so such a
    description may begin a byte before its code, where no instruction begins (glibc's __restore_rt, Linux's vDSO).
    """

    functions: NDArray[np.uint64]
    signals: NDArray[np.uint64]


def frame_ranges(image: Image) -> FrameRanges:
    """What the FDEs of an image cover. Damaged parts are skipped."""
    none = np.zeros((0, 2), np.uint64)
    functions, signals = [none], [none]
    for table in frame_tables(image):
        of_signals = np.isin(table.cie, [start for start, cie in table.cies.items() if b"S" in cie.augmentation])
        ranges = np.stack([table.address, table.size], axis=1)
        functions.append(ranges[~of_signals])
        signals.append(ranges[of_signals])
    return FrameRanges(_in_code(image, functions), _in_code(image, signals))


def frame_tables(image: Image) -> list[FrameTable]:
    """The call frame information of an image, one table a section.

    An ET_REL file has none here (its addresses are still to be relocated), nor has a compressed .debug_frame.
    """
    return [_table(image, section) for section in _sections(image)]


def _in_code(image: Image, parts: list[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    ranges: NDArray[np.uint64] = unique_rows(np.concatenate(parts))
    inside = np.zeros(len(ranges), np.bool_)
    for region in image.code_regions:
        offset = ranges[:, 0] - np.uint64(region.address)  # wraps round below the region: too large
        inside |= (offset < region.size) & (ranges[:, 1] <= np.uint64(region.size)) & (ranges[:, 1] > 0)
    return ranges[inside]


def _sections(image: Image) -> list[Section]:
    found = [] if image.kind is FileKind.REL else [image.section(name) for name in (".eh_frame", ".debug_frame")]
    return [section for section in found if section is not None and not section.flags & SHF_COMPRESSED]


def _table(image: Image, section: Section) -> FrameTable:
    data = content(image.data, section).tobytes()
    is_eh = bool(section.flags & SHF_ALLOC)
    cies: dict[int, Cie] = {}
    found = defaultdict[int, list[tuple[int, int, int]]](list)  # by encoding: body, end, CIE
    for start, body, end, cie in _heads(data, is_eh=is_eh):
        if cie is None:
            cies[start] = _cie(data, body, end, is_eh=is_eh)
        elif cie in cies and (encoding := cies[cie].encoding) is not None:
            found[encoding].append((body, end, cie))
    parts = [_decoded(data, encoding, places, section.address) for encoding, places in found.items()]
    none = (np.zeros(0, np.uint64), np.zeros(0, np.uint64), *(np.zeros(0, np.int64) for _ in range(3)))
    columns = [np.concatenate(pair) for pair in zip(none, *parts, strict=True)]
    order = np.argsort(columns[2])
    address, size, rest, end_, cie_ = (column[order] for column in columns)
    return FrameTable(data, address, size, rest, end_, cie_, cies)


def _decoded(
    data: bytes, encoding: int, places: list[tuple[int, int, int]], section_address: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The columns of FDEs of one encoding, given body, end and CIE of each."""
    form, meaning = _FORMATS.get(encoding & 0x0F), encoding & 0x70
    if form is None or meaning not in (_ABSOLUTE, _PC_RELATIVE):
        form, places = "<Q", []
    width = struct.calcsize(form)
    body, end, cie = np.array(places, np.int64).reshape(-1, 3).T
    fits = body + 2 * width <= end
    body, end, cie = body[fits], end[fits], cie[fits]
    raw = np.frombuffer(data, np.uint8)[body[:, None] + np.arange(2 * width)]
    start = np.ascontiguousarray(raw[:, :width]).view(np.dtype(form))[:, 0].astype(np.uint64)  # sign-extended
    size = np.ascontiguousarray(raw[:, width:]).view(f"<u{width}")[:, 0].astype(np.uint64)  # never signed
    if meaning == _PC_RELATIVE:
        start += np.uint64(section_address) + body.astype(np.uint64)
    return start, size, body + 2 * width, end, cie


def _heads(content: bytes, *, is_eh: bool) -> Iterator[tuple[int, int, int, int | None]]:
    """The records in order: start, offset after the id, end, and the start of the CIE (None: it is one).

    In .eh_frame the id of a CIE is 0, that of an FDE the distance back to its CIE; in .debug_frame -1 and the offset.
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
            # A zero length ends .eh_frame of one object file; the linker may have put another one's after it.
            position = field if length == 0 else size
            continue
        identity = int.from_bytes(content[field : field + width], "little")
        is_cie = identity == (0 if is_eh else (1 << 8 * width) - 1)
        yield position, field + width, end, None if is_cie else field - identity if is_eh else identity
        position = end


def _cie(data: bytes, body: int, end: int, *, is_eh: bool) -> Cie:
    """version (1) | augmentation, a string | ... ; without the string nothing of it can be used."""
    name_end = data.find(b"\0", body + 1, end)
    augmentation = data[body + 1 : max(name_end, 0)]
    if not is_eh:
        return Cie(body, end, augmentation, _ABSOLUTE)
    try:
        encoding = None if name_end < 0 else _cie_encoding(data, body, end, augmentation)
    except (IndexError, ImageError):
        encoding = None
    return Cie(body, end, augmentation, encoding)


def _cie_encoding(data: bytes, body: int, end: int, augmentation: bytes) -> int | None:
    """How FDEs store addresses: the byte for the R of the augmentation; None: unknown."""
    if not augmentation.startswith(b"z"):
        return _ABSOLUTE if not augmentation else None
    at = body + 1 + len(augmentation) + 1
    for _ in range(2):  # code and data alignment factors
        at = leb(data, at)[1]
    at = at + 1 if data[body] == 1 else leb(data, at)[1]  # return address register
    at = leb(data, at)[1]  # length of the augmentation data
    return _augmented_encoding(data[at:end], augmentation[1:].decode("latin-1"))


def _augmented_encoding(data: bytes, letters: str) -> int | None:
    """Walk the augmentation data to R: before it may be L (one byte) and P (a pointer encoding, and the pointer)."""
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
