"""A machine's facts -> its MMU."""

from importlib import import_module

from kinst.runtime.paging.walker import Walker
from kinst.targets.arch.facts import ArchFacts


def new_walker(facts: ArchFacts) -> Walker:
    """The MMU of a machine of `kinst.targets.arch.registry`. Its module is imported at the first call."""
    walker: Walker = import_module(f"kinst.runtime.paging.{facts.name}").WALKER()
    return walker
