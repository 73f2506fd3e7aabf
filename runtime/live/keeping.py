"""Checked clauses -> what their image has to record of each hit, or why it cannot record what one of them reads."""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.standalone.request import COUNT, Request, argument_fields
from kinst.runtime.clauses.needs import needs
from kinst.runtime.dlang.program import Clause
from kinst.runtime.tracing.standalone.admission import arguments_of, registers_of
from kinst.runtime.trap.delivery import Delivery, Way
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.errors import KinstError
from kinst.targets.manifest.packed import Manifest
from kinst.targets.standalone import MOST_FIELDS, TIME, Action

_INSTEAD: Final = "leave --on out: our own machine has it"
_MOST_RECORDS: Final = 1 << 16  # of a ring, a power of two: some megabytes


class Keeping:
    """What the clauses so far need. An instance is called as `Surroundings.admit`."""

    def __init__(self, manifest: Manifest, arch: ArchFacts, warn: Callable[[str], None]) -> None:
        """No clause has been checked. `warn` is called once, if self-> is used."""
        self._manifest, self._arch, self._warn = manifest, arch, warn
        self._identifiers = manifest.identifiers
        self._fields: dict[str, None] = {}  # in order
        self._is_recorded = self._has_warned = False

    def __call__(self, clause: Clause, probes: NDArray[np.intp], delivery: Delivery) -> None:
        """Note what a clause of these probes reads. Raises KinstError: it cannot be recorded."""
        kinds = set(self._manifest.probes["kind"][np.isin(self._identifiers, probes)].tolist())
        if not kinds:
            return
        wanted = needs(clause)
        others = sorted({*wanted.others, *(("cpu",) if wanted.has_cpu else ())})
        if others:
            raise KinstError(f"{clause.description}: {', '.join(others)}: is not recorded under QEMU: {_INSTEAD}")
        if wanted.has_threads and not self._has_warned:
            self._has_warned = True
            self._warn("records do not tell threads from each other: self-> is the same in all of them")
        if delivery.way is Way.COUNT:
            return
        self._is_recorded = True
        arguments = arguments_of(wanted, kinds, self._arch)
        known = argument_fields(self._arch)
        if missing := [name for name in arguments if name not in known]:
            raise KinstError(f"{clause.description}: {missing[0]}: is in no register, and not recorded: {_INSTEAD}")
        fields = [*arguments, *registers_of(wanted, self._arch), TIME]
        self._fields |= dict.fromkeys(fields)
        if len(self._fields) > MOST_FIELDS:
            raise KinstError(f"{clause.description}: a record has {MOST_FIELDS} words at most: read fewer")

    def all_hits(self) -> None:
        """Record each hit: Python is called for it."""
        self._is_recorded = True
        self._fields |= {TIME: None}

    def request(self) -> Request:
        """What the image has to keep, with the largest ring."""
        if not self._is_recorded:
            return COUNT
        return Request(Action.RECORD, tuple(self._fields), _MOST_RECORDS, None)
