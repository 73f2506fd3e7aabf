"""An address of user mode -> the program whose code is there, with its names and unwind rules.

The guest's system is not asked which file is mapped where: the page of code in memory is compared with those of the
files that the user named, with --user or as the module of a probe. So a program is found wherever and in whatever
process it was loaded, and never mistaken for another.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from kinst.rewriter.program import with_names
from kinst.rewriter.rewriting import Opened, Source, open_source
from kinst.runtime.clauses.environment import CALLER, Memory, Stack, SymbolName
from kinst.runtime.clauses.guest.symbols import ImageSymbols
from kinst.runtime.trap.faults import Fault
from kinst.runtime.unwinding.arch.registry import stack_effects
from kinst.runtime.unwinding.unwind import Unwinder
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.elf.header import PF_X, PT_LOAD
from kinst.targets.errors import ImageError
from kinst.targets.image import Image, open_debug_symbols, open_to_run
from kinst.targets.values import dataclass

_PAGE: Final = 4096


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A file of a program or library."""

    path: Path
    name: str = ""  # of the module; empty: as the file's
    names: Path | None = None  # a file of the same build with more symbols


class UserProgram:
    """A program or library of the guest's user mode. Addresses are link addresses."""

    def __init__(self, file: ProgramFile, arch: ArchFacts) -> None:
        """Only the headers are read.

        Raises:
            ImageError: the file is no ELF file for this machine.
        """
        self._file, self._arch = file, arch
        self.image: Image = open_to_run(file.path, module=file.name or None)
        if self.image.facts is not arch:
            raise ImageError(f"{file.name or file.path}: is for {self.image.facts.name}, and the guest is {arch.name}")

    @cached_property
    def unwinder(self) -> Unwinder:
        """The unwind rules of its functions."""
        return Unwinder(self._arch, stack_effects(self._arch), lambda: self._opened.program)

    @cached_property
    def symbols(self) -> ImageSymbols:
        """Its names."""
        names = self._file.names
        return ImageSymbols(
            self.image if names is None else with_names(self.image, open_debug_symbols(names, self.image)),
            lambda: self._opened.program.functions,
            follows_call=lambda link: self.unwinder.follows_call(link),
        )

    @cached_property
    def _opened(self) -> Opened:
        return open_source(Source(self._file.path, self._file.name or None, self._file.names), read=open_to_run)


class UserPrograms:
    """The files that the user named; implements `kinst.runtime.clauses.environment.UserSymbols`."""

    def __init__(
        self,
        files: Sequence[ProgramFile],
        arch: ArchFacts,
        memory: Memory,
        more: Callable[[], Iterable[ProgramFile]] = tuple,
    ) -> None:
        """`memory` is the guest's; `more` is asked for further files when the first address is looked up. Raises
        ImageError."""
        self._files, self._arch, self._more = files, arch, more
        self._programs = [UserProgram(file, arch) for file in files]
        self._read = memory.read

    def find(self, address: int) -> tuple[UserProgram, int] | None:
        """The program at an address of the current address space, and the link address there. None if no program has
        such a page, the page is not in memory, or several places have equal ones."""
        page = address & -_PAGE
        try:
            places = self._pages.get(self._read(page, _PAGE), ())
        except Fault:
            return None
        if len(places) > 1:
            places = [place for place in places if place[1] == page]  # a program that was not moved
        return (places[0][0], places[0][1] + address - page) if len(places) == 1 else None

    def stack(self, addresses: tuple[int, ...], frames: int, process: int) -> Stack:
        """See `UserSymbols`."""
        kinds = ["ustack", *[CALLER] * len(addresses)]
        found = [self.symbol(address, kind, process) for address, kind in zip(addresses, kinds, strict=False)]
        links, names = tuple(one.address for one in found), tuple(one.name for one in found)
        return Stack(links, frames, True, max((one.process for one in found), default=process), names)  # noqa: FBT003

    def symbol(self, address: int, kind: str, process: int) -> SymbolName:
        """See `UserSymbols`."""
        found = self.find(address)
        if found is None:
            return SymbolName(kind, address, process, f"{address:#x}")
        program, link = found
        start = link if kind in ("ustack", CALLER) else program.symbols.object_start(link, kind)
        return SymbolName(kind, start, 0, program.symbols.describe(link, kind))

    @cached_property
    def _pages(self) -> dict[bytes, list[tuple[UserProgram, int]]]:
        """The content of each page of code -> where it is. Systems map whole pages of a file, beyond the bounds of a
        segment."""
        found: dict[bytes, list[tuple[UserProgram, int]]] = {}
        known = {file.path for file in self._files}
        more = {file.path: file for file in self._more() if file.path not in known}
        for program in (*self._programs, *(UserProgram(file, self._arch) for file in more.values())):
            data = program.image.data
            for segment in program.image.segments:
                if segment.kind != PT_LOAD or not segment.flags & PF_X:
                    continue
                first, moved = segment.offset & -_PAGE, segment.address - segment.offset
                for offset in range(first, segment.offset + segment.file_size, _PAGE):
                    page = data[offset : offset + _PAGE].tobytes().ljust(_PAGE, b"\0")
                    found.setdefault(page, []).append((program, offset + moved))
        return found
