"""A checked clause and what an image keeps of its hits -> whether that is enough to run the clause, or else why not."""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.clauses.needs import Needs, needs
from kinst.runtime.dlang.program import Clause
from kinst.runtime.trap.delivery import Delivery, Way
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.errors import KinstError
from kinst.targets.manifest.packed import Manifest, ProbeKind
from kinst.targets.standalone import TIME, Standalone

_READS: Final = "it reads arguments or registers"


def arguments_of(wanted: Needs, kinds: set[int], arch: ArchFacts) -> dict[str, str]:
    """The fields for arguments, each with the register that holds it if that is the same for all probes; else with an
    empty name. kinst's probes have no arguments, and at a return arg1 is the only one in a register: fbt's arg0 is an
    offset."""
    names = arch.registers
    if ProbeKind.SDT in kinds:  # anywhere, as its record says: no field of a record
        return {f"arg{number}": "" for number in sorted(wanted.arguments)}
    if ProbeKind.FBT_ENTRY not in kinds:
        is_wanted = ProbeKind.FBT_RETURN in kinds and 1 in wanted.arguments
        return {"arg1": names[arch.return_value]} if is_wanted else {}
    held = [] if ProbeKind.FBT_RETURN in kinds else [names[number] for number in arch.arguments]
    return {f"arg{number}": held[number] if number < len(held) else "" for number in sorted(wanted.arguments)}


def registers_of(wanted: Needs, arch: ArchFacts) -> list[str]:
    """The fields for registers. The PC needs none: it is the address of the site."""
    names = arch.registers
    return [names[number] for number in sorted(wanted.registers) if number < len(names) and number != arch.pc]


class Admission:
    """Which clauses can run over what one standalone image keeps."""

    def __init__(
        self,
        manifest: Manifest,
        kept: Standalone,
        arch: ArchFacts,
        warn: Callable[[str], None],
        *,
        is_made_here: bool,
        cpus: int,
    ) -> None:
        """Admit by what `kept` says.

        Args:
            manifest: the image's.
            kept: what the image keeps.
            arch: its machine.
            warn: called with warnings.
            is_made_here: by --method jump, where breakpoints would give a clause everything.
            cpus: how many the machine has then.
        """
        self._manifest, self._kept, self._arch, self._warn = manifest, kept, arch, warn
        self._identifiers = manifest.identifiers
        self._has_warned = False
        self._is_made_here, self._has_cpus = is_made_here, cpus > 1

    def __call__(self, clause: Clause, probes: NDArray[np.intp], delivery: Delivery) -> None:
        """Check a clause.

        Args:
            clause: the clause.
            probes: the identifiers of its probes; those that are not the image's, such as BEGIN's, do not matter.
            delivery: how its hits would be delivered with breakpoints.

        Raises:
            KinstError: it reads what the image does not keep.
        """
        chosen = np.isin(self._identifiers, probes)
        kinds = set(self._manifest.probes["kind"][chosen].tolist())
        wanted = needs(clause)
        # A clause that could be counted with breakpoints needs nothing but the counters. Any other needs records.
        why = _READS if delivery.way is Way.RECORD else delivery.why
        if kinds and self._is_made_here:
            self._check_counts(clause, wanted, why)
        if not kinds or not why:
            return
        arguments = arguments_of(wanted, kinds, self._arch)
        fields = [*arguments, *registers_of(wanted, self._arch), *([TIME] if wanted.has_time else [])]
        if wanted.others:
            raise KinstError(f"{clause.description}: no image records {', '.join(sorted(wanted.others))}")
        kept = self._kept_at(chosen)
        if kept is None:
            raise self._refusal(clause, f"{why}, and the image only counts", fields)
        held = {*kept, *(name for name, held in arguments.items() if held in kept)}
        missing = [name for name in fields if name not in held]
        if missing:
            raise self._refusal(clause, f"the image does not record {', '.join(missing)}", fields)
        if wanted.has_threads and not self._has_warned:
            self._has_warned = True
            self._warn("records do not tell threads from each other: self-> is the same in all of them")

    def _kept_at(self, chosen: NDArray[np.bool_]) -> frozenset[str] | None:
        """The fields that the records of all sites of some probes have, which are chosen among the manifest's; None: a
        site only counts."""
        enablings = self._manifest.enablings
        is_chosen = chosen[enablings["probe"]]
        sites = enablings["site"][is_chosen]
        forms = np.unique(self._manifest.site_forms[sites]).tolist()
        if forms[:1] == [-1]:
            return None
        return frozenset.intersection(*(frozenset(self._kept.record_forms[form]) for form in forms))

    def _check_counts(self, clause: Clause, wanted: Needs, why: str) -> None:
        """Refuse a clause that would print with jumps anything else than with breakpoints."""
        if self._has_cpus and wanted.has_cpu:
            why = "its CPU matters, and all CPUs count together"
        if why:
            raise KinstError(f"{clause.description}: {why}: --method jump only counts: leave it out")

    def _refusal(self, clause: Clause, why: str, fields: list[str]) -> KinstError:
        """The error, with the --action that keeps what the clause reads in addition to what is kept now."""
        action = ",".join(dict.fromkeys((*self._kept.fields, *fields)))
        return KinstError(
            f"{clause.description}: {why}: kinst-rewrite --standalone --action record{action and ':'}{action} keeps it"
        )
