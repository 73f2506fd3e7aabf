"""Names of an image's functions -> those that are not probed unless the user insists, and the rule that says so:
kinst_excluded and kinst_md_excluded, fbt_excluded.

FreeBSD's kinst and FBT exclude what runs between a breakpoint and the end of dtrace_probe(): a probe there would fire
forever. Here the trap path is outside the guest, so no code of an image is in it, and a firmware's `db_open` is probed
like any other function. The rules apply if the guest itself may set DTrace's breakpoints: in images that have DTrace's
own `dtrace_probe`.
"""

import re
from collections.abc import Sequence
from typing import Final

from kinst.targets.arch.facts import ArchFacts
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """Functions whose whole name fits `names` are excluded in images that have a function `ANCHOR`."""

    names: str  # a regular expression
    text: str


ANCHOR: Final = "dtrace_probe"
RULES: Final = (
    Rule("dtrace_(?!safe_).*", "dtrace_* runs in probe context (dtrace_safe_* does not)"),
    Rule("kinst_.*", "kinst_* is kinst's trap handler"),
    Rule("fbt_.*", "fbt_* is FBT's trap handler"),
    Rule("k?db_.*", "db_* and kdb_* are the kernel debugger, which takes the same breakpoint"),
    Rule("owner_(mtx|rm|rw|sx)", "owner_* is called in probe context"),
    Rule("trap_check", "trap_check runs before DTrace sees the breakpoint"),
)
_ANY: Final = re.compile("|".join(rule.names for rule in RULES))


def exclusion(name: str, facts: ArchFacts) -> str:
    """The rule that excludes a function of an image with DTrace; empty if there is none."""
    if name in facts.excluded_functions:
        return f"{name} is on the path of a breakpoint to its handler on {facts.name}"
    return next((rule.text for rule in RULES if re.fullmatch(rule.names, name)), "")


def excluded_rows(names: Sequence[str], facts: ArchFacts) -> list[int]:
    """Rows of the excluded functions of an image: none if it has no DTrace of its own."""
    if ANCHOR not in names:
        return []
    return [row for row, name in enumerate(names) if _ANY.fullmatch(name) or name in facts.excluded_functions]
