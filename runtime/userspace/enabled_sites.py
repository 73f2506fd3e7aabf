"""The sites that the enabled probes of one provider have in programs: watched as one, and forgotten as one."""

from collections.abc import Iterable, Iterator
from typing import Final

from kinst.runtime.userspace.guest_files import GuestFile
from kinst.runtime.userspace.user_code import Reached, Site, UserCode

_NONE: Final[tuple[tuple[GuestFile, Site, Reached], ...]] = ()


class EnabledSites:
    """Of one provider, by the identifiers of its probes."""

    def __init__(self, code: UserCode) -> None:
        """None is enabled."""
        self._code = code
        self._enabled: dict[int, tuple[tuple[GuestFile, Site, Reached], ...]] = {}

    def enable(self, identifier: int, sites: Iterable[tuple[GuestFile, Site, Reached]]) -> None:
        """Call at each site of a probe what is given with it."""
        self._enabled[identifier] = own = tuple(sites)
        for file, site, reached in own:
            self._code.enable(file, site, reached)

    def disable(self, identifiers: Iterable[int]) -> None:
        """Call nothing there; identifiers of probes that are not enabled are left out."""
        for file, site, reached in self._of(identifiers):
            self._code.disable(file, site, reached)

    def _of(self, identifiers: Iterable[int]) -> Iterator[tuple[GuestFile, Site, Reached]]:
        for identifier in identifiers:
            yield from self._enabled.pop(identifier, _NONE)
