"""What the front end asks of the session while it reads a program. Contracts only."""

from dataclasses import dataclass
from typing import Protocol

from kinst.targets.arch.facts import ArchFacts
from kinst.targets.c_types import CType, ImageTypes


@dataclass(frozen=True, slots=True)
class MatchedProbes:
    """What a probe description stands for."""

    description: str  # four fields with colons, as messages show it
    count: int  # 0 only under -Z
    arguments: tuple[CType, ...] | None  # types of args[0], args[1], ...; None: not known for these probes
    is_mixed: bool = False  # several probes with different arguments: args[] is D_ARGS_MULTI
    obstacle: str = ""  # why `arguments` are not known, where that is known


class ProbeLookup(Protocol):
    """The providers, as the checker sees them."""

    def match(self, description: str) -> MatchedProbes:
        """Raises DError: D_PDESC_INVAL for a description that is none, D_PDESC_ZERO if nothing matches and -Z was not
        given. An integer text is a probe's id. The caller adds the span."""
        ...


class EveryProbe:
    """While probes are not known yet, every description matches."""

    def match(self, description: str) -> MatchedProbes:
        """See `ProbeLookup`."""
        return MatchedProbes(description, 1, None)


class OptionValues(Protocol):
    """Options: `kinst.runtime.dlang.options.Options`."""

    def set(self, name: str, value: str | None) -> None:
        """-x name=value, #pragma D option name=value. Raises DError: D_PRAGMA_OPTSET."""
        ...

    def is_on(self, name: str) -> bool:
        """A boolean option."""
        ...

    def number(self, name: str) -> int:
        """A number, size (bytes) or rate (ns)."""
        ...

    def text(self, name: str) -> str:
        """An option whose value is a word: bufpolicy, amin, ..."""
        ...


@dataclass(frozen=True, slots=True)
class CheckContext:
    """Everything outside the program's own text."""

    arch: ArchFacts
    types: ImageTypes
    probes: ProbeLookup
    options: OptionValues
