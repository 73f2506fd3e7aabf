"""The tables of D's checker and of the providers, and descriptions.toml -> what there is to say of each name."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from docs.generate.commands import PROJECT
from kinst.runtime.dlang import builtins
from kinst.runtime.dlang.check.functions import SUBROUTINES
from kinst.runtime.dlang.check.libraries import INLINES
from kinst.runtime.dlang.check.prototypes import Prototype
from kinst.runtime.dlang.options import Options
from kinst.runtime.dlang.syntax import words
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import VOID
from kinst.runtime.providers.dtrace import DtraceProvider
from kinst.runtime.providers.fbt import FBT
from kinst.runtime.providers.kinst import KINST
from kinst.runtime.providers.linux.vminfo import VminfoProvider
from kinst.runtime.providers.mem import MemProvider
from kinst.runtime.providers.mmio import MmioProvider
from kinst.runtime.providers.plugged import ENTRY_POINTS, OWN
from kinst.runtime.providers.profile import ProfileProvider
from kinst.runtime.providers.trap import TrapProvider
from kinst.runtime.userspace.uprobe import UprobeProvider
from kinst.runtime.userspace.usdt import UsdtProvider

DESCRIBED: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("descriptions.toml").read_text())
LEADS: Final[Mapping[str, str]] = DESCRIBED["leads"]  # what a page begins with
_OFF: Final = "0"
_RAW: Final = "arg0 ... arg9"
_STATIC: Final = "sdt"  # the family of all static probes' providers


@dataclass(frozen=True, slots=True)
class Entry:
    """A name, what it is for the type checker, what it does, and an example (a statement of D, or "")."""

    name: str
    kind: str
    says: str
    example: str


def variables() -> list[Entry]:
    """The built-in variables."""
    types = {name: describe(kind) for name, kind in builtins.VARIABLES.items() if not name[-1].isdigit()}
    arrays = dict.fromkeys((f"{name}[]" for name in builtins.ARRAYS), "")
    return _entries("variables", {_RAW: "int64_t"} | types | arrays | dict.fromkeys(INLINES, ""))


def actions() -> list[Entry]:
    """What only a statement can be, and what stands for a stack or a symbol."""
    return _entries("actions", dict.fromkeys(words.ACTIONS, ""))


def subroutines() -> list[Entry]:
    """What has a value, with the types of its parameters."""
    known = {name: _signature(SUBROUTINES[name]) if name in SUBROUTINES else "" for name in words.SUBROUTINES}
    return _entries("subroutines", known)


def aggregations() -> list[Entry]:
    """What @a can be assigned."""
    return _entries("aggregations", dict.fromkeys(words.AGGREGATING, ""))


def options() -> list[Entry]:
    """What -x takes."""
    known = Options()
    defaults = {name: known.text(name) for name in known.names()}
    return _entries("options", {name: "" if value == _OFF else value for name, value in defaults.items()})


def providers() -> list[Entry]:
    """Those that come with the tool."""
    registered = [DtraceProvider.registration, ProfileProvider.registration, KINST, FBT]
    watched = (MmioProvider, MemProvider, TrapProvider, VminfoProvider, UprobeProvider, UsdtProvider)
    watching = [one.registration.name for one in watched]
    names = [one.name for one in registered] + [_STATIC, *watching, *OWN, *PROJECT["entry-points"][ENTRY_POINTS]]
    return _entries("providers", dict.fromkeys(names, ""), in_order=True)


def tags(known: Iterable[str]) -> list[Entry]:
    """What is said of the tags of errors."""
    return _entries("errors", dict.fromkeys(known, ""))


def _signature(prototype: Prototype) -> str:
    parameters = [describe(kind) if kind is not None else "..." for kind in prototype.parameters]
    optional = parameters[prototype.fewest :]
    shown = ", ".join(parameters[: prototype.fewest]) + "".join(f"[, {one}]" for one in optional)
    return f"({shown})" + (f" -> {describe(prototype.result)}" if prototype.result != VOID else "")


def _entries(section: str, known: Mapping[str, str], *, in_order: bool = False) -> list[Entry]:
    """Each known name with its description. Raises LookupError for a name without one, and for one too many."""
    described = DESCRIBED[section]
    if wrong := set(known) ^ set(described):
        raise LookupError(f"descriptions.toml [{section}] and the code differ: {', '.join(sorted(wrong))}")
    names: Iterable[str] = known if in_order else sorted(known)
    return [Entry(name, known[name], *(described[name] + [""])[:2]) for name in names]
