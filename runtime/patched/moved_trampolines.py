"""Instructions in code that moved -> trampolines for their present addresses, below those of the patched image.

This is only for machines whose trampolines jump back: one that ends with a breakpoint serves every copy.
"""

from typing import TYPE_CHECKING, Final

from kinst.runtime.trap.arch.registry import MovedTrampoline, moved_trampoline

if TYPE_CHECKING:
    from kinst.runtime.machine.loading.loaded import Loaded
    from kinst.runtime.machine.system import System

_LEAST: Final = 1 << 16  # bytes that the overlay grows by
_SPACE: Final = 64 << 20  # bytes that must be free for it


class MovedTrampolines:
    """Slots in an overlay that grows downwards from the image's own slots, so that all trampolines are one range."""

    def __init__(
        self, system: "System", make: MovedTrampoline, loaded: "Loaded", end: int, step: int | None = None
    ) -> None:
        """`loaded` is the image in the machine. `end` is where the slots end if the image has none. `step`: the bytes
        for each, if not those of the machine's longest trampoline."""
        self._make = make
        self._end = end
        self._loaded = loaded
        self._trap, self._space, self._engine = system.trap, system.space, system.engine
        breakpoints = system.arch.breakpoints
        self._slot_size = system.arch.slot_size
        self._filler = breakpoints[min(breakpoints)]  # a guest that jumps to a free slot traps
        self._step = step or system.arch.longest_trampoline
        self._free = range(0)  # addresses of free slots

    def slot(self, kind: int, instruction: bytes, address: int) -> int | None:
        """A trampoline for an instruction at `address`; None if it can have none or no space is left."""
        if not self._free and not self._grow():
            return None
        code = self._make(kind, instruction, address, self._free[0])
        if code is None:
            return None
        slot, self._free = self._free[0], self._free[1:]
        self._space.fill_overlay(slot, code)
        return slot

    def _grow(self) -> bool:
        end = self._trap.trampolines.start if self._trap.trampolines else self._below_image()
        size = max(_LEAST, len(self._trap.trampolines) & -_LEAST)  # twice as many each time
        start = end - size
        if start < 0 or any(start < base + length and base < end for base, _, length in self._loaded.segments):
            return False
        self._space.overlay(start, self._filler * (size // len(self._filler)))
        self._trap.reach_trampolines(range(start, self._trap.trampolines.stop or end))
        self._engine.set_trampolines(start, len(self._trap.trampolines), self._slot_size)
        self._free = range(start, end, self._step)
        return True

    def _below_image(self) -> int:
        """An end below the image, which may have been moved to where its trampolines would be."""
        end = self._end
        for base, _, size in sorted(self._loaded.segments, reverse=True):
            if base < end and end - _SPACE < base + size:
                end = base & -_LEAST
        return end


def moved_trampolines(system: "System", loaded: "Loaded", end: int) -> MovedTrampolines | None:
    """The slots for a machine; None if its trampolines serve every copy. `end` is the link address of the image's
    own."""
    make = moved_trampoline(system.arch)
    return None if make is None else MovedTrampolines(system, make, loaded, end)
