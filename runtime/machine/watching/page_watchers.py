"""Who is asked about some pages: what is executed there, and who has stored to them. Contracts only."""

from typing import Protocol


class CodeWatcher(Protocol):
    """Decides what is executed in some pages. `kinst.runtime.patched.shadows.deferred` implements it."""

    @property
    def pages(self) -> frozenset[int]:
        """The numbers of its physical pages. Fetches from them go elsewhere; loads and stores do not."""
        ...

    def frame(self, number: int, address: int) -> int:
        """The number of the physical page to execute instead, for a fetch at a virtual address; its own: that one."""
        ...

    def read(self, number: int) -> None:
        """The guest is about to load from a page."""
        ...

    def written(self, number: int) -> None:
        """The guest is about to store to a page."""
        ...

    def asks(self, number: int) -> int:
        """The address in the host's memory of a 64-bit word that is 0 while `frame` need not be called for a page."""
        ...

    def opened(self, number: int) -> int:
        """The address of a word that is 1 while `written` need not be called for a page."""
        ...

    def real(self, physical: int) -> int:
        """The address in a watched page, for an address in the page that is executed instead; any other address as it
        is."""
        ...


class StoreGuard(Protocol):
    """Notified of the first store to each of some pages, unless it is by their owner's code."""

    def is_own(self, pc: int, page: int) -> bool:
        """Whether the code that stores to a physical page is the owner's. `pc`: where its block begins."""
        ...

    def stored(self, pc: int, address: int) -> None:
        """Code of another owner, at a PC, is about to store to an address; both are virtual."""
        ...
