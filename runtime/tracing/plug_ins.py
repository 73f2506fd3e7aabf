"""Other packages' providers in one run: asked for by name, planted when the image is, registered when it is loaded."""

from collections.abc import Callable

from kinst.runtime.patched.sites import SiteTable
from kinst.runtime.providers.host import GuestMemory, ImageHost
from kinst.runtime.providers.plugged import installed_providers
from kinst.runtime.providers.provider import Providers
from kinst.targets.image import Image
from kinst.targets.probe import ProbeName


class PlugIns:
    """Providers that programs name."""

    def __init__(self, image: Image | None, is_wanted: Callable[[str], bool]) -> None:
        """`image` is the original; None: it runs as it is, and nobody may add to it.

        Raises:
            ProviderError: a package whose entry point does not work.
        """
        self._host = None if image is None else ImageHost(image)
        self._providers = installed_providers(self._host, is_wanted)

    @property
    def names(self) -> tuple[ProbeName, ...]:
        """What has to be patched for them."""
        return () if self._host is None else self._host.names

    def register(self, providers: Providers, sites: SiteTable | None, memory: GuestMemory, bias: int) -> None:
        """The image is loaded, `bias` from where it was linked; `memory` is the guest's."""
        if self._host is None or not self._providers:
            return
        if sites is not None:
            self._host.attach(sites, memory, bias)
        for provider in self._providers:
            providers.register(provider)
