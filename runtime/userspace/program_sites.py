"""Function and name of a description -> the instructions of a program or library at which its probes fire.

They are decided as for an image: entry and returns as FBT has them, instructions as kinst has them; what is data is no
site.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final

from kinst.rewriter.naming.resolve import Outcome, Resolution, resolve
from kinst.rewriter.rewriting import Opened, Source, open_source
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.c_types import ImageTypes
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.debuginfo.image_types import image_types
from kinst.targets.elf.file import open_elf
from kinst.targets.errors import ImageError
from kinst.targets.image import Image, open_to_run
from kinst.targets.instruction import Flow, Verdict
from kinst.targets.manifest.packed import ProbeKind
from kinst.targets.probe import ProbeName, is_glob, is_offset
from kinst.targets.values import dataclass

ENTRY, RETURN = "entry", "return"
_KINDS: Final = {ENTRY: ProbeKind.FBT_ENTRY, RETURN: ProbeKind.FBT_RETURN}


@dataclass(frozen=True, slots=True)
class ProgramSite:
    """An instruction at which a probe fires. `start` and `size` are those of its function; `kind` is the machine's
    own."""

    address: int  # link addresses
    start: int
    size: int
    offset: int  # in the file
    code: bytes
    flow: Flow
    kind: int
    is_emulated: bool
    distances: tuple[int, ...] = ()  # no semaphores


class ProgramSites:
    """One program or library, which is analysed when it is asked for the first time."""

    def __init__(self, path: Path, name: str, arch: ArchFacts, names: Path | None = None) -> None:
        """`name` is what messages call it, `names` a file of the same build with more symbols and types. Raises
        ImageError: the file is no ELF file for this machine."""
        self._path, self._name, self._names = path, name, names
        self.image: Image = open_to_run(path, module=name)
        if self.image.facts is not arch:
            raise ImageError(f"{name}: is for {self.image.facts.name}, and the guest is {arch.name}")

    @cached_property
    def types(self) -> ImageTypes:
        """Its types, from its debug information."""
        return image_types(self.image, debug_file=self._debug_file)

    @cached_property
    def _opened(self) -> Opened:
        debug_file = self._debug_file
        symbols = self._names if debug_file is None else None
        return open_source(Source(self._path, self._name, symbols, debug_file), read=open_to_run)

    @cached_property
    def _debug_file(self) -> Path | None:
        """The file with more names, if it has DWARF as well."""
        has_dwarf = self._names is not None and DebugSections(open_elf(self._names)).has_dwarf
        return self._names if has_dwarf else None

    def find(self, function: str, name: str) -> Iterator[tuple[str, str, list[ProgramSite]]]:
        """The probes that two fields mean: function, name, and where each fires. Raises KinstError."""
        for kind in _KINDS:
            if ProbeName("", "", "", name).matches_name(kind) and not _is_address(function):
                yield from self._of_kind(function, kind)
        if is_offset(name) or (_is_address(function) and not name):
            yield from self._instructions(function, name)

    def _of_kind(self, function: str, name: str) -> Iterator[tuple[str, str, list[ProgramSite]]]:
        found, outcome = self._resolved(ProbeName("fbt", "", function, name))
        grouped: dict[str, list[ProgramSite]] = {}
        for row, number, kind in _choices(outcome):
            if kind == _KINDS[name]:
                grouped.setdefault(found.names.text_of(number), []).append(self._site(found, row))
        yield from ((text, name, sites) for text, sites in grouped.items())

    def _instructions(self, function: str, name: str) -> Iterator[tuple[str, str, list[ProgramSite]]]:
        found, outcome = self._resolved(ProbeName("kinst", "", function, name))
        for row, number, _ in _choices(outcome):
            site = self._site(found, row)
            if self._is_repeated(site):
                continue  # the engine begins it anew for each element
            if not _is_address(function):
                yield found.names.text_of(number), str(site.address - site.start), [site]
            elif site.address == int(function, 16):
                yield function, name, [site]

    def _resolved(self, name: ProbeName) -> tuple[Resolution, Outcome]:
        found = resolve(self._opened.program, [name], include_excluded=True)
        return found, found.outcomes[0]

    def why(self, function: str, name: str) -> str:
        """Why two fields that are no patterns mean nothing; empty if it is not known."""
        if is_glob(function) or is_glob(name) or not function:
            return ""
        kind = "kinst" if is_offset(name) or _is_address(function) else "fbt"
        asked = ProbeName(kind, "", function, name)
        found, outcome = self._resolved(asked)
        if outcome.error is not None:
            return str(outcome.error).removeprefix(f"{asked}: ")
        sites = [self._site(found, row) for row, _, _ in _choices(outcome)]
        return (
            "a repeated string instruction, which is begun anew for each element"
            if any(map(self._is_repeated, sites))
            else ""
        )

    def _is_repeated(self, site: ProgramSite) -> bool:
        repeated = self.image.facts.repeated
        return repeated is not None and re.match(repeated, site.code) is not None

    def _site(self, found: Resolution, row: int) -> ProgramSite:
        code = found.code.instructions
        address, size, owner = int(code.address[row]), int(code.size[row]), int(code.function[row])
        functions = found.program.functions
        return ProgramSite(
            address,
            int(functions.address[owner]),
            int(functions.size[owner]),
            self.image.offset_of(address) or 0,
            self.image.read(address, size),
            Flow(int(code.flow[row])),
            int(code.kind[row]),
            int(code.verdict[row]) == Verdict.EMULATE,
        )


def _choices(outcome: Outcome) -> Iterator[tuple[int, int, int]]:
    """The rows of instructions, numbers of names, and kinds that were chosen; none where there is an error."""
    if outcome.error is None:
        choice = outcome.choice
        yield from zip(choice.instructions.tolist(), choice.names.tolist(), choice.kinds.tolist(), strict=True)


def _is_address(function: str) -> bool:
    return function[:2] in ("0x", "0X") and is_offset(function)
