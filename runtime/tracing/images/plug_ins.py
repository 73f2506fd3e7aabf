"""Providers that plant points in one run: found by name before the image is patched, registered when it is loaded."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kinst.runtime.providers.host import GuestMemory, ImageHost
from kinst.runtime.providers.plugged import installed_providers
from kinst.runtime.userspace.mapping_events import MappingEvents
from kinst.targets.probe import IN_PROGRAMS

if TYPE_CHECKING:
    from kinst.runtime.patched.sites import SiteTable
    from kinst.runtime.providers.provider import Provider, Providers
    from kinst.targets.c_types import ImageTypes
    from kinst.targets.image import Image
    from kinst.targets.probe import ProbeName

    # Whether a provider is wanted -> those that are.
    MakeProviders = Callable[[ImageHost, Callable[[str], bool]], Iterable[Provider]]


class PlugIns:
    """The providers that plant points and that programs name: those of other packages, and our own."""

    def __init__(
        self,
        image: "Image | None",
        types: "ImageTypes",
        is_wanted: Callable[[str], bool],
        own: "MakeProviders | None" = None,
    ) -> None:
        """`image` is the original, with its types; None if the image runs as it is and nothing may be added. `own`
        makes those that there are instead of the installed ones.

        Raises:
            ProviderError: the entry point of a package does not work.
        """
        self.is_wanted = is_wanted
        self._host = None if image is None else ImageHost(image, types)
        self.mapping_events: MappingEvents | None = None  # if probes of user space are wanted
        if own is None and self._host is not None and any(map(is_wanted, IN_PROGRAMS)):
            self.mapping_events = MappingEvents(self._host)
        if own is None or self._host is None:
            self._providers = installed_providers(self._host, is_wanted)
        else:
            self._providers = [*own(self._host, is_wanted)]

    @property
    def names(self) -> tuple["ProbeName", ...]:
        """The probes at whose sites the image must be patched for them."""
        return () if self._host is None else self._host.names

    def register(
        self,
        providers: "Providers",
        sites: "SiteTable | None",
        memory: GuestMemory,
        bias: int,
        now: Callable[[], int],
    ) -> None:
        """Register them when the image is loaded, `bias` bytes from where it was linked. `memory` is the guest's, and
        `now` gives its time in ns."""
        if self._host is None or not (self._providers or self.mapping_events):
            return
        if sites is not None:
            self._host.attach(sites, memory, bias, now)
        for provider in self._providers:
            providers.register(provider)
