"""BTF sections written by the format's document: Documentation/bpf/btf.rst of Linux."""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from kinst.targets.c_types import Aggregate, CType, strip
from kinst.targets.debuginfo.btf import BtfTypes
from kinst.targets.elf.file import ElfLike
from kinst.targets.elf.sections import Section as ElfSection


class Section:
    """A .BTF section; each method adds a type and returns its number."""

    def __init__(self) -> None:
        self.strings = bytearray(b"\0")
        self.types = b""
        self._count = 0

    def name(self, text: str) -> int:
        if not text:
            return 0
        encoded = text.encode() + b"\0"
        at = self.strings.find(b"\0" + encoded)
        if at >= 0:
            return at + 1
        self.strings += encoded
        return len(self.strings) - len(encoded)

    def add(self, name: str, kind: int, value: int, *words: int, length: int = 0, flag: int = 0) -> int:
        self.types += struct.pack("<III", self.name(name), flag << 31 | kind << 24 | length, value & 0xFFFFFFFF)
        self.types += b"".join(struct.pack("<I", word & 0xFFFFFFFF) for word in words)
        self._count += 1
        return self._count

    def integer(self, name: str, size: int, encoding: int = 0, *, bits: int | None = None, offset: int = 0) -> int:
        return self.add(name, 1, size, encoding << 24 | offset << 16 | (8 * size if bits is None else bits))

    def struct(self, name: str, size: int, *members: tuple[str, int, int], kind: int = 4, flag: int = 0) -> int:
        words = [word for text, number, offset in members for word in (self.name(text), number, offset)]
        return self.add(name, kind, size, *words, length=len(members), flag=flag)

    def prototype(self, result: int, *parameters: tuple[str, int]) -> int:
        words = [word for text, number in parameters for word in (self.name(text), number)]
        return self.add("", 13, result, *words, length=len(parameters))

    @property
    def data(self) -> bytes:
        head = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(self.types), len(self.types), len(self.strings))
        return head + self.types + bytes(self.strings)

    def decoded(self) -> BtfTypes:
        return BtfTypes(self.data, "kernel")


class Split(Section):
    """A module's section: numbers and strings go on where those of `base` end."""

    def __init__(self, base: Section) -> None:
        super().__init__()
        self.strings = bytearray()
        self._base, self._count = base, base._count

    def name(self, text: str) -> int:
        encoded = text.encode() + b"\0"
        at = self._base.strings.find(b"\0" + encoded)
        if not text or at >= 0:
            return at + 1 if text else 0
        if not self.strings.startswith(encoded) and b"\0" + encoded not in self.strings:
            self.strings += encoded
        start = 0 if self.strings.startswith(encoded) else self.strings.index(b"\0" + encoded) + 1
        return len(self._base.strings) + start


def plain(name: str, kind: CType | None) -> Aggregate:
    assert kind is not None, name
    found = strip(kind)
    assert isinstance(found, Aggregate)
    return found


@dataclass(frozen=True)
class File:
    """An ELF file of these sections, as far as btf_types() looks."""

    data: NDArray[np.uint8]
    sections: tuple[ElfSection, ...]
    path: Path = Path("memory.elf")

    @classmethod
    def of(cls, **contents: bytes) -> "ElfLike":
        data, sections = b"", []
        for index, (name, content) in enumerate(contents.items()):
            sections.append(ElfSection(index, name.replace("_", "."), 1, 0, 0, len(data), len(content), 0, 0, 0, 1))
            data += content
        return cast("ElfLike", cls(np.frombuffer(data, np.uint8), tuple(sections)))
