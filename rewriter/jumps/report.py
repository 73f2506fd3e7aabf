"""A resolution -> what is reported of jumps at its sites: the method of each, why, and what is dead there."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.jumps.decide import decide
from kinst.rewriter.jumps.methods import Decisions, Hindrance, JumpMethod
from kinst.rewriter.liveness.dataflow import Dataflow
from kinst.rewriter.liveness.dead import dead_before
from kinst.rewriter.liveness.effects import effector
from kinst.rewriter.program import Program, instructions_of
from kinst.rewriter.shell.progress import Progress, silent
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.elf.header import FileKind
from kinst.targets.errors import ImageError
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class JumpReport:
    """What is known of some addresses. `row` gives the row of the columns for each."""

    row: Mapping[int, int]
    decisions: Decisions
    dead: NDArray[np.uint32]
    facts: ArchFacts

    def value(self, address: int) -> dict[str, Any]:
        """For `json.dumps`: method, reason, and the registers and flags whose values do not matter."""
        row = self.row[address]
        relay = int(self.decisions.relay[row])
        return {
            "method": self.method(address),
            "why": self.decisions.why(row),
            **({"relay": relay} if relay else {}),
            "dead": self._names(int(self.dead[row])),
        }

    def method(self, address: int) -> str:
        """The name of the method."""
        return JumpMethod(int(self.decisions.method[self.row[address]])).name.lower()

    def summary(self) -> str:
        """``2,846 sites, 2,473 of them jumps (86.9 %): 990 inside, ...; traps: 191 too short, ...``."""
        jumps = Counter(self.decisions.method[self.decisions.method != JumpMethod.TRAP].tolist())
        hindered = Counter(self.decisions.hindrance[self.decisions.method == JumpMethod.TRAP].tolist())
        count, total = sum(jumps.values()), len(self.decisions.method)
        share = f" ({100 * count / total:.1f} %)" if total else ""
        methods = [f"{number:,} {_word(JumpMethod(key))}" for key, number in jumps.most_common()]
        reasons = [f"{number:,} {_word(Hindrance(key))}" for key, number in hindered.most_common()]
        parts = [f"{count:,} of {total:,} sites can be jumps{share}", ", ".join(methods)]
        return "; ".join([": ".join(filter(None, parts)), *([f"traps: {', '.join(reasons)}"] if reasons else [])])

    def _names(self, dead: int) -> list[str]:
        flags = effector(self.facts).flags
        general = {number: name for number, name in enumerate(self.facts.registers) if number < 32}
        names = {**general, **{bit.bit_length() - 1: name for name, bit in flags.items()}}
        return [name for number, name in sorted(names.items()) if dead >> number & 1]


def _word(key: JumpMethod | Hindrance) -> str:
    return key.name.lower().replace("_", " ")


def jump_report(program: Program, addresses: NDArray[np.uint64], progress: Progress = silent) -> JumpReport:
    """The report for some addresses, ascending, if there are instructions at all of them.

    The whole program is decoded: a branch to an instruction may be anywhere.

    Raises:
        ImageError: a module that is not linked, whose branches are not known yet.
    """
    if program.image.kind is FileKind.REL:
        raise ImageError(f"{program.image.path}: what leads where in a module is known only when it is linked")
    found = instructions_of(program, np.arange(len(program.functions)), progress)
    sites = np.searchsorted(found.address, addresses)
    decisions = decide(program, found, sites)
    row = {address: number for number, address in enumerate(addresses.tolist())}
    return JumpReport(row, decisions, dead_before(Dataflow.of(program, found))[sites], program.image.facts)
