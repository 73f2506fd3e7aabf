"""The reasons of the rewriter -> what there is to say of each, by the names that JSON has."""

from docs.generate.dlang import Entry
from kinst.targets.instruction import DEFERRED, Reason


def refused() -> list[Entry]:
    """Why instructions and functions are not probed."""
    return [_entry(reason) for reason in Reason if reason and reason not in DEFERRED]


def deferred() -> list[Entry]:
    """Why instructions are probed as the guest has them when they run."""
    return [_entry(reason) for reason in DEFERRED]


def _entry(reason: Reason) -> Entry:
    return Entry(reason.name.lower(), "", reason.text, "")
