"""Two files -> proof that the second is the first but for what the contract allows. Shares no code with the rewriter.

Everything is read with `struct`, by the ELF specification and the manifest's format: headers, sections, sites and
trampolines. `check_contract` raises AssertionError with what is wrong.
"""

import hashlib
import json
import struct
from bisect import bisect
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

PT_NULL, PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_PHDR, PT_GNU_STACK = 0, 1, 2, 3, 6, 0x6474E551
DT_NEEDED, DT_SONAME = 1, 14
SHT_SYMTAB, SHT_NOBITS, ET_REL = 2, 8, 1
EM_AMD64, EM_ARM64, EM_RISCV = 62, 183, 243
COPY, EMULATE, REFUSE, DEFER = range(4)
_SLOT = {EM_AMD64: 16, EM_ARM64: 8, EM_RISCV: 8}
_LONGEST = {EM_AMD64: 32, EM_ARM64: 8, EM_RISCV: 8}
_NEW_SECTIONS = [".kinst.text", ".kinst.manifest", ".kinst.shstrtab"]
# Fields of the ELF header that say where headers are: e_phoff, e_shoff, e_phnum to e_shstrndx.
_HEADER_FIELDS = {*range(32, 48), *range(56, 64)}


@dataclass(frozen=True)
class Elf:
    """One file taken apart."""

    data: bytes
    kind: int
    machine: int
    phoff: int
    segments: list[tuple[int, ...]]  # kind, flags, offset, address, load address, file size, size, alignment
    sections: list[tuple[int, ...]]  # name, kind, flags, address, offset, size, link, info, alignment, entry size
    names: list[str]
    strings: bytes


@dataclass(frozen=True)
class Site:
    address: int
    trampoline: int
    original: bytes
    verdict: int
    size: int


def read_elf(data: bytes) -> Elf:
    """ELF64, little-endian."""
    assert data[:7] == b"\x7fELF\x02\x01\x01"
    kind, machine = struct.unpack_from("<HH", data, 16)
    phoff, shoff = struct.unpack_from("<QQ", data, 32)
    phentsize, phnum, shentsize, shnum, shstrndx = struct.unpack_from("<HHHHH", data, 54)
    assert not phnum or phentsize == 56
    assert not shnum or shentsize == 64
    segments = [struct.unpack_from("<IIQQQQQQ", data, phoff + 56 * row) for row in range(phnum)]
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + 64 * row) for row in range(shnum)]
    strings = b"\0"
    if shstrndx:
        strings = data[sections[shstrndx][4] : sections[shstrndx][4] + sections[shstrndx][5]]
    names = [strings[row[0] : strings.index(b"\0", row[0])].decode() for row in sections]
    return Elf(data, kind, machine, phoff, segments, sections, names, strings)


def check_contract(original: bytes, patched: bytes) -> list[Site]:
    """Assert the whole contract; the sites."""
    before, after = read_elf(original), read_elf(patched)
    manifest = after.sections[after.names.index(".kinst.manifest")]
    head, sites = read_manifest(patched[manifest[4] : manifest[4] + manifest[5]])
    new_sections = _NEW_SECTIONS if sites else _NEW_SECTIONS[1:]
    if sites and ".rela.kinst.text" in after.names:
        new_sections = [".kinst.text", ".rela.kinst.text", *_NEW_SECTIONS[1:]]
    check_sections(before, after, new_sections)
    assert head["original_size"] == len(original)
    assert head["original_sha256"] == hashlib.sha256(original).hexdigest()
    entry = None
    if sites:
        text = after.sections[after.names.index(".kinst.text")]
        if after.kind == ET_REL:
            after = check_module(before, after, sites)
            text = after.sections[after.names.index(".kinst.text")]
        else:
            entry = check_segments(before, after, text)
        check_trampolines(after, sites, text)
    else:
        assert (before.segments, before.phoff) == (after.segments, after.phoff), "a segment for no trampolines"
    check_bytes(with_patches(before, head), after, sites, entry)
    check_restore(before, after, head, sites)
    return sites


