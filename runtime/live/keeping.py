"""Checked clauses -> what their image has to record of each hit, or why it cannot record what one of them reads."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.standalone.request import COUNT, Request, argument_fields
from kinst.runtime.clauses.needs import Needs, needs
from kinst.runtime.dlang.program import Clause, Destructive
from kinst.runtime.live.fields import Fields, NotKeptError, joined
from kinst.runtime.tracing.standalone.admission import arguments_of, registers_of
from kinst.runtime.trap.delivery import Delivery, Way
from kinst.targets.errors import KinstError
from kinst.targets.manifest.packed import Manifest
from kinst.targets.standalone import MOST_FIELDS, TIME, Action, Standalone

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
        is_lossless: bool = False,
    ) -> None:
        """No clause has been checked. `notes_time`, `notes_tasks`: the output shows the time or the task of each hit.
        `is_lossless`: hits wait while the ring is full."""
        self._is_lossless = is_lossless
        self._notes_tasks = notes_tasks
        # To read the clock may take longer than all else: QEMU emulates it. Records are in order without it.
        self._has_time = notes_time
        self._manifest, self._known, self._arch = manifest, fields, fields.image.facts
        self._identifiers = manifest.identifiers
        self._fields: tuple[str, ...] = ()  # in order
        self._is_recorded = False
        self._clauses: list[tuple[Clause, NDArray[np.intp]]] = []  # with their probes

    def __call__(self, clause: Clause, probes: NDArray[np.intp], delivery: Delivery) -> None:
        """Note what a clause of these probes reads. Raises KinstError: it cannot be recorded."""
        kinds = set(self._manifest.probes["kind"][np.isin(self._identifiers, probes)].tolist())
        if not kinds:
            return
        if any(isinstance(action, Destructive) and action.kind == "chill" for action in clause.actions):
            raise KinstError(f"{clause.description}: chill(): the guest has gone on since the hit: {_INSTEAD}")
        self._clauses.append((clause, probes))
        wanted = needs(clause)
        self._has_time |= wanted.has_time
        names = sorted({*wanted.others, *(("cpu",) if wanted.has_cpu else ())})
        fields = [*self._arguments(clause, wanted, kinds), *registers_of(wanted, self._arch)]
        try:
            for name in names:
                fields += self._known.of(name, kinds)
            name = "self->"
            if wanted.has_threads:
                fields += self._known.of_thread()
        except NotKeptError as error:
            raise KinstError(f"{clause.description}: {name}: {error}: {_INSTEAD}") from None
        if delivery.way is not Way.COUNT or fields:
            self._record(clause, fields)

    def _arguments(self, clause: Clause, wanted: Needs, kinds: set[int]) -> Iterable[str]:
        arguments, known = arguments_of(wanted, kinds, self._arch), argument_fields(self._arch)
        if missing := [name for name in arguments if name not in known]:
            raise KinstError(f"{clause.description}: {missing[0]}: is in no register, and not recorded: {_INSTEAD}")
        return arguments

    def _record(self, clause: Clause, fields: Iterable[str]) -> None:
        """Let each hit be recorded with these fields, and with the CPU if that can be."""
        self.all_hits()
        self._fields = joined((*self._fields, *fields))
        if len(self._fields) >= MOST_FIELDS:  # the time may be another
            raise KinstError(f"{clause.description}: a record has {MOST_FIELDS - 1} fields at most: read fewer")

    def enabled(self, *, has_actions: bool, is_counted: bool) -> None:
        """Note what was enabled: whether actions in Python are called for hits, and whether all that the others do is
        to count."""
        if has_actions or not is_counted:
            self.all_hits()
        if has_actions:
            self._has_time = True
            self._fields = joined((*self._fields, *self._known.of_action()))

    def all_hits(self) -> None:
        """Record each hit: a clause reads more than its probe."""
        self._is_recorded = True
        own = [*self._known.of_any_cpu()]
        with suppress(NotKeptError):  # then it knows none
            own += (field for name in _TASK if self._notes_tasks for field in self._known.of(name, set()))
        self._fields = joined((*self._fields, *own))

    def check(self, made: Manifest, refused: str) -> None:
        """Look at what the image that was made has. Raises KinstError: a clause would never run."""
        manifest, gone = self._manifest, np.zeros(len(self._manifest.probes), np.bool_)
        lost = ~np.isin(manifest.sites["address"], made.sites["address"])
        gone[manifest.enablings["probe"][lost[manifest.enablings["site"]]]] = True
        left = self._identifiers[~gone]
        for clause, probes in self._clauses:
            own = np.intersect1d(probes, self._identifiers)
            if not np.isin(own, left).any():
                raise KinstError(f"{clause.description}: has no probe under QEMU: {refused}: {_INSTEAD}")

    def request(self) -> Request:
        """What the image has to keep, with the largest ring."""
        if not self._is_recorded:
            return COUNT
        fields = joined(([TIME] if self._has_time else []) + [*self._fields])
        stride, records = Standalone(Action.RECORD, 0, 0, 0, 0, fields).stride, _MOST_RECORDS
        while records * stride > _MOST_BYTES:
            records //= 2
        return Request(Action.RECORD, fields, records, None, waits=self._is_lossless)
