"""A machine's facts -> its dissector."""

from importlib import import_module

from kinst.rewriter.arch.dissector import Dissector
from kinst.targets.arch.facts import ArchFacts


def dissector(facts: ArchFacts) -> Dissector:
    """The dissector of a machine of `kinst.targets.arch.registry`. Its module is imported at the first call."""
    found: Dissector = import_module(f"kinst.rewriter.arch.{facts.name}").DISSECTOR
    return found
