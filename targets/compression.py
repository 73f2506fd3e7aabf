"""Compressed bytes -> what they were made from, by their magic; never more than a bound that the caller sets.

The one file that knows the libraries for zstd and lz4. Each is imported when it is needed.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import BinaryIO, Final

from kinst.targets.errors import ImageError

_LZ4_BLOCK: Final = 8 << 20  # bytes that a block of lz4's legacy format expands to at most
_LZ4_WORST: Final = _LZ4_BLOCK + _LZ4_BLOCK // 255 + 16  # and its size if it cannot be compressed
_Decompress = Callable[[bytes, int], bytes]


def compression_of(data: bytes) -> str | None:
    """The compression of some bytes, by the magic that they begin with; None: none that is known."""
    return next((name for magic, name, _ in _FORMATS if data.startswith(magic)), None)


def decompressed(data: bytes, most: int) -> bytes:
    """The content of compressed bytes; what is after their end does not matter.

    Raises:
        ImageError: they are damaged, end too early, or have more than `most` bytes of content.
    """
    for magic, name, decompress in _FORMATS:
        if data.startswith(magic):
            found = decompress(data, most + 1)
            if len(found) > most:
                raise ImageError(f"more than {most >> 20} MiB when it is decompressed ({name})")
            return found
    raise ImageError("compressed in a way that is not known")


def zstd(data: bytes, most: int, *, all_frames: bool = True) -> bytes:
    """At most `most` bytes of what zstd compressed. Raises ImageError: it is damaged."""
    import zstandard  # here, since it takes 20 ms and hardly any image needs it

    try:
        return zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=all_frames).read(most)
    except zstandard.ZstdError as error:
        raise ImageError(f"damaged: {error}") from None


def zstd_frame(data: memoryview) -> bytes:
    """Some bytes compressed, as one frame that says how many they are."""
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


def zstd_content(frame: memoryview, most: int) -> bytes:
    """What `zstd_frame` compressed, if it says that it is at most `most` bytes; nothing may follow.

    Raises:
        ValueError: it is damaged, or longer.
    """
    import zstandard

    try:
        size = zstandard.frame_content_size(frame)  # -1: it does not say
        if not 0 <= size <= most:
            raise ValueError(f"compressed bytes do not say that they are at most {most}")
        return zstandard.ZstdDecompressor().decompress(frame, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None


def _first_frame(data: bytes, most: int) -> bytes:
    """Of zstd. A kernel has its size after it."""
    return zstd(data, most, all_frames=False)


def _gzip(data: bytes, most: int) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        found = unpacker.decompress(data, most)
    except zlib.error as error:
        raise ImageError(f"damaged: {error}") from None
    if not unpacker.eof and len(found) < most:
        raise ImageError("damaged: it ends in the middle (gzip)")
    return found


def _bzip2(data: bytes, most: int) -> bytes:
    return _streamed(bz2.BZ2Decompressor(), data, most, "bzip2")


def _xz(data: bytes, most: int) -> bytes:
    return _streamed(lzma.LZMADecompressor(memlimit=1 << 28), data, most, "xz")


def _streamed(unpacker: lzma.LZMADecompressor | bz2.BZ2Decompressor, data: bytes, most: int, name: str) -> bytes:
    try:
        found = unpacker.decompress(data, most)
    except (lzma.LZMAError, OSError, ValueError) as error:
        raise ImageError(f"damaged: {error}") from None
    if not unpacker.eof and len(found) < most:
        raise ImageError(f"damaged: it ends in the middle ({name})")
    return found


def _lz4(data: bytes, most: int) -> bytes:
    """lz4's legacy format, which kernels use: a magic, then blocks of at most 8 MiB, each preceded by its compressed
    size. Its end is not marked: what follows is no block."""
    import lz4.block

    parts, at, left = [], 4, most
    while left > 0 and at + 4 <= len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        if not 0 < size <= _LZ4_WORST or at + 4 + size > len(data):
            break
        try:
            parts.append(lz4.block.decompress(data[at + 4 : at + 4 + size], uncompressed_size=_LZ4_BLOCK))
        except lz4.block.LZ4BlockError as error:
            raise ImageError(f"damaged: {error}") from None
        left -= len(parts[-1])
        at += 4 + size
    return b"".join(parts)


_FORMATS: Final[tuple[tuple[bytes, str, _Decompress], ...]] = (
    (b"\x1f\x8b\x08", "gzip", _gzip),
    (b"\xfd7zXZ\0", "xz", _xz),
    (b"\x28\xb5\x2f\xfd", "zstd", _first_frame),
    (b"\x02\x21\x4c\x18", "lz4", _lz4),
    (b"BZh", "bzip2", _bzip2),
    (b"\x5d\x00\x00", "lzma", _xz),
)


def zstd_writer(file: BinaryIO) -> AbstractContextManager[BinaryIO]:
    """What compresses all that is written to it into one frame of a file, which stays open. At level 1, with two
    threads: memory of a kernel is written as fast as a disk takes it, and higher levels make it hardly smaller."""
    import zstandard

    return zstandard.ZstdCompressor(level=1, threads=2).stream_writer(file, closefd=False)


def zstd_reader(file: BinaryIO) -> Callable[[int], bytes]:
    """What gives the next bytes of the frame that a file is at, fewer only at its end. Raises ValueError: it is
    damaged."""
    import zstandard

    stream = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file, closefd=False)

    def read(size: int) -> bytes:
        try:
            return stream.read(size)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from None

    return read
