"""The Image of a Linux kernel for arm64 or riscv64, memory from its first byte on -> an ELF file of it.

It does not say where it is linked, nor which bytes are code. The kernel's own symbols do, which it keeps for its
messages, together with what points to them: the ELF file has them as .symtab, and as sections what they enclose. The
bytes of the Image are in one segment, as in the vmlinux that it was made from.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.registry import ARCHES
from kinst.targets.elf.header import (
    ELF_HEADER,
    PF_R,
    PF_X,
    PROGRAM_HEADER,
    PT_LOAD,
    PT_NOTE,
    SECTION_HEADER,
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHT_NOBITS,
    SHT_NOTE,
    SHT_PROGBITS,
    SHT_RELA,
    SHT_RELR,
    SHT_STRTAB,
    SHT_SYMTAB,
    FileKind,
)
from kinst.targets.elf.relocations import RELA, RELR_SIZE
from kinst.targets.elf.symbols import SHN_ABS, STB_LOCAL, SYMBOL, Symbols
from kinst.targets.errors import ImageError
from kinst.targets.kallsyms import Kernel, KernelSymbols, kernel_symbols
from kinst.targets.packed.link_address import link_address
from kinst.targets.values import dataclass
from kinst.targets.visible import text_of

_HEADER: Final = 64
# From the first byte to the first symbol, from which older kernels count: .head.text, or else .text on the next page or
# segment.
_FIRST_SYMBOL: Final = (0, 0x1000, 0x2000, 0x1_0000)
_START: Final = 0x1_0000  # of the segment in the file: as aligned as kernels are linked
_MOST_MEMORY: Final = 1 << 30  # bytes of RAM
_PT_GNU_STACK: Final = 0x6474_E551
_WRITABLE: Final = 1  # SHF_WRITE
_BTF_MAGIC: Final = b"\x9f\xeb"  # what struct btf_header begins with
_CODE: Final = SHF_ALLOC | SHF_EXECINSTR


@dataclass(frozen=True, slots=True)
class _Enclosed:
    """A section between two symbols, of which kernels have had several."""

    name: str
    kind: int
    flags: int
    starts: tuple[str, ...]
    ends: tuple[str, ...]
    entry_size: int = 0


_START_OF, _END_OF = b"__start_", b"__stop_"  # section names that are C identifiers, as linkers do it
_DOTTED: Final = {"BTF": ".BTF", "notes": ".notes"}
# include/asm-generic/vmlinux.lds.h and arch/*/kernel/vmlinux.lds.S. A kernel starts with .head.text.
_SECTIONS: Final = (
    _Enclosed(".text", SHT_PROGBITS, _CODE, ("_stext",), ("_etext",)),
    _Enclosed(".rodata.text", SHT_PROGBITS, _CODE, ("__idmap_text_start",), ("__idmap_text_end",)),
    _Enclosed(".init.text", SHT_PROGBITS, _CODE, ("_sinittext",), ("_einittext",)),
    _Enclosed(".exit.text", SHT_PROGBITS, _CODE, ("__exittext_begin",), ("__exittext_end",)),
    _Enclosed(
        ".rela.dyn",
        SHT_RELA,
        SHF_ALLOC,
        ("__rela_start", "__pi_rela_start", "__rela_dyn_start"),
        ("__rela_end", "__pi_rela_end", "__rela_dyn_end"),
        RELA.itemsize,
    ),
    _Enclosed(
        ".relr.dyn",
        SHT_RELR,
        SHF_ALLOC,
        ("__relr_start", "__pi_relr_start"),
        ("__relr_end", "__pi_relr_end"),
        RELR_SIZE,
    ),
)


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    flags: int
    address: int
    size: int
    entry_size: int = 0


def facts_of(head: bytes) -> ArchFacts | None:
    """The architecture of an Image that begins so; None: it is no Image."""
    return next((one for one in ARCHES if one.linux.boot_magic and one.linux.boot_magic == head[56:60]), None)


def elf_of_image(data: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
    """The ELF file; None: it is no such kernel.

    Raises:
        ImageError: it does not show where it is linked, or is damaged.
    """
    head = data[:_HEADER].tobytes()
    facts = facts_of(head)
    if facts is None:
        return None
    # image_size at 16, text_offset at 8 (Documentation/arch/arm64/booting.rst); with .bss it is larger than the file.
    memory_size = max(_number(head, 16), len(data))
    if memory_size > _MOST_MEMORY:
        raise ImageError(f"damaged: its header says that it takes {memory_size:#x} bytes of memory")
    content = data.tobytes()
    found = kernel_symbols(_kernel(content, memory_size, facts))
    base = None if found is None else link_address(content, found.addresses, memory_size, _number(head, 8))
    if found is None or base is None:
        raise ImageError("an Image without kallsyms, which tell where it is linked: give the vmlinux it was made from")
    names = replace(found, addresses=found.addresses + np.uint64(base))
    return _file(data, facts, _sections(names, base, content, memory_size), names)


def _kernel(data: bytes, memory_size: int, facts: ArchFacts) -> Kernel:
    """The kernel as if it was linked to 0."""
    return Kernel(
        data,
        facts,
        bases=lambda _: _FIRST_SYMBOL,
        address=lambda offset: offset,
        offset=lambda address: address if address < len(data) else None,
        is_code=lambda addresses: addresses < np.uint64(memory_size),
    )


def _sections(names: KernelSymbols, base: int, data: bytes, memory_size: int) -> list[_Section]:
    """Sections without gaps between them, from the first byte to the end of the kernel's memory."""
    places = dict(zip(names.names, names.addresses.tolist(), strict=True))
    found = [_Section(".head.text", SHT_PROGBITS, _CODE, base, places.get(b"_stext", base) - base)]
    for one in _SECTIONS:
        start = next((places[name.encode()] for name in one.starts if name.encode() in places), 0)
        end = next((places[name.encode()] for name in one.ends if name.encode() in places), 0)
        found.append(_Section(one.name, one.kind, one.flags, start, end - start, one.entry_size))
    for symbol, start in places.items():
        end = places.get(_END_OF + symbol.removeprefix(_START_OF), 0)
        if symbol.startswith(_START_OF) and end > start:
            name = text_of(symbol.removeprefix(_START_OF))
            kind = SHT_NOTE if name == "notes" else SHT_PROGBITS
            if _is_plausible(name, data[start - base : end - base]):
                found.append(_Section(_DOTTED.get(name, name), kind, SHF_ALLOC, start, end - start))
    # Without data symbols the tables of what the kernel patches at boot cannot be found: a probe there would break it.
    if b"__start___jump_table" not in places:
        raise ImageError(
            "an Image that names no data (CONFIG_KALLSYMS_ALL), so that it is not known what code it writes itself: "
            "give the vmlinux it was made from"
        )
    return list(_without_gaps(found, base, len(data), memory_size))


