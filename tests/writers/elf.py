"""Sections, segments and symbols -> the bytes of a little ELF64 file: tests state their input, not ship it."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

PT_LOAD, PT_GNU_STACK = 1, 0x6474E551
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_NOBITS = 1, 2, 3, 8
SHF_ALLOC_EXEC, SHF_ALLOC_WRITE = 0x6, 0x3
ET_EXEC = 2
EM_X86_64, EM_AARCH64, EM_RISCV = 62, 183, 243
STT_FUNC = 0x12  # with STB_GLOBAL

PAGE = 0x1000


@dataclass(frozen=True, slots=True)
class Part:
    """One loaded section with a segment of its own. `content` may be shorter than `size`: the rest is .bss."""

    name: str
    address: int
    content: bytes
    flags: int  # PF_R 4, PF_W 2, PF_X 1
    size: int = 0
    load_address: int | None = None


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function symbol of the part that holds its address."""

    name: str
    address: int
    size: int


def elf64(
    machine: int,
    entry: int,
    parts: Sequence[Part],
    symbols: Sequence[Symbol] = (),
    *,
    kind: int = ET_EXEC,
    spare_header: bool = True,
) -> bytes:
    """The file: headers, then each part on a page of its own, then .symtab, .strtab, .shstrtab and the section headers.

    With `spare_header` there is a PT_GNU_STACK entry, which a rewriter may take for a segment of its own.
    """
    offsets, body = _lay_out(parts, headers=0x40 + 56 * (len(parts) + spare_header))
    symbol_table, names = _symbols(parts, symbols)
    section_names = b"\0" + b"".join(part.name.encode() + b"\0" for part in parts) + b".symtab\0.strtab\0.shstrtab\0"
    tables = [symbol_table, names, section_names]
    starts = [len(body) + sum(map(len, tables[:index])) for index in range(3)]
    body += b"".join(tables)
    body += b"\0" * (-len(body) % 8)
    sections = _sections(parts, offsets, starts, tables, section_names)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01",
        kind,
        machine,
        1,
        entry,
        0x40,
        len(body),
        0,
        0x40,
        56,
        len(parts) + spare_header,
        64,
        len(sections) // 64,
        len(sections) // 64 - 1,
    )
    program = b"".join(_segment(part, offset) for part, offset in zip(parts, offsets, strict=True))
    if spare_header:
        program += struct.pack("<IIQQQQQQ", PT_GNU_STACK, 6, 0, 0, 0, 0, 0, 16)
    head = header + program
    return head + bytes(body[len(head) :]) + sections


def _lay_out(parts: Sequence[Part], headers: int) -> tuple[list[int], bytearray]:
    offsets, body = [], bytearray(headers)
    for part in parts:
        body += b"\0" * (-len(body) % PAGE + part.address % PAGE)
        offsets.append(len(body))
        body += part.content
    body += b"\0" * (-len(body) % 8)
    return offsets, body


def _segment(part: Part, offset: int) -> bytes:
    load = part.address if part.load_address is None else part.load_address
    size = part.size or len(part.content)
    return struct.pack("<IIQQQQQQ", PT_LOAD, part.flags, offset, part.address, load, len(part.content), size, PAGE)


def _symbols(parts: Sequence[Part], symbols: Sequence[Symbol]) -> tuple[bytes, bytes]:
    table, names = bytearray(24), bytearray(1)
    for symbol in symbols:
        index = next(
            number
            for number, part in enumerate(parts, 1)
            if part.address <= symbol.address < part.address + max(part.size, len(part.content))
        )
        table += struct.pack("<IBBHQQ", len(names), STT_FUNC, 0, index, symbol.address, symbol.size)
        names += symbol.name.encode() + b"\0"
    return bytes(table), bytes(names)


def _sections(parts: Sequence[Part], offsets: list[int], starts: list[int], tables: list[bytes], names: bytes) -> bytes:
    rows = [bytes(64)]
    for part, offset in zip(parts, offsets, strict=True):
        flags = SHF_ALLOC_EXEC if part.flags & 1 else SHF_ALLOC_WRITE
        kind = SHT_PROGBITS if part.content else SHT_NOBITS
        size = len(part.content) or part.size
        name = names.index(part.name.encode() + b"\0")
        rows.append(struct.pack("<IIQQQQIIQQ", name, kind, flags, part.address, offset, size, 0, 0, 16, 0))
    kinds = [(b".symtab", SHT_SYMTAB, len(parts) + 2, 1, 24), (b".strtab", SHT_STRTAB, 0, 0, 0)]
    kinds.append((b".shstrtab", SHT_STRTAB, 0, 0, 0))
    for (label, kind, link, info, entry), start, table in zip(kinds, starts, tables, strict=True):
        name = names.index(label + b"\0")
        rows.append(struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, start, len(table), link, info, 8, entry))
    return b"".join(rows)
