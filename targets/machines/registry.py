"""Machine name or architecture -> the machine's record. A machine is one file here that ends in `MACHINE`."""

from importlib import import_module

from kinst.targets.errors import UsageError
from kinst.targets.machines.machine import MachineFacts

# The first machine of an architecture is its default.
MACHINES = ("virt-riscv64", "virt-arm64", "virt-el2-arm64", "pc-amd64")


def module_name(machine: str) -> str:
    """The file that describes `machine`, here and in `kinst.runtime.machine.boards`."""
    return machine.replace("-", "_")


def machine_facts(name: str) -> MachineFacts:
    """The record of a machine; UsageError for a name that does not exist."""
    if name not in MACHINES:
        raise UsageError(f"{name}: no such machine; there are {', '.join(MACHINES)}")
    facts: MachineFacts = import_module(f"kinst.targets.machines.{module_name(name)}").MACHINE
    return facts


def default_machine(arch: str) -> str:
    """The machine that runs an image of architecture `arch` unless the user names another."""
    for name in MACHINES:
        if machine_facts(name).arch == arch:
            return name
    raise UsageError(f"no machine for {arch}; there are {', '.join(MACHINES)}")
