"""A kernel -> what boot loaders are given: bzImage, EFI zboot, Image's header; and the tables of kallsyms."""

import lzma
import struct
import zlib
from collections.abc import Sequence
from typing import Literal

import lz4.block
import zstandard

COMPRESSIONS = ("gzip", "xz", "zstd", "lz4", "lzma")
Layout = Literal["6.1", "6.12", "7.0"]


def compressed(data: bytes, how: str) -> bytes:
    match how:
        case "gzip":
            packer = zlib.compressobj(wbits=31)
            return packer.compress(data) + packer.flush()
        case "xz":
            return lzma.compress(data)
        case "lzma":
            return lzma.compress(data, lzma.FORMAT_ALONE)
        case "zstd":
            return zstandard.ZstdCompressor().compress(data)
        case _:
            assert how == "lz4"
            blocks = (data[at : at + (8 << 20)] for at in range(0, len(data), 8 << 20))
            packed = [lz4.block.compress(block, store_size=False) for block in blocks]
            return b"\x02\x21\x4c\x18" + b"".join(len(block).to_bytes(4, "little") + block for block in packed)


def bzimage(payload: bytes, *, version: int = 0x20F, sectors: int = 3) -> bytes:
    """Behind the payload, as in a kernel, are the size of its content and more code."""
    head, before = bytearray((sectors + 1) * 512), 0x180
    head[0x1F1] = sectors
    struct.pack_into("<H4sH", head, 0x1FE, 0xAA55, b"\xeb\x6aHd", 0)
    struct.pack_into("<4sH", head, 0x202, b"HdrS", version)
    struct.pack_into("<II", head, 0x248, before, len(payload) + 4 if payload else 0)
    return bytes(head) + bytes(before) + payload + b"\x12\x34\x56\0" + bytes(100)


def zboot(payload: bytes, how: str) -> bytes:
    head = struct.pack("<4s4sII8x32s8x", b"MZ\0\0", b"zimg", 0x200, len(payload), how.encode())
    return head.ljust(0x200, b"\0") + payload + bytes(64)


def boot_header(magic: bytes, size: int, text_offset: int = 0) -> bytes:
    """The first 64 bytes of an Image for arm64 or riscv64."""
    return struct.pack("<8xQQQ24x4s4x", text_offset, size, 0, magic)


def kallsyms(symbols: Sequence[tuple[int, str, str]], at: int, layout: Layout, *, per_cpu: int = 0) -> bytes:
    """The tables for (address, letter, name), by address, at the address `at`. The first `per_cpu` are absolute."""
    tokens = [bytes([number]) if 32 < number < 127 else b"." * (number % 7 + 2) for number in range(256)]
    tokens[1], tokens[255] = b"vfs_", b"_entry"
    wide = 4 if layout == "7.0" else 8

    def padded(content: bytes) -> bytes:
        return content + bytes(-len(content) % wide)

    names, marks = b"", []
    for number, (_, letter, name) in enumerate(symbols):
        if number % 256 == 0:
            marks.append(len(names))
        spelled = (letter + name).encode().replace(b"vfs_", b"\1").replace(b"_entry", b"\xff")
        length = len(spelled)
        names += bytes([length] if length < 128 else [length & 0x7F | 0x80, length >> 7]) + spelled
    table = b"".join(token + b"\0" for token in tokens)
    starts = [sum(len(token) + 1 for token in tokens[:number]) for number in range(256)]
    index = b"".join(start.to_bytes(2, "little") for start in starts)
    head = padded(len(symbols).to_bytes(4, "little")) + padded(names)
    head += padded(b"".join(mark.to_bytes(4, "little") for mark in marks))
    tail = padded(table) + index
    base = symbols[per_cpu][0]
    sequence = padded(bytes(3 * len(symbols)))
    if layout == "7.0":
        places = [address - (at + len(head + tail) + 4 * number) for number, (address, _, _) in enumerate(symbols)]
        return head + tail + padded(struct.pack(f"<{len(places)}i", *places)) + sequence
    if per_cpu:
        places = [address if number < per_cpu else base - 1 - address for number, (address, _, _) in enumerate(symbols)]
    else:
        places = [address - base for address, _, _ in symbols]
    offsets = padded(struct.pack(f"<{len(places)}i", *places)) + base.to_bytes(8, "little")
    return head + tail + offsets + sequence if layout == "6.12" else offsets + head + sequence + tail
