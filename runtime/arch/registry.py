"""A machine's facts -> its emulator."""

from importlib import import_module

from kinst.runtime.arch.emulator import Emulator
from kinst.targets.arch.facts import ArchFacts


def emulator(facts: ArchFacts) -> Emulator:
    """The emulator of a machine of `kinst.targets.arch.registry`. Its module is loaded when it is first asked for."""
    found: Emulator = import_module(f"kinst.runtime.arch.{facts.name}").EMULATOR
    return found
