"""An ELF file -> its DWARF sections, each decompressed and relocated when it is needed."""

import struct
import zlib
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.compression import zstd
from kinst.targets.debuginfo.dwarf.relocations import relocate
from kinst.targets.elf.file import ElfLike
from kinst.targets.elf.header import SHT_NOBITS, FileKind
from kinst.targets.elf.sections import Section, content
from kinst.targets.elf.symbols import Symbols
from kinst.targets.errors import ImageError

_COMPRESSED: Final = 0x800  # SHF_COMPRESSED
_CHDR: Final = struct.Struct("<IIQQ")  # Elf64_Chdr: type, reserved, size, alignment
_LARGEST: Final = 1 << 32  # a larger size in a header is not trusted


class DebugSections:
    """Where the debug information of an image comes from: the image itself, or a separate file."""

    def __init__(self, elf: ElfLike) -> None:
        """Nothing is read yet."""
        self._elf = elf
        self._read: dict[str, memoryview] = {}

    @property
    def path(self) -> Path:
        """The file that has the sections."""
        return self._elf.path

    @property
    def symbols(self) -> Symbols:
        """The symbols of that file; an image that was stripped has none itself."""
        return self._elf.symbols

    @property
    def has_dwarf(self) -> bool:
        """Whether there is anything to search."""
        return self._find("info") is not None and self._find("abbrev") is not None

    def check(self) -> None:
        """Refuse debug information that has its other half in a supplementary file.

        Raises:
            ImageError: the file was made by dwz.
        """
        if any(section.name == ".gnu_debugaltlink" for section in self._elf.sections):
            raise ImageError(
                f"{self.path}: its debug information refers to a supplementary file (dwz, .gnu_debugaltlink), which is "
                "not supported: use the debug information before dwz -m"
            )

    def get(self, name: str) -> memoryview:
        """The bytes of `.debug_<name>`; empty if there is no such section.

        Raises:
            ImageError: it is damaged, or compressed in an unknown way.
        """
        found = self._read.get(name)
        if found is None:
            found = self._read[name] = self._content(name).data
        return found

    def _content(self, name: str) -> NDArray[np.uint8]:
        section = self._find(name)
        if section is None:
            return np.zeros(0, np.uint8)
        data = content(self._elf.data, section)
        try:
            if section.flags & _COMPRESSED:
                data = _decompressed(data.tobytes())
            elif section.name.startswith(".zdebug_"):
                data = _decompressed_gnu(data.tobytes())
            if self._elf.header.kind is FileKind.REL:
                data = relocate(data, section, self._elf)
        except ImageError as error:
            raise ImageError(f"{self.path}: {section.name}: {error}") from None
        return data

    def _find(self, name: str) -> Section | None:
        wanted = (f".debug_{name}", f".zdebug_{name}")
        return next((one for one in self._elf.sections if one.name in wanted and one.kind != SHT_NOBITS), None)


def _decompressed(data: bytes) -> NDArray[np.uint8]:
    """ELF's own way: a header says how."""
    if len(data) < _CHDR.size:
        raise ImageError("damaged: too short to be compressed")
    kind, _, size, _ = _CHDR.unpack_from(data)
    match kind:
        case 1:  # ELFCOMPRESS_ZLIB
            return _inflated(data[_CHDR.size :], size)
        case 2:  # ELFCOMPRESS_ZSTD
            return _zstd(data[_CHDR.size :], size)
        case _:
            raise ImageError(f"compressed in a way that is not known (ch_type {kind}); known are zlib and zstd")


def _decompressed_gnu(data: bytes) -> NDArray[np.uint8]:
    """GNU's older way: the section is called .zdebug_*; "ZLIB", the size in big-endian order, the data."""
    if data[:4] != b"ZLIB":
        raise ImageError("damaged: no ZLIB header")
    return _inflated(data[12:], int.from_bytes(data[4:12], "big"))


def _inflated(data: bytes, size: int) -> NDArray[np.uint8]:
    _check_size(size)
    try:
        found = zlib.decompressobj().decompress(data, size + 1)
    except zlib.error as error:
        raise ImageError(f"damaged: {error}") from None
    return _checked(found, size)


def _zstd(data: bytes, size: int) -> NDArray[np.uint8]:
    _check_size(size)
    return _checked(zstd(data, size + 1), size)


def _check_size(size: int) -> None:
    if size > _LARGEST:
        raise ImageError(f"damaged: {size} bytes when decompressed")


def _checked(data: bytes, size: int) -> NDArray[np.uint8]:
    if len(data) != size:
        raise ImageError(f"damaged: it should have {size} bytes when decompressed and has {len(data)}")
    return np.frombuffer(data, np.uint8)
