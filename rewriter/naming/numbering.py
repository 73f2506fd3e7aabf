"""What an image has -> the identifiers of all probes that it can have, whichever are asked for.

An identifier means the same probe in every command, whatever else is enabled, so it depends on the image alone. 1 to 3
are dtrace's, and those below FIRST_PROBE_ID are timers (see `kinst.targets.manifest.packed`). Then come

    fbt      entry and return for each name of a function: their first names by address, then all others
    sdt      each static probe
    kinst    one for each byte of each name's function, since instructions are not decoded for this
    unnamed  entry and return, and then kinst's, for each byte of code: where only an address names a function
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.columns import is_in
from kinst.targets.elf.sections import CodeRegion
from kinst.targets.errors import ManifestError
from kinst.targets.functions.found import Functions
from kinst.targets.manifest.packed import NUMBER, Manifest
from kinst.targets.manifest.probe_ids import FIRST_PROBE_ID
from kinst.targets.probe import ProbeName
from kinst.targets.static_probes import StaticProbe
from kinst.targets.values import dataclass

_WAYS: Final = ("entry", "return")


@dataclass(frozen=True, slots=True)
class Numbering:
    """The blocks of identifiers: where each begins, and the functions and names that they count."""

    functions: Functions
    regions: Sequence[CodeRegion]
    static: Sequence[StaticProbe]
    static_rows: Mapping[tuple[str, str, str, str], int]  # by key
    pairs: Sequence[tuple[int, str]]  # row and name, of names that are not a function's first
    others: Mapping[tuple[int, str], int]  # one of them -> place among all names
    rows: NDArray[np.int64]  # of functions, by place
    kinst: NDArray[np.int64]  # first identifier, by place; after the last one the end

    @property
    def _static_first(self) -> int:
        return FIRST_PROBE_ID + 2 * len(self.rows)

    @property
    def _unnamed_first(self) -> int:
        return int(self.kinst[-1])

    @property
    def _code_size(self) -> int:
        return sum(region.size for region in self.regions)

    @property
    def end(self) -> int:
        """The first identifier after those of the image."""
        return self._unnamed_first + 3 * self._code_size

    def of_functions(self, addresses: NDArray[np.uint64], names: Iterable[str]) -> list[tuple[int, int]]:
        """The first identifiers of fbt's and kinst's probes of functions, each under one of its names."""
        rows = np.searchsorted(self.functions.address, addresses)
        rows[~is_in(addresses, self.functions.address)] = -1
        own, kinst = self.functions.names, self.kinst.tolist()
        return [
            (FIRST_PROBE_ID + 2 * row, kinst[row])
            if row >= 0 and own[row] == name
            else self._of_other_function(row, address, name)
            for row, address, name in zip(rows.tolist(), addresses.tolist(), names, strict=True)
        ]

    def _of_other_function(self, row: int, address: int, name: str) -> tuple[int, int]:
        place = self._place(row, name) if row >= 0 else None
        if place is not None:
            return FIRST_PROBE_ID + 2 * place, int(self.kinst[place])
        offset, first = self._offset_of(address), self._unnamed_first
        return first + 2 * offset, first + 2 * self._code_size + offset

    def _place(self, row: int, name: str) -> int | None:
        return row if self.functions.names[row] == name else self.others.get((row, name))

    def _offset_of(self, address: int) -> int:
        """The offset of an address if all code is laid end to end."""
        before = 0
        for region in self.regions:
            if 0 <= address - region.address < region.size:
                return before + address - region.address
            before += region.size
        return 0

    def of_static(self, probe: StaticProbe) -> int:
        """The identifier of a static probe. Raises ManifestError if the image does not have it."""
        row = self.static_rows.get(probe.key)
        if row is None:
            raise ManifestError(f"manifest: damaged: the image has no static probe {':'.join(probe.key)}")
        return self._static_first + row

    def name(self, identifier: int) -> ProbeName | None:
        """A name that matches the probe with an identifier, and perhaps others; None if there can be no such probe.
        Functions are given by address, since several may share a name and a name may contain characters of patterns."""
        if FIRST_PROBE_ID <= identifier < self._static_first:
            place, way = divmod(identifier - FIRST_PROBE_ID, 2)
            return ProbeName("fbt", "", self._function_at(place), _WAYS[way])
        if self._static_first <= identifier < int(self.kinst[0]):
            probe = self.static[identifier - self._static_first]
            return ProbeName(probe.provider, probe.module, probe.function, probe.name)
        if int(self.kinst[0]) <= identifier < self._unnamed_first:
            place = int(np.searchsorted(self.kinst, identifier, "right")) - 1
            return self._instruction(place, identifier - int(self.kinst[place]))
        return self._unnamed(identifier - self._unnamed_first) if self._unnamed_first <= identifier < self.end else None

    def _function_at(self, place: int) -> str:
        if place < len(self.functions):
            return f"{int(self.functions.address[place]):#x}"
        return self.pairs[place - len(self.functions)][1]

    def _instruction(self, place: int, offset: int) -> ProbeName:
        if place < len(self.functions):
            return ProbeName("kinst", "", f"{int(self.functions.address[place]) + offset:#x}", "")
        return ProbeName("kinst", "", self._function_at(place), str(offset))

    def _unnamed(self, number: int) -> ProbeName:
        of_fbt = 2 * self._code_size
        offset, way = divmod(number, 2) if number < of_fbt else (number - of_fbt, -1)
        for region in self.regions:
            if offset < region.size:
                break
            offset -= region.size
        address = f"{region.address + offset:#x}"
        return ProbeName("kinst", "", address, "") if way < 0 else ProbeName("fbt", "", address, _WAYS[way])


def numbering(functions: Functions, regions: Sequence[CodeRegion], static: Sequence[StaticProbe]) -> Numbering:
    """Number what an image has. `functions` are its own, without those that only a user's address names."""
    pairs = [(row, name) for row in sorted(functions.aliases) for name in functions.aliases[row]]
    others = {pair: len(functions) + index for index, pair in enumerate(pairs)}
    rows = np.concatenate([np.arange(len(functions)), np.array([row for row, _ in pairs], np.int64)])
    first = FIRST_PROBE_ID + 2 * len(rows) + len(static)
    sizes = functions.size[rows].astype(np.int64)
    kinst = first + np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    static_rows = {probe.key: row for row, probe in reversed(list(enumerate(static)))}  # the first of a key
    return Numbering(functions, regions, static, static_rows, pairs, others, rows, kinst)


def numbered(manifest: Manifest, numbers: Numbering) -> Manifest:
    """The manifest with the identifiers of its probes."""
    addresses = np.ascontiguousarray(manifest.functions["address"])
    pairs = numbers.of_functions(addresses, (manifest.function_name(row) for row in range(len(addresses))))
    static = tuple(numbers.of_static(probe) for probe in manifest.static)
    return replace(manifest, numbers=np.array(pairs, NUMBER), static_numbers=static, next_identifier=numbers.end)
