"""A record -> the memory that clauses may read at its hit: words of the current task, behind its pointers, and of the
stack, and what is read-only."""

from collections.abc import Mapping
from typing import Final

from kinst.runtime.tracing.standalone.constants import ConstantMemory
from kinst.targets.standalone import WORD

_NOTHING: Final[Mapping[int, int]] = {}
_LARGEST: Final = 1 << 16  # bytes of a stack


class RecordMemory:
    """The memory of the record that fires; implements `kinst.runtime.clauses.environment.Memory`."""

    def __init__(self, constant: ConstantMemory) -> None:
        """No record is shown."""
        self._constant = constant
        self.store, self.write, self.write_guest = constant.store, constant.write, constant.write_guest
        self.task = 0  # the current task's address
        self._members: Mapping[int, int] = _NOTHING
        self._behind: Mapping[int, int] = _NOTHING
        self._sp, self._stack = 0, b""
        self.is_cut = False  # the stack was read beyond what was recorded of it
        self.seen = set[int]()  # the words of the stack that were read, by number

    def show(
        self, task: int, members: Mapping[int, int], sp: int, stack: bytes, behind: Mapping[int, int] = _NOTHING
    ) -> None:
        """Show a record: words of the task by their offsets, the recorded part of the stack, which begins at `sp`, and
        other words, by their addresses."""
        self.is_cut = False
        self.seen.clear()
        self.task, self._members, self._sp, self._stack, self._behind = task, members, sp, stack, behind

    def hide(self) -> None:
        """Show no record."""
        self.show(0, _NOTHING, 0, b"")

    def load(self, address: int, size: int) -> int:
        """See `Memory`."""
        self.is_cut |= bool(self._stack) and len(self._stack) - size < address - self._sp < _LARGEST
        return int.from_bytes(self.read(address, size), "little")

    def read(self, address: int, size: int) -> bytes:
        """See `Memory`."""
        at = address - self._sp
        if 0 <= at <= len(self._stack) - size:
            self.seen.update(range(at // WORD, (at + size - 1) // WORD + 1))
            return self._stack[at : at + size]
        first = address & -WORD
        if first in self._behind and address - first + size <= WORD:
            return self._behind[first].to_bytes(WORD, "little")[address - first :][:size]
        found = self._of_task(address, size)
        return found if found is not None and len(found) == size else self._constant.read(address, size)

    def string(self, address: int, limit: int) -> bytes:
        """See `Memory`."""
        found = self._of_task(address, limit)
        if found is None:
            return self._constant.string(address, limit)
        text, end, _ = found.partition(b"\0")
        return text if end or len(found) == limit else self._constant.string(address, limit)

    def _of_task(self, address: int, most: int) -> bytes | None:
        """The recorded bytes of the task from an address on, at most `most`; None: it was not recorded."""
        offset, members = address - self.task, self._members
        start = first = offset & -WORD
        if not self.task or first not in members:
            return None
        words = bytearray()
        while first in members and len(words) < offset - start + most:
            words += members[first].to_bytes(WORD, "little")
            first += WORD
        return bytes(words[offset - start : offset - start + most])
