"""What a provider of another package is given: the image, the guest's memory, and calls from places in its code.

A package plugs in through the entry-point group `kinst.providers`. An entry point is a callable that takes a
`ProviderHost` and returns a `Provider` with the entry point's name. It is called once for each run that names it
(`kinst.runtime.providers.plugged`), before the program is compiled, and plants its points then. Nothing is written into
the guest's code until a point is armed. `samples/providers` is such a package.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from kinst.runtime.providers.site_provider import matching_rows
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.errors import ProbeError
from kinst.targets.manifest.packed import PROBE_FORM, Manifest, ProbeKind
from kinst.targets.probe import ProbeName, parse_probe_names

if TYPE_CHECKING:
    from kinst.runtime.patched.sites import SiteTable
    from kinst.targets.arch.facts import ArchFacts
    from kinst.targets.c_types import ImageTypes
    from kinst.targets.image import Image

Called = Callable[[Firing], None]


class GuestMemory(Protocol):
    """The guest's virtual memory, as the running CPU sees it. A bad address raises `Fault` BADADDR."""

    def load(self, address: int, size: int) -> int:
        """A little-endian unsigned word of 1, 2, 4 or 8 bytes."""
        ...

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes from an address on."""
        ...

    def string(self, address: int, limit: int) -> bytes:
        """The bytes up to the NUL, without it, at most `limit`."""
        ...


class Point(Protocol):
    """Places in the guest's code at which a provider is called while the point is armed."""

    @property
    def is_placed(self) -> bool:
        """Whether there are such places; known once the image is loaded."""
        ...

    def arm(self) -> None:
        """Start to call the provider, each time before the instruction there executes."""
        ...

    def disarm(self) -> None:
        """Stop calling, and restore the code."""
        ...


class ProviderHost(Protocol):
    """The run that a provider takes part in."""

    @property
    def image(self) -> "Image":
        """The original image, with link addresses."""
        ...

    @property
    def types(self) -> "ImageTypes":
        """The image's types, from its BTF or DWARF, which is read when the first type is asked for."""
        ...

    @property
    def arch(self) -> "ArchFacts":
        """The machine: which registers hold arguments and results."""
        ...

    @property
    def bias(self) -> int:
        """What must be added to a link address to get the guest's address, in bytes; known once the image is loaded."""
        ...

    @property
    def memory(self) -> GuestMemory:
        """The guest's memory; available once the image is loaded."""
        ...

    def now(self) -> int:
        """The time in ns, as D's `timestamp` of a machine; available once the image is loaded."""
        ...

    def address_of(self, symbol: str) -> int | None:
        """The link address of a function or variable; None if there is none of this name."""
        ...

    def plant(self, description: str, called: Called, *, may_lack: bool = False) -> Point:
        """Plant a point, not armed yet, at every place of a description: `fbt::f:entry`, `fbt::f:return`,
        `kinst::f:12`, `kinst::0xADDRESS:`, `sdt:::NAME`. `called` gets the firing, with the arguments of that probe.
        With `may_lack` there may be no such place, such as the return of a function that never returns.

        Raises:
            ProbeNameError: the description is not one of code.
            ProbeError: the image was already patched, but not at that place.
        """
        ...


def fire(firing: Firing, enabling: Enabling) -> None:
    """Let one of the provider's own probes fire in place of the point. `firing` is what the point was called with."""
    firing.fire_instead(enabling)