def check_module(before: Elf, after: Elf, sites: list[Site]) -> Elf:
    """What relocations write into the trampolines is 0 in the file, and leads to the sections of the sites. The module
    with addresses: those of its sections in the file, and with that written."""
    assert (before.segments, before.phoff) == (after.segments, after.phoff), "a module has no segments"
    index = after.names.index(".kinst.text")
    text, data = after.sections[index], bytearray(after.data)
    assert text[2] == 6 and text[3] == 0 and text[4] >= len(before.data), "no executable section behind the end"
    for row in [after.sections[at] for at, name in enumerate(after.names) if name == ".rela.kinst.text"]:
        assert (row[1], row[7], row[9]) == (4, index, 24) and after.sections[row[6]][1] == SHT_SYMTAB
        for at in range(row[4], row[4] + row[5], 24):
            offset, kind, symbol, addend = struct.unpack_from("<QIIq", data, at)
            _, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, after.sections[row[6]][4] + 24 * symbol)
            assert info >> 4 != 2 and after.sections[section][2] & 4, "a weak symbol, or one that is no code's"
            place, target = text[4] + offset, after.sections[section][4] + value + addend
            assert not any(data[place : place + (8 if kind == 1 else 4)]), f"{place:#x}: something is there already"
            if kind == 1:
                struct.pack_into("<Q", data, place, target)
            else:
                assert kind == 2
                struct.pack_into("<i", data, place, target - place)
    placed = [(*row[:3], row[4], *row[4:]) for row in after.sections]
    return replace(after, data=bytes(data), sections=placed)


def with_patches(before: Elf, head: dict[str, Any]) -> Elf:
    """The original with the user's own instructions in it, each over the bytes that the manifest has for it."""
    data = bytearray(before.data)
    for address, original, code, _ in head.get("patches", ()):
        offset, size = file_offset(before, address), len(code) // 2
        assert data[offset : offset + size] == bytes.fromhex(original) and size, f"{address:#x}: other bytes"
        data[offset : offset + size] = bytes.fromhex(code)
    return replace(before, data=bytes(data))


def check_segments(before: Elf, after: Elf, text: tuple[int, ...]) -> int | None:
    """One new PT_LOAD, everything else as it was. The index of the entry that was reused, None if the table moved."""
    reused = None
    if after.phoff == before.phoff:
        changed = [
            row for row, pair in enumerate(zip(before.segments, after.segments, strict=True)) if pair[0] != pair[1]
        ]
        assert len(changed) == 1, f"program headers {changed} changed"
        reused = changed[0]
        assert is_spare(before, before.segments[reused]), "an entry that was not spare was reused"
        new = after.segments[reused]
    else:
        assert after.phoff >= len(before.data), "the program headers moved onto the original"
        assert not any(is_spare(before, row) for row in before.segments), "a spare entry was not used"
        kept = [row for row in after.segments if row[3] != text[3] or row[0] != PT_LOAD]
        assert len(after.segments) == len(before.segments) + 1
        assert [row for row in kept if row[0] != PT_PHDR] == [row for row in before.segments if row[0] != PT_PHDR]
        new = next(row for row in after.segments if row[0] == PT_LOAD and row[3] == text[3])
        assert new[2] <= after.phoff <= new[2] + new[5] - 56 * len(after.segments), "the table is in no segment"
    check_new_segment(before, after, new, text)
    return reused


def is_spare(before: Elf, row: tuple[int, ...]) -> bool:
    """Whether no loader reads an entry: of a library, the dynamic linker reads PT_GNU_STACK."""
    return row[0] == PT_NULL or (row[0] == PT_GNU_STACK and not is_library(before))


