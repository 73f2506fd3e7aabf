"""Probes that were enabled, and how often each fired -> the functions of a report: which were hit, and where."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from kinst.runtime.consumer.report.collected import MOST_ROWS
from kinst.runtime.providers.provider import Probe
from kinst.targets.values import dataclass

_PROBES = 4 * MOST_ROWS  # that are listed one by one


@dataclass(frozen=True, slots=True)
class Coverage:
    """`functions` are rows: module, function, the number of its probes and of those that fired, hits, and for each
    probe its name, its hits and its instruction (kinst) or an empty text. Those with the most hits come first, and
    `left_out` is how many are missing."""

    probed: int  # functions
    hit: int
    hits: int
    functions: list[list[Any]]
    left_out: int


@dataclass(slots=True)
class _Function:
    probes: list[tuple[Probe, int]] = field(default_factory=list)

    @property
    def hits(self) -> int:
        return sum(hits for _, hits in self.probes)


def coverage(probes: Iterable[Probe], hits: Mapping[int, int], instructions: Mapping[int, str]) -> Coverage:
    """The coverage of all functions that have a probe among `probes`. `hits` and `instructions` are by identifier."""
    found: dict[tuple[str, str], _Function] = {}
    for probe in probes:
        if probe.function:
            one = found.setdefault((probe.module, probe.function), _Function())
            one.probes.append((probe, hits.get(probe.identifier, 0)))
    order = sorted(found.items(), key=lambda item: (-item[1].hits, item[0]))
    rows, listed = [], 0
    for (module, name), function in order[:MOST_ROWS]:
        listed += len(function.probes)
        shown = sorted(map(_place, function.probes)) if listed <= _PROBES else []
        parts = [[probe_name, count, instructions.get(number, "")] for *_, probe_name, count, number in shown]
        fired = sum(count > 0 for _, count in function.probes)
        rows.append([module, name, len(function.probes), fired, function.hits, parts])
    is_hit = sum(function.hits > 0 for _, function in order)
    total = sum(function.hits for _, function in order)
    return Coverage(len(order), is_hit, total, rows, max(0, len(order) - MOST_ROWS))


def _place(found: tuple[Probe, int]) -> tuple[int, str, str, int, int]:
    """Instructions in the order of their addresses, after the rest."""
    probe, count = found
    offset = int(probe.name) if probe.name.isascii() and probe.name.isdigit() else -1
    name = f"+{probe.name}" if offset >= 0 else probe.name
    return offset, probe.provider, name, count, probe.identifier