def _is_plausible(name: str, content: bytes) -> bool:
    """Whether what two symbols enclose is what their names say; a wrong section would be an error later on."""
    return name != "BTF" or content[:2] == _BTF_MAGIC


def _without_gaps(found: Sequence[_Section], base: int, size: int, memory_size: int) -> Iterator[_Section]:
    at, end = base, base + size
    for one in sorted(found, key=lambda section: section.address):
        # Symbols of other versions may enclose something else: what overlaps or runs past the end is left out.
        if one.size <= 0 or one.address < at or one.address + one.size > end:
            continue
        if one.address > at:
            yield _Section(".data", SHT_PROGBITS, SHF_ALLOC | _WRITABLE, at, one.address - at)
        yield one
        at = one.address + one.size
    if at < end:
        yield _Section(".data", SHT_PROGBITS, SHF_ALLOC | _WRITABLE, at, end - at)
    if memory_size > size:
        yield _Section(".bss", SHT_NOBITS, SHF_ALLOC | _WRITABLE, end, memory_size - size)


def _file(
    data: NDArray[np.uint8], facts: ArchFacts, sections: Sequence[_Section], names: KernelSymbols
) -> NDArray[np.uint8]:
    """ELF header  program headers  ...  the Image at `_START`  .symtab  .strtab  .shstrtab  section headers"""
    base, memory_size = sections[0].address, sum(one.size for one in sections)
    symbols = _symbols(names)
    table = _symbol_records(symbols, sections)
    texts = b"\0" + b"".join(one.name.encode() + b"\0" for one in sections) + b".symtab\0.strtab\0.shstrtab\0"
    at = _START + len(data) + (-len(data) & 7)
    contents = (table.tobytes(), symbols.strings, texts)
    headers = _headers(sections, contents, at, int((symbols.binding == STB_LOCAL).sum()) + 1, texts)
    body = b"".join(contents)
    body += bytes(-len(body) & 7)
    # A kernel with relocations of its own moves itself: its words are not final.
    kind = FileKind.DYN if any(one.kind == SHT_RELA for one in sections) else FileKind.EXEC
    segments = _segments(base, len(data), memory_size, sections)
    head = ELF_HEADER.pack(
        b"\x7fELF\2\1\1", kind, facts.elf_machine, 1, base, ELF_HEADER.size, at + len(body), 0,
        ELF_HEADER.size, PROGRAM_HEADER.itemsize, len(segments),
        SECTION_HEADER.itemsize, len(headers), len(headers) - 1,
    )  # fmt: skip
    start = (head + segments.tobytes()).ljust(_START, b"\0")
    return np.frombuffer(b"".join((start, data.tobytes(), bytes(-len(data) & 7), body, headers.tobytes())), np.uint8)


