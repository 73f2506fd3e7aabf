"""A file offset of a patched image -> what is there, in words: a function, a header, a trampoline."""

import numpy as np

from kinst.rewriter.planning.layout import Layout
from kinst.targets.elf.header import ELF_HEADER, PROGRAM_HEADER, SECTION_HEADER
from kinst.targets.image import Image
from kinst.targets.manifest.packed import Manifest
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Places:
    """Names for the places of a pair of files. `manifest` and `layout` are None if the patched file has no manifest."""

    original: Image
    patched: Image
    manifest: Manifest | None
    layout: Layout | None

    def of(self, offset: int) -> str:
        """What the byte at a file offset belongs to."""
        header = self.original.header
        if offset < ELF_HEADER.size:
            return "ELF header"
        if 0 <= offset - header.phoff < header.phnum * PROGRAM_HEADER.itemsize:
            return f"program header {(offset - header.phoff) // PROGRAM_HEADER.itemsize}"
        if offset >= len(self.original.data):
            return self._appended(offset)
        if 0 <= offset - header.shoff < header.shnum * SECTION_HEADER.itemsize:
            return f"section header {(offset - header.shoff) // SECTION_HEADER.itemsize}"
        return self._code(offset) or self._section(offset)

    def site(self, row: int) -> str:
        """``function+offset`` of a site."""
        assert self.manifest is not None
        site = self.manifest.sites[row]
        function = int(site["function"])
        start = int(self.manifest.functions["address"][function])
        return f"{self.manifest.function_name(function)}+{int(site['address']) - start}"

    def _appended(self, offset: int) -> str:
        for piece in self.layout.appended if self.layout is not None else ():
            if 0 <= offset - piece.offset < piece.size:
                if piece.what == "trampolines":
                    return self._trampoline(offset - piece.offset)
                return piece.what
        return "between the appended parts" if self.layout is not None else "after the end of the original"

    def _trampoline(self, offset: int) -> str:
        assert self.manifest is not None
        address = self.manifest.trampolines[0] + offset
        row = int(np.searchsorted(self.manifest.sites["trampoline"], np.uint64(address), "right")) - 1
        is_standalone = self.manifest.standalone is not None
        size = address + 1 if is_standalone else self.original.facts.longest_trampoline
        if row >= 0 and address - int(self.manifest.sites["trampoline"][row]) < size:
            return f"trampoline of {self.site(row)}"
        return "unused trampoline"

    def _code(self, offset: int) -> str:
        """``function+offset`` if a patched function has this byte."""
        address = self._address(offset)
        if self.manifest is None or address is None:
            return ""
        functions = self.manifest.functions
        start, end = functions["address"], functions["address"] + functions["size"]
        rows = np.flatnonzero((start <= np.uint64(address)) & (np.uint64(address) < end))
        if not len(rows):
            return ""
        row = int(rows[0])
        return f"{self.manifest.function_name(row)}+{address - int(start[row])}"

    def _address(self, offset: int) -> int | None:
        for address, start, size in self.original.in_file:
            if 0 <= offset - start < size:
                return address + offset - start
        return None

    def _section(self, offset: int) -> str:
        for section in self.original.sections:
            if section.name and 0 <= offset - section.offset < section.size:
                address = f" ({section.address + offset - section.offset:#x})" if section.address else ""
                return f"{section.name}+{offset - section.offset:#x}{address}"
        return "between the sections"
