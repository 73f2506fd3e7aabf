"""An image for amd64 that is entered in 64-bit mode -> a file that QEMU's -kernel takes, which enters it so.

QEMU loads no 64-bit ELF file but Linux'. A Multiboot header (Multiboot Specification 0.6.96, 3.1) says where a raw file
belongs; the code behind it goes from protected into 64-bit mode as Intel's SDM has it (volume 3, 10.8.5), with the
first 4 GiB mapped at 0, and 2 GiB of these in the last 2 GiB as well.

    first - _SIZE   the header, the code, a GDT, page tables
    first           the image
"""

import struct
from collections.abc import Iterator
from typing import Final

from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import UsageError
from kinst.targets.image import Image, Segment

_SIZE: Final = 0x1_0000  # bytes in front of the image
_LOWEST: Final = 0x10_0000  # below it a PC has other things
_MAGIC, _HAS_ADDRESSES = 0x1BAD_B002, 1 << 16
_HEADER: Final = struct.Struct(
    "<8I"
)  # magic, flags, checksum; addresses: header, first, end of data, end of bss, entry
_STACK: Final = 0x8_0000  # low memory on both sides of it: U-Boot has its first heap above the stack pointer
_CODE, _GDT, _TABLES = 0x40, 0x200, 0x1000  # offsets
# Code and data that are flat, present, and of level 0; the code is for 64 bits (SDM volume 3, 3.4.5).
_SEGMENTS: Final = struct.pack("<3Q", 0, 0x00AF_9A00_0000_FFFF, 0x00CF_9200_0000_FFFF)
_CODE64, _DATA = 8, 16
_PRESENT, _LARGE = 0b11, 0b1000_0011  # and writable; of 2 MiB
_PAGE, _GIB = 0x1000, 1 << 30
_END: Final = 4 * _GIB
# CMOS memory has what a BIOS found: KiB from 1 MiB on, twice, and 64 KiB pieces from 16 MiB on.
_EXTENDED, _ABOVE_16M = (0x17, 0x30), 0x34
_MOST: Final = 0xFFFF


def is_entered_in_long_mode(image: Image) -> bool:
    """Whether its entry is an address of it, as linked and as loaded: what is entered in another mode, as Linux, has a
    physical one."""
    loads = (one for one in image.segments if one.kind == PT_LOAD and one.address == one.load_address)
    return any(_has(one, image.entry) for one in loads)


def _has(segment: Segment, address: int) -> bool:
    return 0 <= address - segment.address < segment.file_size


def bootable(image: Image, memory: int | None, tree: bytes = b"") -> list[tuple[int, bytes]]:
    """The file, as offsets and bytes; all others are zero.

    Args:
        image: without a boot header.
        memory: bytes of RAM that CMOS memory shall have; None: as it is.
        tree: a device tree, which is put behind the image's bytes, where U-Boot looks for its own.

    Raises:
        UsageError: it has no place in front of it, or belongs beyond 4 GiB.
    """
    loads = [one for one in image.segments if one.kind == PT_LOAD and one.file_size]
    behind = next(one.load_address + one.file_size for one in loads if _has(one, image.entry))
    first, ends = min(one.load_address for one in loads), [one.load_address + one.file_size for one in loads]
    end = max(*ends, behind + len(tree))
    if end > _END:
        raise UsageError(f"--on: {image.path}: belongs at {first:#x} and above, and what enters it ends at 4 GiB")
    base = first - first % _PAGE - _SIZE
    if base < _LOWEST:
        raise UsageError(f"--on: {image.path}: begins at {first:#x}, and QEMU has no space in front of it to enter it")
    flags = _HAS_ADDRESSES
    header = _HEADER.pack(_MAGIC, flags, -(_MAGIC + flags) & 0xFFFF_FFFF, base, base, end, end, base + _CODE)
    found = [(0, header), (_CODE, _code(base, image.entry, memory)), (_GDT, _SEGMENTS)]
    found += [(_TABLES + _PAGE * number, table) for number, table in enumerate(_tables(base + _TABLES))]
    for one in loads:
        content = image.data[one.offset : one.offset + one.file_size].tobytes()
        found.append((one.load_address - base, content))
    return [*found, (behind - base, tree)] if tree else found


def _code(base: int, entry: int, memory: int | None) -> bytes:
    """Which is entered in protected mode, flat, without paging."""
    stores = () if memory is None else _stores(memory)
    cmos = b"".join(bytes((0xB0, index, 0xE6, 0x70, 0xB0, value, 0xE6, 0x71)) for index, value in stores)
    start, pointer = base + _CODE, struct.pack("<HI", len(_SEGMENTS) - 1, base + _GDT)
    # cli; the stores: mov al, index; out 0x70, al; mov al, value; out 0x71, al
    before = b"\xfa" + cmos
    before += bytes.fromhex("0f 01 15") + struct.pack("<I", base + _GDT - len(pointer))  # lgdt [pointer]
    before += bytes.fromhex("0f 20 e0 83 c8 20 0f 22 e0")  # cr4 |= PAE
    before += b"\xb8" + struct.pack("<I", base + _TABLES) + bytes.fromhex("0f 22 d8")  # cr3 = the root
    before += bytes.fromhex("b9 80 00 00 c0 0f 32 0d 00 01 00 00 0f 30")  # EFER |= LME
    before += bytes.fromhex("0f 20 c0 0d 00 00 00 80 0f 22 c0")  # cr0 |= PG
    # ljmp CODE64:after
    before += b"\xea" + struct.pack("<IH", start + len(before) + 7, _CODE64)
    after = b"\xb8" + struct.pack("<I", _DATA)  # mov eax, DATA
    after += bytes.fromhex("8e d8 8e c0 8e d0 8e e0 8e e8")  # mov ds, es, ss, fs, gs, eax
    after += b"\x48\xc7\xc4" + struct.pack("<I", _STACK)  # mov rsp, STACK
    # xor of eax, ebx, ecx, edx, esi, edi, ebp
    after += bytes.fromhex("31 c0 31 db 31 c9 31 d2 31 f6 31 ff 31 ed")
    after += bytes.fromhex("ff 25 00 00 00 00") + struct.pack("<Q", entry)  # jmp [rip]
    code = before + after
    return code.ljust(_GDT - _CODE - len(pointer), b"\0") + pointer


def _stores(memory: int) -> Iterator[tuple[int, int]]:
    """Indices of CMOS memory, and the bytes that shall be there."""
    extended = min((memory - _LOWEST) >> 10, _MOST)
    above = min(max(memory - (16 << 20), 0) >> 16, _MOST)
    for index, word in (*((one, extended) for one in _EXTENDED), (_ABOVE_16M, above)):
        yield index, word & 0xFF
        yield index + 1, word >> 8


def _tables(root: int) -> Iterator[bytes]:
    """The root; what it leads to at 0 and at its end; and 4 GiB in pages of 2 MiB."""
    low, high, gigabytes = root + _PAGE, root + 2 * _PAGE, root + 3 * _PAGE
    directories = [gigabytes + _PAGE * number for number in range(4)]
    yield _table({0: low, 511: high})
    yield _table(dict(enumerate(directories)))
    yield _table({510: directories[0], 511: directories[1]})
    for number in range(4):
        yield struct.pack("<512Q", *range(number * _GIB | _LARGE, (number + 1) * _GIB, _GIB >> 9))


def _table(entries: dict[int, int]) -> bytes:
    return struct.pack("<512Q", *(entries[number] | _PRESENT if number in entries else 0 for number in range(512)))
