"""Memories for tests of what reads the guest's."""

from kinst.runtime.machine.system import System
from kinst.runtime.paging.walker import PageFault
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.targets.errors import MachineError


class NoMemory:
    """Every address is bad."""

    def load(self, address: int, size: int) -> int:
        raise Fault(FaultKind.BADADDR, address)

    def read(self, address: int, size: int) -> bytes:
        raise Fault(FaultKind.BADADDR, address)

    def string(self, address: int, limit: int) -> bytes:
        raise Fault(FaultKind.BADADDR, address)

    def store(self, address: int, size: int, value: int) -> None:
        raise Fault(FaultKind.BADADDR, address)

    def write(self, address: int, data: bytes) -> None:
        raise Fault(FaultKind.BADADDR, address)

    def write_guest(self, address: int, data: bytes) -> None:
        raise Fault(FaultKind.BADADDR, address)


class Words(NoMemory):
    """Some words of eight bytes, by address."""

    def __init__(self, words: dict[int, int]) -> None:
        self._words = words

    def load(self, address: int, size: int) -> int:
        if address not in self._words:
            raise Fault(FaultKind.BADADDR, address)
        return self._words[address]


class SystemMemory(NoMemory):
    """The memory of a machine that runs."""

    def __init__(self, system: System) -> None:
        self._load = system.space.load

    def load(self, address: int, size: int) -> int:
        try:
            return self._load(address, size)
        except (PageFault, MachineError):
            raise Fault(FaultKind.BADADDR, address) from None
