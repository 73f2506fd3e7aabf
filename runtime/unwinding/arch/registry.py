"""A machine's facts -> the effects of its instructions on the stack."""

from importlib import import_module

from kinst.runtime.unwinding.unwind import StackEffects
from kinst.targets.arch.facts import ArchFacts


def stack_effects(facts: ArchFacts) -> StackEffects:
    """The effects for a machine of `kinst.targets.arch.registry`. Its module is imported at the first call."""
    found: StackEffects = import_module(f"kinst.runtime.unwinding.arch.{facts.name}").STACK
    return found
