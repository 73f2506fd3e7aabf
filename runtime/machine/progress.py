"""Faults in a row -> whether the guest still gets anywhere."""

from typing import Final

_MOST: Final = 100


class Progress:
    """A handler whose first instruction faults again and again would run forever."""

    def __init__(self) -> None:
        """Nothing has faulted."""
        self._at, self._count = 0, 0

    def is_none(self, pc: int, handler: int) -> bool:
        """Note that an instruction at `pc` faulted and that the CPU goes on at `handler`; whether that happens again
        and again at the same place."""
        if handler != pc:
            self._at = self._count = 0
            return False
        self._at, self._count = pc, self._count + 1 if self._at == pc else 1
        return self._count > _MOST
