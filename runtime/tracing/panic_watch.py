"""A guest whose system is known -> the end of the run when its kernel has panicked for good.

What tells it are variables of the kernel's own (`PanicSign`), read in memory where the image was loaded. No text of the
console does, which any program may print; no code is hooked, which every hit of it would pay for; and nothing of the
guest changes. A kernel that restarts after a panic never comes that far.
"""

from typing import Final

from kinst.runtime.clauses.profiles import PanicSign
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.loaded import Loaded
from kinst.runtime.machine.system import System
from kinst.targets.image import Image

_PERIOD: Final = 10_000_000  # ns of the machine's time between two looks
_REST: Final = 20_000_000  # ns without a word on the console: its last line may come behind the signs


class PanicWatch:
    """Looks between two turns of the CPUs, rarely enough to cost nothing."""

    def __init__(self, system: System, image: Image, loaded: Loaded, signs: tuple[PanicSign, ...]) -> None:
        """`image` has the symbols. Nothing is looked for if it does not have those of the signs."""
        self._system = system
        self._words = [(place, sign) for sign in signs if (place := _place(image, loaded, sign)) is not None]
        self._next = 0 if signs and len(self._words) == len(signs) else None
        self._quiet_since: int | None = None  # None: it has not panicked

    def hear(self) -> None:
        """The guest prints something."""
        if self._quiet_since is not None:
            self._quiet_since = self._system.clock.now()

    def look(self) -> None:
        """End the run if the kernel has panicked and has said all that it had to say."""
        if self._next is None or self._system.clock.now() < self._next:
            return
        now = self._system.clock.now()
        self._next = now + _PERIOD
        if self._quiet_since is None:
            self._quiet_since = now if self._has_panicked() else None
        elif now - self._quiet_since >= _REST:
            self._next = None
            self._system.finish(End.GUEST_PANIC)

    def _has_panicked(self) -> bool:
        memory = self._system.memory
        return all(
            int.from_bytes(memory.read(place, sign.size), "little") != sign.before for place, sign in self._words
        )


def _place(image: Image, loaded: Loaded, sign: PanicSign) -> int | None:
    """Where the variable is in physical memory."""
    address = image.symbols.address_of(sign.symbol)
    return None if address is None else loaded.physical(address)
