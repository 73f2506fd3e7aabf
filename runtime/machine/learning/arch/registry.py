"""A machine's facts -> what a scratch copy of its CPU needs."""

from importlib import import_module

from kinst.runtime.machine.learning.arch.machine import ScratchMachine
from kinst.targets.arch.facts import ArchFacts


def scratch_machine(facts: ArchFacts) -> ScratchMachine:
    """The record of a machine of `kinst.targets.arch.registry`. Its module is imported at the first call."""
    machine: ScratchMachine = import_module(f"kinst.runtime.machine.learning.arch.{facts.name}").MACHINE
    return machine
