"""A standalone image's trampolines and counters in a machine -> an error as soon as other code stores to them.

Memory for them is chosen because the guest seems not to use it. If it does, its data is corrupt and counts are
nonsense, so the run must fail. No hit costs more for this check:

- Their pages are write-protected in the TLB until the first store to each. The PC of that store shows whether it is a
  trampoline that counts, or other code.
- Later stores are known by what they leave: changed bytes in trampolines, and counters with impossible values. Counters
  start at large values (`drawn_counters`), which nothing but an increment leaves plausible.
- When such a trace is found, the guest runs on for a while with the pages protected all the time, in order to name the
  code: what uses memory as its own will store to it again.

Counters in the image's own .bss are cleared by the guest: for these only an implausible count is noticed, and that they
were cleared. Memory that also holds data of the image is not protected.
"""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.physical.frames import PAGE
from kinst.runtime.machine.system import System
from kinst.runtime.tracing.standalone.drawn_counters import first_wrong, is_of_image, start_values
from kinst.runtime.tracing.standalone.steady_code import SteadyCode
from kinst.targets.errors import MachineError
from kinst.targets.kernels.leading_records import LONGEST, led_elsewhere
from kinst.targets.manifest.packed import Manifest
from kinst.targets.standalone import WORD, Standalone

_EVERY: Final = 64  # turns of a CPU between two checks of the counters
_MOST_TURNS: Final = 10_000  # turns in which another store is waited for: some seconds

Range = tuple[int, int]  # a physical address, and a size in bytes


