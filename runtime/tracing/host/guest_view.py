"""The guest's memory for Python code: for a script that uses the API, and for actions of probes."""

from kinst.runtime.clauses.environment import Memory
from kinst.runtime.trap.faults import Fault
from kinst.targets.errors import MachineError


class GuestView:
    """Virtual memory as the running CPU sees it. Reading leaves no trace in the guest.

    Every method raises MachineError for an address where nothing is mapped.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def word(self, address: int, size: int = 8) -> int:
        """A little-endian unsigned number of 1, 2, 4 or 8 bytes."""
        try:
            return self._memory.load(address, size)
        except Fault as fault:
            raise _nothing(fault) from None

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes from an address on."""
        try:
            return self._memory.read(address, size)
        except Fault as fault:
            raise _nothing(fault) from None

    def text(self, address: int, limit: int = 4096) -> str:
        r"""The text up to its NUL, at most `limit` bytes. Bytes that are not UTF-8 become \xNN."""
        try:
            return self._memory.string(address, limit).decode("utf-8", "backslashreplace")
        except Fault as fault:
            raise _nothing(fault) from None

    def write(self, address: int, data: bytes) -> None:
        """Write to the guest's memory. Nothing is written if a part of it cannot be."""
        try:
            self._memory.write_guest(address, data)
        except Fault as fault:
            raise _nothing(fault) from None


def _nothing(fault: Fault) -> MachineError:
    why = fault.text or "the guest has no memory there, or not with this access"
    return MachineError(f"{fault.value:#x}: {why}")
