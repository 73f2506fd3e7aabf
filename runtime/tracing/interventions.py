"""Which clauses and functions in Python may change the CPU, and at which probes.

Only where a probe stands for an instruction of the guest is there a CPU to change. `override` needs the entry of a
function, where nothing but the return address is on the stack, and `skip` an instruction that is a probe of its own.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kinst.runtime.clauses.needs import nodes_of
from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import Clause
from kinst.runtime.providers.provider import Identifiers, Probe
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.errors import KinstError

_FIRST: Final = "0"  # kinst's name of a function's first instruction
_AT_ENTRY: Final = frozenset({("fbt", "entry"), ("syscall", "entry"), ("kinst", _FIRST)})
_AT_CODE: Final = frozenset({"fbt", "kinst", "syscall"})
OVERRIDE, SKIP, REGISTER, JUMP = "override()", "skip()", "regs[]", "a jump"


def why_not(what: str, probe: Probe | None) -> str:
    """Why an intervention is impossible at a probe; empty: it is possible."""
    provider, name = (probe.provider, probe.name) if probe is not None else ("", "")
    match what:
        case "skip()":
            return "" if provider == "kinst" else "skip() needs a probe of kinst, which stands for an instruction"
        case "override()":
            is_entry = (provider, name) in _AT_ENTRY
            return "" if is_entry else "override() needs fbt's entry of a function, or that of a system call"
        case "a jump":
            is_possible = provider == "kinst" or (provider, name) in _AT_ENTRY
            return "" if is_possible else "the PC can be written at probes of kinst and at entries"
        case _:
            return "" if provider in _AT_CODE else "regs[] can be written at probes of fbt, kinst and syscall"


class Permitted:
    """The interventions of one session: they are checked, and the machine is told that there are any."""

    def __init__(
        self,
        arch: ArchFacts,
        probe: Callable[[int], Probe | None],
        intervene: Callable[[], None] | str,
        *,
        is_permitted: bool,
    ) -> None:
        """`probe` gives the probe with an identifier; `intervene`: see `Surroundings`. `is_permitted`: by -w."""
        self._arch, self._probe, self._intervene = arch, probe, intervene
        self._is_permitted, self._has_begun = is_permitted, False

    def of_clause(self, clause: Clause, probes: Identifiers, *, is_inlined: bool) -> None:
        """Check a clause. `is_inlined`: its probes are inlined copies of a function. Raises KinstError."""
        wanted = list(dict.fromkeys(_interventions(clause, self._arch)))
        if wanted:
            self._check(clause.description, wanted, probes, is_inlined=is_inlined)
            self._begin(clause.description, wanted[0])

    def of_action(self, wanted: Sequence[str], description: str, probes: Identifiers, *, is_inlined: bool) -> None:
        """Check a function in Python, which may try anything if -w permits it; it is known to want these. Raises
        KinstError."""
        if wanted and not self._is_permitted:
            raise KinstError(
                f"{description}: {wanted[0]} changes the guest: Options(d={{'destructive': True}}) permits it"
            )
        self._check(description, wanted, probes, is_inlined=is_inlined)
        if wanted or (self._is_permitted and not isinstance(self._intervene, str)):
            self._begin(description, *wanted[:1])

    def _check(self, description: str, wanted: Sequence[str], probes: Identifiers, *, is_inlined: bool) -> None:
        for what in wanted:
            if is_inlined and what != REGISTER:
                raise KinstError(f"{description}: {what}: an inlined copy is not called, and is not one instruction")
            for identifier in () if is_inlined else probes.tolist():
                probe = self._probe(identifier)
                if why := why_not(what, probe):
                    raise KinstError(f"{description}: {probe}: {why}")

    def _begin(self, description: str, what: str = "") -> None:
        if isinstance(self._intervene, str):
            raise KinstError(f"{description}: {what}: {self._intervene}")
        if not self._has_begun:
            self._has_begun = True
            self._intervene()


def _interventions(clause: Clause, arch: ArchFacts) -> Iterator[str]:
    for node in nodes_of(clause):
        match node:
            case program.Destructive(kind="override" | "skip" as kind):
                yield f"{kind}()"
            case program.Assign(target=program.Builtin(index=program.Integer(value=index))):
                yield _register(clause, index, arch)
            case program.Update(target=program.Builtin(index=program.Integer(value=index))):
                yield _register(clause, index, arch)
            case _:
                pass


def _register(clause: Clause, index: int, arch: ArchFacts) -> str:
    if index >= len(arch.registers):
        raise KinstError(f"{clause.description}: regs[{index}]: {arch.name} has no such register")
    if not arch.writable_bits.get(index):
        raise KinstError(f"{clause.description}: regs[{index}]: {arch.registers[index]} cannot be written")
    return JUMP if index == arch.pc else REGISTER