def is_library(elf: Elf) -> bool:
    """Whether a dynamic linker loads it for others."""
    dynamic = next((row for row in elf.segments if row[0] == PT_DYNAMIC), None)
    if dynamic is None:
        return False
    tags = {tag for tag, _ in struct.iter_unpack("<QQ", elf.data[dynamic[2] : dynamic[2] + dynamic[5] // 16 * 16])}
    return DT_NEEDED in tags and (DT_SONAME in tags or all(row[0] != PT_INTERP for row in elf.segments))


def check_new_segment(before: Elf, after: Elf, new: tuple[int, ...], text: tuple[int, ...]) -> None:
    kind, flags, offset, address, load, file_size, size, alignment = new
    assert (kind, flags) == (PT_LOAD, 5), "the trampolines are not a readable, executable segment"
    assert (offset, address) == (text[4], text[3]) and file_size == size >= text[5]
    assert offset >= len(before.data) and offset + file_size <= len(after.data)
    assert offset % alignment == address % alignment, "offset and address are not congruent"
    distances = {(row[3] - row[4]) % 2**64 for row in before.segments if row[0] == PT_LOAD}
    assert (address - load) % 2**64 in distances, "no segment has this distance between VMA and LMA"
    for row in before.segments:
        if row[0] == PT_LOAD and row[6]:
            assert address + size <= row[3] or row[3] + row[6] <= address, "overlaps a segment"
            assert load + size <= row[4] or row[4] + row[6] <= load, "is loaded over a segment"


def check_sections(before: Elf, after: Elf, new_sections: list[str]) -> None:
    """Every original row is as it was, index and name too; but for .symtab and .strtab with --trampoline-symbols."""
    count = max(len(before.sections), 1)
    moved: set[int] = set()
    for index, (old, new) in enumerate(zip(before.sections, after.sections, strict=False)):
        if old != new:
            assert new[4] >= len(before.data), f"section {index} changed"
            assert old[:4] == new[:4] and old[6:] == new[6:], f"section {index} changed more than its place"
            old_bytes, new_bytes = _content(before, old), _content(after, new)
            assert new_bytes.startswith(old_bytes), f"section {index} does not begin with the original"
            moved.add(index)
    tables = {row for row in moved if before.sections[row][1] == SHT_SYMTAB}
    assert moved == tables | {before.sections[row][6] for row in tables}
    assert before.names == after.names[: len(before.names)]
    assert after.strings.startswith(before.strings)
    added = after.names[count:]
    assert [name for name in added if name not in (".symtab", ".strtab")] == new_sections, added


def _content(elf: Elf, row: tuple[int, ...]) -> bytes:
    return elf.data[row[4] : row[4] + row[5]]


def read_manifest(data: bytes) -> tuple[dict[str, Any], list[Site]]:
    """The JSON head and the sites."""
    magic, version, _, total, head_size, _ = struct.unpack_from("<8sIIQII", data)
    assert (magic, total) == (b"KINSTMAN", len(data))
    assert version == 9
    assert hashlib.sha256(data[:12] + data[16:32] + data[64:]).digest() == data[32:64]
    head = json.loads(data[64 : 64 + head_size])
    records = head["records"]
    sites = read_sites(data[64 + head_size :], records["sites"]) if records["sites"] else []
    named = 64 * records["functions"] + records["names"] + 24 * records["symbols"] + records["strings"]
    assert len(data) <= 64 * len(sites) + head_size + named + 256
    return head, sites


def read_sites(body: bytes, count: int) -> list[Site]:
    """The first table: columns of differences, each a byte with their width, the first value and the rest by bytes."""
    content = zstandard.ZstdDecompressor().decompress(body[8 : 8 + int.from_bytes(body[:8], "little")])
    columns, at = [], 0
    for size in (8, 8, 1, 1, 1, 1, 4):  # address, trampoline, size, kind, verdict, flow, function
        width, first = content[at], content[at + 1 : at + 1 + size]
        at += 1 + size
        planes = [content[at + row * (count - 1) : at + (row + 1) * (count - 1)] for row in range(width)]
        at += width * (count - 1)
        steps = [int.from_bytes(bytes(step), "little", signed=True) for step in zip(*planes, strict=True)]
        values = accumulate([int.from_bytes(first, "little"), *steps])
        columns.append([value % (1 << 8 * size) for value in values])
    sites = []
    for address, trampoline, size, _, verdict, _, _ in zip(*columns, strict=True):
        sites.append(Site(address, trampoline, content[at : at + size], verdict, size))
        at += size
    assert at == len(content)
    return sites


def check_bytes(before: Elf, after: Elf, sites: list[Site], entry: int | None) -> None:
    """Outside the sites and the header fields, no byte of the original differs; each site holds a breakpoint, but for
    those that are deferred: there the file is untouched."""
    size = len(before.data)
    allowed = np.zeros(size, np.bool_)
    allowed[sorted(_HEADER_FIELDS)] = True
    if entry is not None:
        allowed[before.phoff + 56 * entry : before.phoff + 56 * (entry + 1)] = True
    for site in sites:
        offset = file_offset(before, site.address)
        assert before.data[offset : offset + site.size] == site.original, hex(site.address)
        if site.verdict == DEFER:
            continue
        patch = breakpoint_size(before.machine, after.data[offset : offset + site.size])
        assert patch, f"{site.address:#x}: {after.data[offset : offset + site.size].hex()} is no breakpoint"
        assert not allowed[offset : offset + patch].any(), f"{site.address:#x}: two sites overlap"
        allowed[offset : offset + patch] = True
    changed = _bytes(before.data) != _bytes(after.data[:size])
    wrong = np.flatnonzero(changed & ~allowed)
    assert not len(wrong), f"{len(wrong)} bytes changed without leave, the first at file offset {int(wrong[0]):#x}"


def breakpoint_size(machine: int, code: bytes) -> int:
    """Bytes of the breakpoint at the start of `code`, which is one instruction long; 0 if there is none."""
    if machine == EM_AMD64:
        return int(code[:1] == b"\xcc")
    word = int.from_bytes(code[:4], "little")
    if machine == EM_ARM64:
        return 4 * (word & 0xFFE0_001F == 0xD420_0000)
    return 4 * (code == b"\x73\x00\x10\x00") or 2 * (code == b"\x02\x90")


def check_trampolines(after: Elf, sites: list[Site], text: tuple[int, ...]) -> None:
    slot = _SLOT[after.machine]
    code = _content(after, text)
    starts = [site.trampoline - text[3] for site in sites]
    assert len(set(starts)) == len(starts), "two sites share a slot"
    ordered = sorted(starts)
    filler = code[-slot:] if len(sites) * slot < len(code) else b""
    for site, start in zip(sites, starts, strict=True):
        assert start % slot == 0 and 0 <= start <= len(code) - slot, f"{site.address:#x}: slot outside the segment"
        behind = bisect(ordered, start)
        end = min(ordered[behind] if behind < len(ordered) else len(code), start + _LONGEST[after.machine])
        assert start // 4096 == (end - 1) // 4096, f"{site.address:#x}: a trampoline straddles a page"
        if site.verdict != DEFER:  # what is there is written when the image runs
            check_trampoline(after.machine, site, code[start:end], text[3] + start)
    assert not filler or breakpoint_size(after.machine, filler[:4])


def check_trampoline(machine: int, site: Site, code: bytes, address: int) -> None:
    if site.verdict == EMULATE:
        assert breakpoint_size(machine, code[:4]) and code == code[:4] * (len(code) // 4), hex(site.address)
        return
    if machine == EM_AMD64:
        following = site.address + site.size
        short = b"\xe9" + ((following - (address + site.size + 5)) % 2**32).to_bytes(4, "little")
        long = b"\xff\x25" + bytes(4) + following.to_bytes(8, "little")
        back = short if (following - address + 2**63) % 2**64 - 2**63 in range(-(2**31), 2**31) else long
        body, rest = code[: site.size], code[site.size + len(back) :]
        assert code[site.size :].startswith(back), f"{site.address:#x}: the trampoline does not come back"
        assert rest == b"\xcc" * len(rest), hex(site.address)
        assert differences(body, site.original) <= 4, hex(site.address)
        return
    assert code[: site.size] == site.original, hex(site.address)
    assert breakpoint_size(machine, code[4:8]) == 4, hex(site.address)
    assert site.size == 4 or code[2:4] == b"\x01\x00", f"{site.address:#x}: no c.nop behind a compressed instruction"


def differences(left: bytes, right: bytes) -> int:
    """A RIP-relative operand has another displacement in its trampoline: at most four bytes differ."""
    return sum(a != b for a, b in zip(left, right, strict=True))


def check_restore(before: Elf, after: Elf, head: dict[str, Any], sites: list[Site]) -> None:
    """The manifest alone gives the original back."""
    image = bytearray(after.data[: len(before.data)])
    for site in sites:
        offset = file_offset(before, site.address)
        image[offset : offset + site.size] = site.original
    for address, original, _, _ in head.get("patches", ()):
        offset = file_offset(before, address)
        image[offset : offset + len(original) // 2] = bytes.fromhex(original)
    for offset, data in head["restore"]:
        image[offset : offset + len(data) // 2] = bytes.fromhex(data)
    assert bytes(image) == before.data, "the manifest does not give the original back"


def file_offset(elf: Elf, address: int) -> int:
    if elf.kind == ET_REL:
        assert any(row[2] & 2 and row[1] != SHT_NOBITS and 0 <= address - row[4] < row[5] for row in elf.sections)
        return address
    for kind, _, offset, start, _, file_size, _, _ in elf.segments:
        if kind == PT_LOAD and 0 <= address - start < file_size:
            return offset + address - start
    raise AssertionError(f"{address:#x} is not in the file")


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)
