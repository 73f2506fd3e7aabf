"""The name of a routine -> its machine code for a host, and in memory, where Unicorn can call it."""

import ctypes
import mmap
import platform
import sys
from collections.abc import Mapping
from dataclasses import field
from importlib.resources import files

from kinst.targets.values import dataclass


class HostFunction:
    """Machine code in memory of its own, which exists as long as this object."""

    def __init__(self, code: bytes) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._memory[: len(code)] = code
        self.address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(self._memory)))


@dataclass(frozen=True, slots=True)
class Routine:
    """A callback that is machine code: its file's name, and what its sources may name: layouts and constants."""

    name: str
    layouts: Mapping[str, type[ctypes.Structure]]
    constants: Mapping[str, int] = field(default_factory=dict)

    def code(self, host: str) -> bytes | None:
        """The machine code for a host, by `platform.machine()`; None: there is none."""
        found = files(__package__) / "assembled" / f"{self.name}.{host}.bin"
        return found.read_bytes() if found.is_file() else None

    def function(self, own: bytes = b"") -> HostFunction | None:
        """The function for this host, with words of its own right behind its code; None if what it does must be done in
        Python."""
        code = self.code(platform.machine()) if sys.platform == "linux" else None
        return None if code is None else HostFunction(code + own)
