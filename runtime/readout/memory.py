"""A guest's memory that is somewhere else: in a file, or behind a debugger's stub.

It may be reached by physical addresses, by virtual ones, or both. A `Source` is opened for each reading: a stub halts
its guest for as long as that takes.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from typing import Protocol

from kinst.targets.errors import MachineError


class Space(Enum):
    """The kind of an address."""

    VIRTUAL = "virtual"
    PHYSICAL = "physical"


class UnreadableError(MachineError):
    """There is no such memory, or it cannot be read. The message names the source and the address."""


class Memory(Protocol):
    """Memory that can be read now."""

    @property
    def spaces(self) -> Sequence[Space]:
        """The spaces in which it can be read, in the order to try."""
        ...

    @property
    def is_slow(self) -> bool:
        """Whether searching all of it would take too long: `find` finds nothing."""
        ...

    def read(self, space: Space, address: int, size: int) -> bytes:
        """Exactly `size` bytes.

        Raises:
            UnreadableError: not all of them can be read there.
            MachineError: nothing can be read any more.
        """
        ...

    def find(self, content: bytes) -> Iterator[int]:
        """The addresses that have this content, in order: physical ones, unless it can be read by virtual ones only."""
        ...


class Source(Protocol):
    """Where memory comes from, by its name on the command line."""

    @property
    def is_live(self) -> bool:
        """Whether a guest may be running in it, so that it can be read again and again."""
        ...

    @property
    def name(self) -> str:
        """Its name in messages."""
        ...

    def open(self) -> AbstractContextManager[Memory]:
        """Memory as it is now. It is not changed, and a guest that was running continues afterwards. Raises
        MachineError."""
        ...