class ImageHost:
    """A `ProviderHost`. The session reads `names` to plan its patches, and calls `attach` when the image is loaded."""

    def __init__(self, image: "Image", types: "ImageTypes") -> None:
        """`image` is the original one, without patches."""
        self.image = image
        self.types = types
        self.arch = image.facts
        self._points: list[PlantedPoint] = []
        self._sites: SiteTable | None = None
        self._memory: GuestMemory | None = None
        self._bias: int | None = None
        self._now: Callable[[], int] | None = None

    @property
    def names(self) -> tuple[ProbeName, ...]:
        """The probes at whose sites the image must be patched for the points."""
        return tuple(dict.fromkeys(name for point in self._points for name in point.names))

    def attach(self, sites: "SiteTable", memory: GuestMemory, bias: int, now: Callable[[], int]) -> None:
        """Connect the points with the image, which is patched and loaded. `now` gives the time in ns.

        Raises:
            ProbeError: a point is not among the patched places.
        """
        self._sites, self._memory, self._bias, self._now = sites, memory, bias, now
        for point in self._points:
            point.place(sites)

    @property
    def bias(self) -> int:
        """See `ProviderHost`."""
        if self._bias is None:
            raise ProbeError(f"{self.image.path}: a provider asks where the image is before it is loaded")
        return self._bias

    @property
    def memory(self) -> GuestMemory:
        """See `ProviderHost`."""
        if self._memory is None:
            raise ProbeError(f"{self.image.path}: a provider reads the guest's memory before there is a guest")
        return self._memory

    def now(self) -> int:
        """See `ProviderHost`."""
        if self._now is None:
            raise ProbeError(f"{self.image.path}: a provider asks for the time before there is a guest")
        return self._now()

    def address_of(self, symbol: str) -> int | None:
        """See `ProviderHost`."""
        return self.image.symbols.address_of(symbol)

    def plant(self, description: str, called: Called, *, may_lack: bool = False) -> "PlantedPoint":
        """See `ProviderHost`."""
        names = parse_probe_names(description, providers=("fbt", "kinst", "sdt"))
        point = PlantedPoint(names, called, may_lack=may_lack)
        if self._sites is not None:
            point.place(self._sites)
        self._points.append(point)
        return point


class PlantedPoint:
    """A `Point`. Its rows of the manifest are known once the image is patched."""

    def __init__(self, names: tuple[ProbeName, ...], called: Called, *, may_lack: bool) -> None:
        """It is placed, and armed, later."""
        self.names = names
        self._may_lack = may_lack
        self._called = called
        self._is_armed = False
        self._sites: SiteTable | None = None
        self._rows: list[int] = []

    @property
    def rows(self) -> tuple[int, ...]:
        """The rows of the manifest's probes; none before `place`, and where there are no such places."""
        return tuple(self._rows)

    @property
    def is_placed(self) -> bool:
        """See `Point`."""
        return bool(self._rows)

    def place(self, sites: "SiteTable") -> None:
        """Look its places up in the patched image. Raises ProbeError: they are not there, and may not lack."""
        self._rows = _rows_of(sites.manifest, self.names)
        if not self._rows and not self._may_lack:
            raise ProbeError(f"{', '.join(map(str, self.names))}: a provider's point is not among the patched places")
        self._sites = sites
        if self._is_armed:  # before the image was loaded
            sites.plant(self._rows, self._called)

    def arm(self) -> None:
        """See `Point`."""
        if not self._is_armed and self._sites is not None:
            self._sites.plant(self._rows, self._called)
        self._is_armed = True

    def disarm(self) -> None:
        """See `Point`."""
        if self._is_armed and self._sites is not None:
            self._sites.unplant(self._rows, self._called)
        self._is_armed = False


def _rows_of(manifest: Manifest, names: tuple[ProbeName, ...]) -> list[int]:
    found: list[int] = []
    for name in names:
        kinds = [int(kind) for kind, (provider, _) in PROBE_FORM.items() if name.matches_provider(provider)]
        rows = np.flatnonzero(np.isin(manifest.probes["kind"], kinds))
        found += matching_rows(manifest, rows, name).tolist()
        if name.provider == "sdt":
            static = np.flatnonzero(manifest.probes["kind"] == ProbeKind.SDT).tolist()
            found += [row for row in static if name.matches(*manifest.probe_fields(row))]
    return sorted(set(found))
