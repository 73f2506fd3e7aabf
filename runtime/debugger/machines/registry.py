"""A machine -> its registers for debuggers."""

from importlib import import_module

from kinst.runtime.debugger.register_table import RegisterTable
from kinst.targets.arch.facts import ArchFacts


def registers_of(arch: ArchFacts) -> RegisterTable:
    """The registers of a machine of `kinst.targets.arch.registry`."""
    found: RegisterTable = import_module(f"kinst.runtime.debugger.machines.{arch.name}").REGISTERS
    return found