def _segments(base: int, size: int, memory_size: int, sections: Sequence[_Section]) -> NDArray[np.void]:
    """The Image, its notes, and a header that a rewriter may use."""
    rows = [(PT_LOAD, PF_R | 2 | PF_X, _START, base, base, size, memory_size, _START)]
    rows += [
        (PT_NOTE, PF_R, _START + one.address - base, one.address, one.address, one.size, one.size, 4)
        for one in sections
        if one.kind == SHT_NOTE
    ]
    return np.array([*rows, (_PT_GNU_STACK, PF_R | 2, 0, 0, 0, 0, 0, 16)], PROGRAM_HEADER)


def _symbols(names: KernelSymbols) -> Symbols:
    """Local symbols first, as ELF requires."""
    found = names.symbols
    return found.take(np.argsort(found.binding != STB_LOCAL, kind="stable"))


def _symbol_records(symbols: Symbols, sections: Sequence[_Section]) -> NDArray[np.void]:
    """Each in the section that has its address."""
    rows = symbols.records()
    starts = np.array([one.address for one in sections], np.uint64)
    ends = starts + np.array([one.size for one in sections], np.uint64)
    at = np.searchsorted(starts, symbols.address, "right").astype(np.intp) - 1
    inside = (at >= 0) & (symbols.address < ends[at])
    rows["section"] = np.where(inside, at + 1, SHN_ABS)
    return np.concatenate([np.zeros(1, SYMBOL), rows])


def _headers(
    sections: Sequence[_Section], contents: tuple[bytes, ...], at: int, local: int, texts: bytes
) -> NDArray[np.void]:
    base, count = sections[0].address, len(sections)
    rows: list[tuple[int, ...]] = [(0,) * 10]
    for one in sections:
        name, offset = texts.index(b"\0" + one.name.encode() + b"\0") + 1, _START + one.address - base
        rows.append((name, one.kind, one.flags, one.address, offset, one.size, 0, 0, 8, one.entry_size))
    kinds = ((".symtab", SHT_SYMTAB, SYMBOL.itemsize), (".strtab", SHT_STRTAB, 0), (".shstrtab", SHT_STRTAB, 0))
    for (name_, kind, entry), content in zip(kinds, contents, strict=True):
        link, info = (count + 2, local) if kind == SHT_SYMTAB else (0, 0)
        rows.append((texts.index(b"\0" + name_.encode()) + 1, kind, 0, 0, at, len(content), link, info, 8, entry))
        at += len(content)
    return np.array(rows, SECTION_HEADER)


def _number(head: bytes, at: int) -> int:
    return int.from_bytes(head[at : at + 8], "little")
