"""Expansions of `kinst::f:entry` and `kinst::f:return`, and the sites of a patched image -> what such a description in
a D program stands for: probes, the types of args[], and how its clause runs.

Probes in copies are kinst probes at offsets into callers, and other descriptions may name the same probes. So what a
hit of one means depends on the clause: a clause that named the copy sees the copy's arguments, and at a conditional
exit it runs only if control leaves the copy. A clause is compiled once, however many copies there are.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.naming.inline_probes import Expansion, InlineSite, fbt_kind
from kinst.runtime.patched.sites import SiteTable
from kinst.runtime.providers.provider import Action
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.c_types import CType
from kinst.targets.columns import unique
from kinst.targets.debuginfo.inlined import Range
from kinst.targets.manifest.packed import ProbeKind
from kinst.targets.probe import ProbeName
from kinst.targets.values import dataclass

if TYPE_CHECKING:  # with all of DWARF's expressions, which programs that name no copies do without
    from kinst.runtime.tracing.inline_arguments import InlineArguments

Leaves = Callable[[Firing], bool]


@dataclass(frozen=True, slots=True)
class OwnCode:
    """A function with code of its own, under one of its names."""

    address: int
    name: str


class InlineClauses:
    """The names in one program's descriptions that mean inlined copies."""

    def __init__(
        self,
        expansions: Mapping[ProbeName, Expansion],
        own: Mapping[ProbeName, tuple[OwnCode, ...]],
        sites: SiteTable | None,
        arguments: "InlineArguments",
    ) -> None:
        """`own` are the functions that fbt probes, by such a name. If there are no sites, nothing was patched."""
        self._expansions = {} if sites is None else expansions
        self._own = own
        self._sites = sites
        self._arguments = arguments

    def __contains__(self, name: ProbeName) -> bool:
        """Whether the name means inlined copies."""
        return name in self._expansions

    def probes(self, name: ProbeName) -> NDArray[np.intp]:
        """The identifiers of a name's probes, ascending."""
        rows = [*self._copies(name), *self._own_rows(name)]
        return unique(self._identifiers[np.array(rows, np.intp)]).astype(np.intp)

    def concrete(self, name: ProbeName) -> list[str]:
        """The probes by name: copies in the order of the debug information, then fbt's, as dtrace -d shows them."""
        manifest = self._patched.manifest
        rows = [*self._copies(name), *self._own_rows(name)]
        return [manifest.probe_name(row) for row in rows]

    def types(
        self,
        name: ProbeName,
        of_probe: Callable[[int], tuple[CType, ...] | None],
        are_equal: Callable[[CType, CType], bool],
    ) -> tuple[tuple[CType, ...] | None, bool]:
        """The types of args[], and whether the probes differ in them. `of_probe` gives those of fbt's probes."""
        from kinst.runtime.tracing.inline_arguments import parameter_types

        own = [of_probe(int(self._identifiers[row])) for row in self._own_rows(name)]
        sites = list(self._copies(name).values())
        kinds = parameter_types(sites, are_equal)
        if not sites:
            return (own[0], False) if own and all(one == own[0] for one in own) else (None, bool(own))
        if kinds is None:
            return None, True
        for other in own:
            if other is None or len(other) != len(kinds) or not all(map(are_equal, other, kinds)):
                return None, True
        return kinds, False

    def obstacle(self, name: ProbeName) -> str:
        """Why the copies' arguments are not known; empty if they are."""
        from kinst.runtime.tracing.inline_arguments import NOT_KEPT

        sites = self._expansions[name].sites
        return "" if all(site.knows_arguments for site in sites) else NOT_KEPT

    @cached_property
    def argument_types(self) -> Mapping[int, tuple[CType, ...]]:
        """The types of args[] of all probes in copies, by identifier."""
        from kinst.runtime.tracing.inline_arguments import known_types

        return {
            int(self._identifiers[row]): known_types(site.copies[0].parameters)
            for name in self._expansions
            for row, site in self._copies(name).items()
        }

    def wrapped(self, name: ProbeName, run: Action) -> Action:
        """The action of a clause that runs where copies are entered or left, with their arguments; at fbt's probes it
        runs unchanged."""
        if name not in self._expansions:
            return run
        arguments = self._arguments
        sites = {int(self._identifiers[row]): site for row, site in self._copies(name).items()}
        known: dict[int, tuple[Enabling, Leaves | None]] = {}

        def run_in_copy(firing: Firing) -> None:
            outer = firing.enabling
            identifier = outer.probe
            site = sites.get(identifier)
            if site is None:
                run(firing)
                return
            found = known.get(identifier)
            if found is None:
                # `leaving` is the range of the caller. What counts here is whether control leaves the copy.
                inner = replace(outer, argument=arguments.at(site), leaving=None)
                found = known[identifier] = inner, self._leaves(site)
            enabling, leaves = found
            if leaves is not None and not leaves(firing):
                return
            firing.fire_instead(enabling, run)

        return run_in_copy

    # -- rows of the manifest -----------------------------------------------------------------------------------------

    @property
    def _patched(self) -> SiteTable:
        assert self._sites is not None, "nothing is expanded without sites"
        return self._sites

    @property
    def _identifiers(self) -> NDArray[np.int64]:
        return self._patched.identifiers

    def _copies(self, name: ProbeName) -> dict[int, InlineSite]:
        """The rows of the probes in copies, in the order of the debug information. Sites that were refused, or got no
        trampoline, have no row."""
        manifest = self._patched.manifest
        rows = np.flatnonzero(manifest.probes["kind"] == ProbeKind.KINST)
        start = manifest.functions["address"][manifest.probes["function"][rows]]
        address = start + manifest.probes["offset"][rows]
        row_of = dict(zip(address.tolist(), rows.tolist(), strict=True))
        found = ((row_of.get(site.address), site) for site in self._expansions[name].sites)
        return {row: site for row, site in found if row is not None}

    def _own_rows(self, name: ProbeName) -> Iterator[int]:
        manifest = self._patched.manifest
        kind = fbt_kind(self._expansions[name].name)
        wanted = {(one.address, one.name) for one in self._own.get(name, ())}
        for row in np.flatnonzero(manifest.probes["kind"] == kind).tolist() if wanted else ():
            function = int(manifest.probes["function"][row])
            if (int(manifest.functions["address"][function]), manifest.function_name(function)) in wanted:
                yield row

    # -- ways out -----------------------------------------------------------------------------------------------------

    def _leaves(self, site: InlineSite) -> Leaves | None:
        """A test for whether control leaves a copy at a site; None if it always does. The probe fires before the
        instruction, so that its target is computed from the trap frame."""
        row = self._patched.row_at(site.address)
        if not site.staying or row is None:
            return None
        emulation, pc = self._patched.site(row).emulation, self._patched.arch.pc
        assert emulation is not None, "others were refused"
        staying: tuple[Range, ...] = site.staying

        def leaves(firing: Firing) -> bool:
            moved = firing.site - site.address  # the image may have copied itself elsewhere
            target = emulation.foreseen(firing.frame, pc)[-1] - moved
            return not any(low <= target < high for low, high in staying)

        return leaves
