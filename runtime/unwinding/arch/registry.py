"""A machine's facts -> its stack."""

from importlib import import_module

from kinst.runtime.unwinding.unwind import StackEffects
from kinst.targets.arch.facts import ArchFacts


def stack_effects(facts: ArchFacts) -> StackEffects:
    """The stack of a machine of `kinst.targets.arch.registry`. Its module is loaded when it is first asked for."""
    found: StackEffects = import_module(f"kinst.runtime.unwinding.arch.{facts.name}").STACK
    return found