class ForeignStores:
    """The memory of one image's trampolines and counters; implements `watching.page_watchers.StoreGuard`.

    `start` is the physical address of the counters or the ring.
    """

    def __init__(
        self,
        manifest: Manifest,
        kept: Standalone,
        system: System,
        loaded: Loaded,
        start: int,
        place: Callable[[int], str],
        *,
        is_made_here: bool,
    ) -> None:
        """The image is loaded. `place` names an address; `is_made_here`: by --method jump.

        Raises:
            MachineError: trampolines are not in memory as the file has them.
        """
        self._manifest, self._kept, self._system, self._loaded = manifest, kept, system, loaded
        self._start, self._place, self._is_made_here = start, place, is_made_here
        self._own = self._own_segment()
        self._led = self._written_by_kernel()
        pieces = ((at, system.memory.read(at, size)) for at, size in self._trampolines())
        self._code = [SteadyCode.of(at, code, self._led) for at, code in pieces]
        if not is_made_here:
            self._check_loaded()
        may_clear = is_of_image(loaded.image, manifest, kept.address)
        has_memory = system.memory.has(start, kept.size)
        self._has_data = has_memory and not may_clear
        begun = start_values(kept, len(manifest.sites), may_clear=may_clear)
        has_room = has_memory and kept.size >= begun.offset + begun.size  # unless the manifest lies
        self._begun = begun if has_room else begun.as_loaded
        self.is_broken = False  # the error was raised, and counts mean nothing
        self._turns, self._found = 0, ""

    def _own_segment(self) -> Range | None:
        """The segment that was added for the trampolines, if it is in memory."""
        first = self._manifest.trampolines[0] + self._loaded.bias
        found = ((physical, size) for virtual, physical, size in self._loaded.segments if virtual == first)
        return next((one for one in found if self._system.memory.has(*one)), None)

    def _trampolines(self) -> Iterator[Range]:
        """Where trampolines are: in their own segment, or in pieces of the image's code (`manifest.jumps`)."""
        if self._own is not None:
            yield self._own[0], min(self._own[1], self._manifest.trampolines[1])
            return
        jumps, starts = self._manifest.jumps, np.sort(self._manifest.sites["trampoline"])
        first, end = jumps["address"], jumps["address"] + jumps["size"]
        held = np.searchsorted(starts, end) - np.searchsorted(starts, first)
        for row in np.flatnonzero(held).tolist():
            at, size = self._loaded.physical(int(first[row])), int(jumps["size"][row])
            if at is not None and self._system.memory.has(at, size):
                yield at, size

    def _written_by_kernel(self) -> NDArray[np.uint64]:
        """The physical addresses of displaced instructions that the guest's kernel writes over."""
        led = led_elsewhere(self._loaded.image, self._manifest).tolist()
        found = (self._loaded.physical(address) for address in led)
        return np.array(sorted(one for one in found if one is not None), np.uint64)

    def _check_loaded(self) -> None:
        """Check that the trampolines were loaded. A boot loader may leave out a segment that the image's own header
        (Linux' Image, Multiboot) does not cover."""
        address, image = self._manifest.trampolines[0], self._loaded.image
        if self._own is not None and self._code[0].code != image.read(address, len(self._code[0].code)):
            raise MachineError(f"{image.path}: its loader leaves out {address:#x}, and with it its trampolines")

    # -- the run ------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Prepare the memory before anything runs."""
        if self._begun.words.any():
            self._system.memory.write(self._start + self._begun.offset, self._begun.data)
        self._guard()

    def _guard(self) -> None:
        pages = {page for at, size in self._ranges for page in range(at // PAGE, -(-(at + size) // PAGE))}
        if pages:
            self._system.space.guard(pages, self)

    @property
    def _ranges(self) -> tuple[Range, ...]:
        """The memory that is ours alone."""
        own = () if self._own is None else (self._own,)
        return (*own, (self._start, self._kept.size)) if self._has_data else own

    def counted(self, data: bytes) -> bytes:
        """The counts: the memory from the first counter on, without the start values."""
        return self._begun.counted(data)

    @property
    def is_cleared(self) -> bool:
        """Whether the image has cleared its counters or its ring, with what was counted or recorded before."""
        begun = self._begun
        if not begun.words.any():
            return False
        return begun.is_cleared(self._system.memory.read(self._start + begun.offset, begun.size))

    def after_turn(self) -> None:
        """Check, between two turns of a CPU. Raises MachineError: as `is_clean`."""
        self._turns += 1
        if self._found:
            if self._turns > _MOST_TURNS:
                raise self._error(self._found)
            self._guard()
        elif self._turns % _EVERY == 0 and (found := self._wrong_counter()):
            self._search_culprit(found)

    def is_clean(self, *, is_last: bool) -> bool:
        """Whether no other code has stored there so far.

        Raises:
            MachineError: some has, and this is the last check. It is raised once.
        """
        if self.is_broken:
            return False
        found = self._found or self._changed_trampoline() or self._wrong_counter()
        if found and is_last:
            raise self._error(found)
        if found and not self._found:
            self._search_culprit(found)
        return not found

    def _search_culprit(self, found: str) -> None:
        """Something was found: from now on, protect all pages all the time, to find the code that does it.

        Before that they are protected only once: each time flushes the TLB, after which Unicorn may make it smaller.
        """
        self._turns, self._found = 0, found
        self._guard()

    def _changed_trampoline(self) -> str:
        """The first trampoline byte that was overwritten, as text; empty: there is none."""
        for one in self._code:
            at = one.difference(self._system.memory.read(one.address, len(one.code)))
            if at is not None:
                return f"a trampoline at {self._link(at):#x}"
        return ""

    def _wrong_counter(self) -> str:
        """The first counter with an impossible count, as text; empty: there is none."""
        if not self._kept.has_counters or not self._system.memory.has(self._start, self._kept.size):
            return ""
        wrong = first_wrong(self.counted(self._system.memory.read(self._start, self._begun.size)))
        return "" if wrong is None else f"a counter at {self._kept.address + WORD * wrong:#x}"

    # -- stores -------------------------------------------------------------------------------------------------------

    def is_own(self, pc: int, page: int) -> bool:
        """See `StoreGuard`. A trampoline stores only to the counters or the ring, unless it holds a displaced store of
        the guest's, which may go anywhere."""
        first, last = self._start // PAGE, (self._start + self._kept.size - 1) // PAGE
        if not first <= page <= last or self._trampoline(pc) is None:
            return False
        if self._found:
            self._system.engine.stop()  # so that the page is protected again before the next store
        return True

    def stored(self, pc: int, address: int) -> None:
        """See `StoreGuard`. Raises MachineError."""
        physical = self._system.space.observe(address)
        if self.is_broken or physical is None or not any(at <= physical < at + size for at, size in self._ranges):
            return
        row = int(np.searchsorted(self._led, np.uint64(physical), "right")) - 1
        if row >= 0 and physical - int(self._led[row]) < LONGEST:
            return
        site = self._trampoline(pc)
        place = self._place(pc if site is None else site)
        if found := self._found or self._wrong_counter():
            raise self._error(f"{found}, and goes on at {self._link(physical):#x} in {place}")
        at, ring = physical - self._start, self._kept.ring - self._kept.address
        what = "a ring" if self._kept.has_ring and at >= ring else "a counter"
        is_data = 0 <= at < self._kept.size
        raise self._error(f"{what if is_data else 'a trampoline'} at {self._link(physical):#x} in {place}")

    def _trampoline(self, pc: int) -> int | None:
        """The address of the site whose trampoline a PC is in, virtual or physical; None: in none."""
        for physical in (self._loaded.physical(pc - self._loaded.bias), pc):
            if physical is not None and any(0 <= physical - one.address < len(one.code) for one in self._code):
                sites = self._manifest.sites
                order = np.argsort(sites["trampoline"], kind="stable")
                behind = np.searchsorted(sites["trampoline"][order], np.uint64(self._link(physical)), "right")
                return int(sites["address"][order[max(int(behind) - 1, 0)]]) + self._loaded.bias
        return None

    def _link(self, physical: int) -> int:
        """The link address of what is at a physical address; the address itself if it is not the image's."""
        if 0 <= physical - self._start < self._kept.size:
            return physical - self._start + self._kept.address
        for virtual, start, size in self._loaded.segments:
            if 0 <= physical - start < size:
                return physical - start + virtual - self._loaded.bias
        return physical

    def _error(self, what: str) -> MachineError:
        self.is_broken = True
        instead = "name memory that it leaves alone (kinst-rewrite --trampoline-base, --data-base)"
        return MachineError(
            f"the image itself stored to {what}: what it did and counted then means nothing: "
            f"{'leave out --method jump' if self._is_made_here else instead}"
        )
