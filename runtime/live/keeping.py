"""Checked clauses -> what their image has to record of each hit, or why it cannot record what one of them reads."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.standalone.request import COUNT, Request, argument_fields
from kinst.runtime.clauses.alike_hits import watches
from kinst.runtime.clauses.needs import Needs, needs
from kinst.runtime.dlang.program import Clause, Destructive
from kinst.runtime.live.call_fields import CallFields
from kinst.runtime.live.fields import Fields, NotKeptError, joined
from kinst.runtime.live.system_calls import NONE, Asked, SystemCalls
from kinst.runtime.live.wanted import Wanted
from kinst.runtime.providers.dtrace import ERROR
from kinst.runtime.tracing.standalone.admission import arguments_of, registers_of
from kinst.runtime.trap.delivery import Delivery, Way
from kinst.targets.errors import KinstError
from kinst.targets.manifest.packed import Manifest
from kinst.targets.standalone import MOST_FIELDS, TIME, Action

_INSTEAD: Final = "leave --on out: our own machine has it"
_TASK: Final = ("tid", "pid", "execname")  # what `kinst.runtime.clauses.tasks_seen` notes
_MOST_RECORDS: Final = 1 << 16  # of a ring, a power of two
_MOST_BYTES: Final = 1 << 25  # of one: records with stacks are long


class Keeping:
    """What the clauses so far need. An instance is called as `Surroundings.admit`."""

    def __init__(
        self,
        manifest: Manifest,
        fields: Fields,
        *,
        notes_time: bool,
        notes_tasks: bool,
        notes_hits: bool = False,
        is_lossless: bool = False,
        calls: SystemCalls | None = None,
    ) -> None:
        """No clause has been checked. `notes_time`, `notes_tasks`: the output shows the time or the task of what
        clauses record; `notes_hits`: how many hits there were in the course of time. `is_lossless`: hits wait while the
        ring is full. `calls`: the `syscall` probes, which fire at others of the manifest."""
        self._calls = None if calls is None else CallFields(fields, calls)
        self._is_lossless = is_lossless
        self._notes_time, self._notes_tasks = notes_time, notes_tasks
        self._manifest, self._known, self._arch = manifest, fields, fields.image.facts
        self._identifiers = manifest.identifiers
        self._has_all = notes_hits or notes_tasks  # if any site records, all do
        self._wanted = Wanted(len(manifest.sites))
        # With the rows of probes of which one has to be there, and of those that all have to be.
        self._clauses: list[tuple[Clause, NDArray[np.intp], list[int]]] = []

    def __call__(self, clause: Clause, probes: NDArray[np.intp], delivery: Delivery) -> None:
        """Note what a clause of these probes reads. Raises KinstError: it cannot be recorded."""
        chosen = np.isin(self._identifiers, probes)
        kinds = set(self._manifest.probes["kind"][chosen].tolist())
        asked = NONE if self._calls is None else self._calls.calls.asked(probes)
        # It sees what was aggregated until then: what counters have is of no particular time.
        self._has_all |= watches(clause) and (bool(kinds) or bool(asked) or ERROR in probes)
        if not kinds and not asked:
            return
        if any(isinstance(action, Destructive) and action.kind == "chill" for action in clause.actions):
            raise KinstError(f"{clause.description}: chill(): the guest has gone on since the hit: {_INSTEAD}")
        wanted, own = needs(clause), np.flatnonzero(chosen)
        if self._calls is not None and asked:
            own = np.append(own, [*asked.entries, *asked.returning])
            self._keep_calls(clause, self._calls, asked, wanted)
        out = [row for _, rows in self._calls.calls.ways for row in rows] if self._calls and asked.has_return else []
        self._clauses.append((clause, own, out))
        if kinds:
            self._keep(clause, chosen, kinds, wanted, delivery)

    def _keep_calls(self, clause: Clause, calls: CallFields, asked: Asked, wanted: Needs) -> None:
        for part in calls.of(asked, wanted):
            try:
                fields = [*part.fields()]
            except NotKeptError as error:
                raise KinstError(f"{clause.description}: {part.word}: {error}: {_INSTEAD}") from None
            self._record(clause, self._mask(part.rows), fields)

    def _keep(
        self, clause: Clause, chosen: NDArray[np.bool_], kinds: set[int], wanted: Needs, delivery: Delivery
    ) -> None:
        names = sorted({*wanted.others, *(("cpu",) if wanted.has_cpu else ())})
        # To read the clock may take longer than all else: QEMU emulates it. Records are in order without it.
        fields = [TIME] if wanted.has_time else []
        fields += [*self._arguments(clause, wanted, kinds), *registers_of(wanted, self._arch)]
        try:
            for name in names:
                fields += self._known.of(name, kinds)
            name = "self->"
            if wanted.has_threads:
                fields += self._known.of_thread()
        except NotKeptError as error:
            raise KinstError(f"{clause.description}: {name}: {error}: {_INSTEAD}") from None
        if delivery.way is not Way.COUNT or fields:
            self._record(clause, chosen, fields)

    def _arguments(self, clause: Clause, wanted: Needs, kinds: set[int]) -> Iterable[str]:
        arguments, known = arguments_of(wanted, kinds, self._arch), argument_fields(self._arch)
        if missing := [name for name in arguments if name not in known]:
            raise KinstError(f"{clause.description}: {missing[0]}: is in no register, and not recorded: {_INSTEAD}")
        return arguments

    def _record(self, clause: Clause, chosen: NDArray[np.bool_], fields: Iterable[str]) -> None:
        """Let the hits of these probes be recorded with these fields, and with the CPU if that can be."""
        self._wanted.add(self._sites(chosen), fields)
        if len(joined((*self._own, *fields))) > MOST_FIELDS:
            raise KinstError(f"{clause.description}: a record has {MOST_FIELDS} fields at most: read fewer")

    def _sites(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        enablings, sites = self._manifest.enablings, np.zeros(len(self._manifest.sites), np.bool_)
        is_chosen = chosen[enablings["probe"]]
        rows = enablings["site"][is_chosen]
        sites[rows] = True
        return sites

    def _mask(self, rows: Iterable[int]) -> NDArray[np.bool_]:
        """Some rows of the manifest's probes."""
        found = np.zeros(len(self._manifest.probes), np.bool_)
        found[[*rows]] = True
        return found

    def enabled(self, recorded: NDArray[np.bool_], *, has_actions: bool) -> None:
        """Note what was enabled: at which sites more is done than to count, and whether actions in Python are called
        for hits, which may look at what was aggregated until then. Raises KinstError: a record cannot tell tasks."""
        self._has_all |= has_actions
        if self._calls is not None:
            self._follow(self._calls, has_actions=has_actions)
            recorded = recorded & ~self._sites(self._mask(row for _, rows in self._calls.calls.ways for row in rows))
        if has_actions or recorded.any():
            self._wanted.add(recorded, (TIME, *self._known.of_action()) if has_actions else ())

    def _follow(self, calls: CallFields, *, has_actions: bool) -> None:
        """Let records tell in which call a task is, and for actions what it gets and returns."""
        try:
            if rows := calls.calls.followed:
                self._wanted.add(self._sites(self._mask(rows)), self._known.of_call())
            for part in calls.of_action() if has_actions else ():
                self._wanted.add(self._sites(self._mask(part.rows)), [TIME, *part.fields()])
        except NotKeptError as error:
            raise KinstError(f"syscall:::return: {error}: {_INSTEAD}") from None

    @cached_property
    def _own(self) -> tuple[str, ...]:
        """What each record has for the output."""
        own = [*([TIME] if self._notes_time else []), *self._known.of_any_cpu()]
        with suppress(NotKeptError):  # then it knows none
            own += (field for name in _TASK if self._notes_tasks for field in self._known.of(name, set()))
        return tuple(own)

    def check(self, made: Manifest, refused: str) -> None:
        """Look at what the image that was made has. Raises KinstError: a clause would never run."""
        manifest, gone = self._manifest, np.zeros(len(self._manifest.probes), np.bool_)
        lost = ~np.isin(manifest.sites["address"], made.sites["address"])
        is_lost = lost[manifest.enablings["site"]]
        of_lost = manifest.enablings["probe"][is_lost]
        gone[of_lost] = True
        for clause, own, out in self._clauses:
            if gone[own].all():
                raise KinstError(f"{clause.description}: has no probe under QEMU: {refused}: {_INSTEAD}")
            if gone[out].any():
                raise KinstError(f"{clause.description}: no jump where system calls return: {refused}: {_INSTEAD}")

    def request(self) -> Request:
        """What the image has to keep, with the largest ring."""
        if self._wanted.is_empty:
            return COUNT
        forms, of_sites = self._wanted.forms(self._own, has_all=self._has_all)
        if (longest := max(map(len, forms), default=0)) > MOST_FIELDS:
            raise KinstError(f"clauses of the same probe read {longest} fields: a record has {MOST_FIELDS} at most")
        if len(forms) == 1 and 0 not in of_sites:
            wanted = Request(Action.RECORD, forms[0], 0, None, waits=self._is_lossless)
        else:
            wanted = Request(Action.MIX, (), 0, None, waits=self._is_lossless, forms=forms, of_sites=of_sites)
        records = _MOST_RECORDS
        while records * wanted.kept_at(0, 0, 0).stride > _MOST_BYTES:
            records //= 2
        return replace(wanted, capacity=records)
