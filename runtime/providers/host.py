"""What a third party's provider is given: the image, the guest's memory, and places in its code to be called at.

A package plugs in through the entry-point group `kinst.providers`: an entry point is a callable that takes a
`ProviderHost` and returns a `Provider` that has the entry point's name. It is called once for each run that names it
(`kinst.runtime.providers.plugged`), before the program is compiled, and plants its points then; nothing is written into
the guest's code until one is armed. `samples/providers` is such a package.
"""

from collections.abc import Callable
from typing import Final, Protocol

import numpy as np

from kinst.runtime.paging.walker import PageFault
from kinst.runtime.patched.sites import SiteTable
from kinst.runtime.providers.site_provider import matching_rows
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.errors import ProbeError
from kinst.targets.image import Image
from kinst.targets.manifest import PROBE_FORM, Manifest
from kinst.targets.probe import ProbeName, parse_probe_names

Called = Callable[[Firing], None]
Load = Callable[[int, int], int]
_WORD: Final = 8


class GuestMemory(Protocol):
    """The guest's virtual memory, as the CPU sees it that runs. A bad address raises `Fault`: BADADDR."""

    def load(self, address: int, size: int) -> int:
        """A little-endian unsigned word of 1, 2, 4 or 8 bytes."""
        ...

    def read(self, address: int, size: int) -> bytes:
        """Bytes."""
        ...

    def string(self, address: int, limit: int) -> bytes:
        """Bytes up to the NUL, without it, at most `limit`."""
        ...


class Point(Protocol):
    """Places in the guest's code where a provider is called, armed or not."""

    def arm(self) -> None:
        """Call from now on, before the instruction there executes."""
        ...

    def disarm(self) -> None:
        """The code is its own again."""
        ...


class ProviderHost(Protocol):
    """The run that a provider is part of."""

    @property
    def image(self) -> Image:
        """The image as it was built, with link addresses."""
        ...

    @property
    def arch(self) -> ArchFacts:
        """The machine: which registers hold arguments and results."""
        ...

    @property
    def bias(self) -> int:
        """What is added to a link address to get the guest's; known once the image is loaded."""
        ...

    @property
    def memory(self) -> GuestMemory:
        """The guest's memory, while it runs."""
        ...

    def address_of(self, symbol: str) -> int | None:
        """The link address of a function or variable."""
        ...

    def plant(self, description: str, called: Called) -> Point:
        """A point at every place of a description: `fbt::f:entry`, `fbt::f:return`, `kinst::f:12`,
        `kinst::0xADDRESS:`. `called` gets the firing with the arguments of that place: those of fbt, for one. It is not
        armed yet.

        Raises:
            ProbeNameError: not a description of code.
            ProbeError: the image is patched already, and not there.
        """
        ...


def fire(firing: Firing, enabling: Enabling) -> None:
    """From what a point is called with: let a probe of the provider's own fire in its place."""
    point = firing.enabling
    firing.enabling = enabling
    try:
        enabling.action(firing)
    finally:
        firing.enabling = point


class ImageHost:
    """See `ProviderHost`. The session reads `names` when it plans its patches, and calls `attach` when it has."""

    def __init__(self, image: Image) -> None:
        """`image` is the original, not patched."""
        self.image = image
        self.arch = image.facts
        self._points: list[_PlantedPoint] = []
        self._sites: SiteTable | None = None
        self._memory: GuestMemory | None = None
        self._bias: int | None = None

    @property
    def names(self) -> tuple[ProbeName, ...]:
        """What has to be patched for the points there are."""
        return tuple(dict.fromkeys(name for point in self._points for name in point.names))

    def attach(self, sites: SiteTable, memory: GuestMemory, bias: int) -> None:
        """The image is patched and loaded.

        Raises:
            ProbeError: a point is not among the patched places.
        """
        self._sites, self._memory, self._bias = sites, memory, bias
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

    def address_of(self, symbol: str) -> int | None:
        """See `ProviderHost`."""
        return self.image.symbols.address_of(symbol)

    def plant(self, description: str, called: Called) -> Point:
        """See `ProviderHost`."""
        point = _PlantedPoint(parse_probe_names(description, providers=("fbt", "kinst")), called)
        if self._sites is not None:
            point.place(self._sites)
        self._points.append(point)
        return point


class _PlantedPoint:
    """See `Point`. The rows of the manifest are known once the image is patched."""

    def __init__(self, names: tuple[ProbeName, ...], called: Called) -> None:
        self.names = names
        self._called = called
        self._is_armed = False
        self._sites: SiteTable | None = None
        self._rows: list[int] = []

    def place(self, sites: SiteTable) -> None:
        self._rows = _rows_of(sites.manifest, self.names)
        if not self._rows:
            raise ProbeError(f"{', '.join(map(str, self.names))}: a provider's point is not among the patched places")
        self._sites = sites
        if self._is_armed:
            sites.plant(self._rows, self._called)

    def arm(self) -> None:
        if not self._is_armed and self._sites is not None:
            self._sites.plant(self._rows, self._called)
        self._is_armed = True

    def disarm(self) -> None:
        if self._is_armed and self._sites is not None:
            self._sites.unplant(self._rows, self._called)
        self._is_armed = False


def _rows_of(manifest: Manifest, names: tuple[ProbeName, ...]) -> list[int]:
    found: list[int] = []
    for name in names:
        kinds = [int(kind) for kind, (provider, _) in PROBE_FORM.items() if name.matches_provider(provider)]
        rows = np.flatnonzero(np.isin(manifest.probes["kind"], kinds))
        found += matching_rows(manifest, rows, name).tolist()
    return sorted(set(found))


class CpuMemory:
    """The memory of the CPU that runs, word by word."""

    def __init__(self, load: Load) -> None:
        """`load` reads a word and raises `PageFault`."""
        self._load = load

    def load(self, address: int, size: int) -> int:
        """See `GuestMemory`."""
        try:
            return self._load(address, size)
        except PageFault:
            raise Fault(FaultKind.BADADDR, address) from None

    def read(self, address: int, size: int) -> bytes:
        """See `GuestMemory`."""
        head = min(size, -address % _WORD)
        words, tail = divmod(size - head, _WORD)
        parts = [self.load(address + at, 1).to_bytes(1, "little") for at in range(head)]
        start = address + head
        parts += [self.load(start + at * _WORD, _WORD).to_bytes(_WORD, "little") for at in range(words)]
        start += words * _WORD
        parts += [self.load(start + at, 1).to_bytes(1, "little") for at in range(tail)]
        return b"".join(parts)

    def string(self, address: int, limit: int) -> bytes:
        """See `GuestMemory`."""
        text = bytearray()
        while len(text) < limit:
            size = min(limit - len(text), _WORD - (address + len(text)) % _WORD)
            piece, end, _ = self.read(address + len(text), size).partition(b"\0")
            text += piece
            if end:
                break
        return bytes(text)
