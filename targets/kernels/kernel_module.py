"""A module that a kernel has loaded, as the kernel's own records in memory describe it."""

from kinst.targets.elf.symbols import Symbols
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class KernelModule:
    """What they say."""

    address: int  # of its record: struct module of Linux
    name: str
    symbols: Symbols  # with addresses in memory, in the order of the file's table
    core: tuple[range, ...]  # addresses
    init: tuple[range, ...]  # freed after its initialisation
    text: tuple[range, ...]  # what of both is code
