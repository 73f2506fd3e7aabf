"""A guest whose operating system is known -> the end of the run when its kernel has panicked for good.

A panic is recognised by variables of the kernel (`PanicSign`), read from memory where the image was loaded: not by text
on the console, which any program may print, nor by a breakpoint in panic(), which would change the guest. A kernel that
restarts after a panic never gets there: the variables change only when it is about to halt.

The names in a stripped kernel's own tables are not read when it runs without a program: that takes as long as to open
it. There, text on the console triggers reading them, and then the variables decide.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from kinst.runtime.clauses.profiles import PanicSign
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.device import Clock
from kinst.runtime.tracing.timers.periodic_check import PeriodicCheck
from kinst.targets.elf.symbols import STT_FUNC
from kinst.targets.image import Image
from kinst.targets.kernels.kernel_names import own_names

_PERIOD: Final = 10_000_000  # ns of the machine's time between two checks
_REST: Final = 20_000_000  # ns of silence on the console: the last line may come after the variables have changed
SUSPICIOUS: Final = b"end Kernel panic"
SignsOf = Callable[[Image], tuple[PanicSign, ...]]


def is_nameless(image: Image) -> bool:
    """Whether its symbols name no function."""
    return not (image.symbols.kind == STT_FUNC).any()


def named(image: Image) -> Image:
    """A stripped kernel with the names in its own tables."""
    return replace(image, symbols=image.symbols.joined(own_names(image)))


class Watched(Protocol):
    """A machine, ours or one that runs elsewhere."""

    @property
    def clock(self) -> Clock:
        """Its time."""
        ...

    def finish(self, end: End) -> None:
        """End the run."""
        ...


class PanicWatch:
    """Checks between two turns of the CPUs, so rarely that it costs nothing."""

    def __init__(
        self,
        system: Watched,
        read: Callable[[int, int], bytes],
        image: Image,
        physical: Callable[[int], int | None],
        signs_of: SignsOf,
    ) -> None:
        """`read` reads at a physical address, which `physical` gives for a link address. `image` has the symbols,
        `signs_of` gives the signs of its system."""
        self._system, self._read, self._physical, self._signs_of = system, read, physical, signs_of
        self._nameless = image if is_nameless(image) else None
        self._tail = b""  # the end of the console so far
        self._words: list[tuple[int, PanicSign]] = []
        self._is_known = False  # whether there are signs, and all of them are in memory
        self._pace = PeriodicCheck(_PERIOD)
        self._quiet_since: int | None = None  # None: it has not panicked
        self._find_signs(image)

    def on_console(self, data: bytes) -> None:
        """The guest prints something."""
        if self._quiet_since is not None:
            self._quiet_since = self._system.clock.now()
        if self._nameless is not None:
            self._tail = (self._tail + data)[-len(SUSPICIOUS) - len(data) :]  # the text may arrive in pieces
            if SUSPICIOUS in self._tail:
                image, self._nameless = self._nameless, None
                self._find_signs(named(image))

    def begin_anew(self) -> None:
        """Between two runs: the machine is as it was loaded, or as it was at an earlier time."""
        self._quiet_since = None
        self._begin()

    def check(self) -> None:
        """End the run if the kernel has panicked and has printed all of its message."""
        now = self._system.clock.now()
        if not self._pace.is_due(now):
            return
        if self._quiet_since is None:
            self._quiet_since = now if self._has_panicked() else None
        elif now - self._quiet_since >= _REST:
            self._pace.stop()
            self._system.finish(End.GUEST_PANIC)

    def _find_signs(self, image: Image) -> None:
        """Find the variables in physical memory. Unless all of them are there, nothing is checked."""
        signs = self._signs_of(image)
        addresses = [image.symbols.address_of(sign.symbol) for sign in signs]
        places = [None if address is None else self._physical(address) for address in addresses]
        self._words = [(place, sign) for place, sign in zip(places, signs, strict=True) if place is not None]
        self._is_known = bool(signs) and len(self._words) == len(signs)
        self._begin()

    def _begin(self) -> None:
        if self._is_known:
            self._pace.begin()
        else:
            self._pace.stop()

    def _has_panicked(self) -> bool:
        return all(int.from_bytes(self._read(place, sign.size), "little") != sign.before for place, sign in self._words)
