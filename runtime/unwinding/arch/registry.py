"""Name of a machine -> its stack."""

from typing import Final

from kinst.runtime.unwinding.arch.amd64 import Amd64Stack
from kinst.runtime.unwinding.arch.arm64 import Arm64Stack
from kinst.runtime.unwinding.arch.riscv64 import Riscv64Stack
from kinst.runtime.unwinding.unwind import StackEffects

_STACKS: Final[dict[str, StackEffects]] = {"amd64": Amd64Stack(), "arm64": Arm64Stack(), "riscv64": Riscv64Stack()}


def stack_effects(name: str) -> StackEffects:
    """The stack of the machine `ArchFacts.name`."""
    return _STACKS[name]
