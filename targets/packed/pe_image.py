"""A PE file for UEFI (an application, a driver, a boot loader: .efi) -> an ELF file with the same sections.

    0 "MZ"   0x3c offset of:
    "PE\\0\\0"   machine, sections, time, symbols (2 words), size of the optional header, characteristics
    optional header   0 magic 0x20b (PE32+)   16 entry point   24 image base
    sections, 40 bytes each   name   memory size, address, file size, file offset   36 characteristics

Addresses are relative to the image base. UEFI loads such a file where it likes: link addresses are what is used here.
Microsoft PE and COFF Specification; UEFI Specification 2.10, 2.1.1.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.registry import ARCHES
from kinst.targets.elf.header import SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE
from kinst.targets.errors import ImageError
from kinst.targets.packed.layer import Layer
from kinst.targets.packed.memory import Part, elf_of_parts
from kinst.targets.packed.reading import Reading
from kinst.targets.values import dataclass
from kinst.targets.visible import text_of

_FILE: Final = "PE/EFI image"
_COFF: Final = struct.Struct("<4sHHIIIHH")
_SECTION: Final = struct.Struct("<8s4I12xI")
_TE: Final = struct.Struct("<2sHBBHIIQ")  # "VZ", machine, sections, subsystem, bytes left out, entry, code, image base
_TE_SIZE: Final = 40  # with two data directories
_PE32_PLUS: Final = 0x20B
_EXECUTE, _WRITE, _CODE = 0x2000_0000, 0x8000_0000, 0x20
_LEAST_OPTIONAL: Final = 32
_LAST: Final = 1 << 64
_OTHERS: Final = {
    0x14C: "32-bit x86", 0x1C0: "32-bit ARM", 0x1C2: "32-bit ARM", 0x1C4: "32-bit ARM", 0x200: "IA-64",
    0xEBC: "EFI byte code", 0x5032: "32-bit RISC-V", 0x6264: "LoongArch",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    address: int  # from the image base
    size: int
    data: NDArray[np.uint8]
    flags: int  # characteristics


def read_te(data: NDArray[np.uint8], head: bytes, _reading: Reading) -> Layer | None:
    """A TE image, which is a PE file without most of its headers, in firmware; None: it is none.

    Raises:
        ImageError: it is damaged, or for another machine.
    """
    if len(head) < _TE.size:
        return None
    _, machine, count, _, stripped, entry, _, base = _TE.unpack_from(head)
    facts = _facts(machine)
    whole = np.concatenate([np.zeros(max(0, stripped - _TE_SIZE), np.uint8), data])  # offsets are as in the PE file
    sections = [*_sections(whole, max(0, stripped - _TE_SIZE) + _TE_SIZE, count)]
    return Layer(_FILE, _elf(facts, sections, base, entry), _refused)


def _facts(machine: int) -> ArchFacts:
    facts = next((one for one in ARCHES if one.in_files.pe == machine), None)
    if facts is None:
        other = _OTHERS.get(machine, f"machine {machine:#x}")
        raise ImageError(f"a {_FILE} for {other}: only 64-bit images can be probed")
    return facts


def read_pe(data: NDArray[np.uint8], head: bytes, reading: Reading) -> Layer | None:
    """Read one, or the section that `--payload` names (.linux of a unified kernel); None: it is none.

    Raises:
        ImageError: it is damaged, or for another machine.
    """
    start = int.from_bytes(head[0x3C:0x40], "little")
    if not head.startswith(b"MZ") or data[start : start + 4].tobytes() != b"PE\0\0":
        return None
    found = data[start : start + _COFF.size].tobytes()
    if len(found) < _COFF.size:
        raise ImageError(f"truncated: this {_FILE} ends in its header")
    _, machine, count, _, _, _, size, _ = _COFF.unpack(found)
    facts = _facts(machine)
    optional = data[start + _COFF.size : start + _COFF.size + size].tobytes()
    if len(optional) < _LEAST_OPTIONAL or int.from_bytes(optional[:2], "little") != _PE32_PLUS:
        raise ImageError(f"damaged: this {_FILE} has no PE32+ header")
    sections = [*_sections(data, start + _COFF.size + size, count)]
    if reading.payload:
        return _payload(sections, reading.payload)
    entry, base = struct.unpack_from("<I4xQ", optional, 16)
    return Layer(_FILE, _elf(facts, sections, base, entry), _refused)


def _sections(data: NDArray[np.uint8], at: int, count: int) -> Iterator[_Section]:
    rows = data[at : at + count * _SECTION.size].tobytes()
    if len(rows) < count * _SECTION.size:
        raise ImageError(f"truncated: this {_FILE} has {count} sections, and ends in their table")
    left = len(data)
    for name, size, address, in_file, offset, flags in _SECTION.iter_unpack(rows):
        title = text_of(name.rstrip(b"\0"))
        in_memory = min(in_file, size or in_file)
        left -= in_memory
        if offset + in_memory > len(data) or left < 0:
            raise ImageError(f"truncated: section {title} of this {_FILE} has {in_memory:#x} bytes at {offset:#x}")
        yield _Section(title, address, max(size, in_memory), data[offset : offset + in_memory], flags)


def _payload(sections: Sequence[_Section], name: str) -> Layer:
    found = next((one for one in sections if one.name == name and len(one.data)), None)
    if found is None:
        names = ", ".join(one.name for one in sections)
        raise ImageError(f"{_FILE}: --payload {name}: there are the sections {names}")
    return Layer(f"{_FILE} ({name})", found.data, _refused, has_payloads=True)


def _elf(facts: ArchFacts, sections: Sequence[_Section], base: int, entry: int) -> NDArray[np.uint8]:
    if base + max((one.address + one.size for one in sections), default=0) > _LAST:
        raise ImageError(f"damaged: this {_FILE} passes the last address")
    parts = [Part(one.name, base + one.address, one.data, one.size, _flags(one.flags)) for one in sections if one.size]
    return elf_of_parts(facts, parts, base + entry)


def _flags(characteristics: int) -> int:
    found = SHF_ALLOC
    if characteristics & (_EXECUTE | _CODE):
        found |= SHF_EXECINSTR
    return found | (SHF_WRITE if characteristics & _WRITE else 0)


def _refused(_new: NDArray[np.uint8]) -> bytes:
    raise ImageError(
        f"{_FILE}: is read, and not written: a loader of UEFI knows no trampolines in it; patch it in memory"
    )
