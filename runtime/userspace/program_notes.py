"""Provider and name of a static probe -> the nops in a program or library at which it fires, from the file's own notes.

A note has its name as it is written in C. There and in what people type `__` may stand for a dash, as in DTrace; a
probe is called what was asked for, and with dashes where that is a pattern without `__`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from kinst.targets.arch.facts import ArchFacts
from kinst.targets.elf.symbols import no_symbols
from kinst.targets.errors import ImageError
from kinst.targets.image import Image, open_debug_symbols, open_to_run
from kinst.targets.probe import matcher
from kinst.targets.static_probes import StaticNote, operand_type, static_notes
from kinst.targets.values import dataclass

_LINE: Final = 16  # bytes that a nop is looked for in: no instruction has more


@dataclass(frozen=True, slots=True)
class NotedSite:
    """A nop that a note tells of. Addresses are link addresses."""

    address: int
    offset: int  # in the file
    code: bytes  # what the nop begins with
    operands: tuple[str, ...]
    semaphore: int  # 0: none

    @property
    def distances(self) -> tuple[int, ...]:
        """How far behind the nop its semaphore is."""
        return (self.semaphore - self.address,) if self.semaphore else ()

    @property
    def types(self) -> tuple[str, ...]:
        """C types of the arguments: only their sizes and signs are known."""
        return tuple(map(operand_type, self.operands))


class ProgramNotes:
    """The static probes of one program or library."""

    def __init__(self, path: Path, name: str, arch: ArchFacts, names: Path | None = None) -> None:
        """`name` is what messages call it, `names` a file of the same build with more symbols. Raises ImageError: the
        file is no ELF file for this machine, or the other one is of another build."""
        self._name, self._arch = name, arch
        self.image: Image = open_to_run(path, module=name)
        if self.image.facts is not arch:
            raise ImageError(f"{name}: is for {self.image.facts.name}, and the guest is {arch.name}")
        self._notes = static_notes(self.image)
        self._more = no_symbols() if names is None else open_debug_symbols(names, self.image)

    def find(self, provider: str, name: str) -> Iterator[tuple[str, str, tuple[NotedSite, ...]]]:
        """The probes that two fields mean, patterns or not: provider, name, and where each fires."""
        found: dict[tuple[str, str], list[NotedSite]] = {}
        for note in self._named(provider, name):
            site = self._site(note)
            if site is not None:
                found.setdefault((note.provider, note.name), []).append(site)
        for (own, dashed), sites in found.items():
            yield own, dashed.replace("-", "__") if "__" in name else dashed, tuple(sites)

    def why(self, provider: str, name: str) -> str:
        """Why two fields mean nothing."""
        if not self._notes:
            return "it has no static probes (.note.stapsdt)"
        if any(self._named(provider, name)):
            return "no nop is where its note says that the probe is: the note is not of this build"
        return f"it has no such static probe: usdt:{self._name}:: has the others"

    def symbol(self, name: str) -> int | None:
        """The link address of a symbol, which operands may name; None if it has no such symbol."""
        own = self.image.symbols.address_of(name)
        return self._more.address_of(name) if own is None else own

    def _named(self, provider: str, name: str) -> Iterator[StaticNote]:
        is_own, is_named = matcher(provider), matcher(name.replace("__", "-"))
        return (note for note in self._notes if is_own(note.provider) and is_named(note.name))

    def _site(self, note: StaticNote) -> NotedSite | None:
        place, offset = note.place, self.image.offset_of(note.place.address)
        if offset is None:
            return None
        line = bytes(self.image.data[offset : offset + _LINE])
        nop = next((code for code in self._arch.nops if line.startswith(code)), None)
        if nop is None or not self.image.is_code(np.array([place.address], np.uint64))[0]:
            return None
        return NotedSite(place.address, offset, nop, place.operands, note.semaphore)
