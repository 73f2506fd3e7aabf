"""What the front end needs from the session while it compiles a program. Interfaces only."""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Protocol

from kinst.runtime.dlang.builtins import FREEBSD
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.c_types import CType, ImageTypes
from kinst.targets.values import dataclass


def _not_translated(_number: int) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class MatchedProbes:
    """The probes that a description matches, as far as the checker needs to know them."""

    description: str  # four fields with colons, as messages show it
    count: int  # 0 only under -Z
    arguments: tuple[CType, ...] | None  # types of args[0], args[1], ...; None: not known for these probes
    is_mixed: bool = False  # several probes with different arguments: args[] is D_ARGS_MULTI
    obstacle: str = ""  # why `arguments` are not known, if there is a reason
    translated: Callable[[int], str] = _not_translated  # an argument's number -> the struct that a pointer is shown as


class ProbeLookup(Protocol):
    """Probes by description: what the checker needs of the providers."""

    def match(self, description: str) -> MatchedProbes:
        """The probes that a description matches. A description that is a number is a probe's id. Raises DError without
        a span: D_PDESC_INVAL for an invalid description, D_PDESC_ZERO if nothing matches and -Z was not given."""
        ...


class EveryProbe:
    """A lookup for checks before probes are known: every description matches."""

    def match(self, description: str) -> MatchedProbes:
        """One probe without known arguments, whatever the description says."""
        return MatchedProbes(description, 1, None)


class OptionValues(Protocol):
    """The options as the front end reads and sets them. `kinst.runtime.dlang.options.Options` implements it."""

    def set_by_program(self, name: str, value: str | None) -> None:
        """#pragma D option name=value. Raises DError: D_PRAGMA_OPTSET."""
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
    constants: Mapping[str, int] = field(default_factory=lambda: FREEBSD)
