"""A guest that runs, and its room -> the room in the page tables of its kernel, from the first to the last ones.

A kernel maps itself several times while it boots: for its first instructions, and for good. At each instruction that
gives the MMU other tables the guest is stopped, and the room is added to them, before it can be needed. Programs'
tables are copies of the kernel's half: when the kernel's last tables have the room, or others have it without our
doing, the guest is left alone for good.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np

from kinst.runtime.live.ram import SharedRam
from kinst.runtime.live.room.debugger import Debugger
from kinst.runtime.live.room.layout import Layout
from kinst.runtime.live.room.regime import Regime, Root
from kinst.runtime.live.room.registry import regime_of
from kinst.runtime.live.room.tables import Tables
from kinst.runtime.readout.memory import UnreadableError
from kinst.targets.errors import MachineError
from kinst.targets.image import Image
from kinst.targets.kernels.labelled_code import labelled_code
from kinst.targets.module_code import code_of
from kinst.targets.patterns import matches
from kinst.targets.spans import Spans, covered, united

_SETTLED: Final = 4  # stops in a row at which tables had the room: early ones may be loaded twice
_LAST: Final = "swapper_pg_dir"  # the root that a kernel keeps, on both machines
_INIT: Final = (("_sinittext", "_einittext"),)
_OFTEN: Final = 500_000  # ns between looks at a guest that may be at a breakpoint
_PC: Final = 32  # its number for gdb on both machines


@dataclass(frozen=True, slots=True)
class Place:
    """Where a kernel with a room is: the room's layout, the physical address of its code, and the link address of some
    code of the kernel's."""

    layout: Layout
    code: int
    text: int

    def physical(self, link: int) -> int:
        """The physical address of a link address."""
        return link - self.layout.code.start + self.code


class _State(Enum):
    """What tables have been found to have."""

    NO_KERNEL = 0
    THERE = 1  # the room
    ADDED = 2  # the kernel only, and the room now


class Mapper:
    """Adds the room of one guest to its tables."""

    interval = _OFTEN

    def __init__(self, image: Image, place: Place, memory: SharedRam, debugger: Debugger) -> None:
        """Set the breakpoints; the guest has not begun. Raises StubError."""
        self._place, self._memory = place, memory
        self._regime, self._debugger = regime_of(image.facts), debugger
        self._loads = dict[int, int]()  # the words of instructions, by address
        # Few of them: QEMU compares each wherever a block of code ends in a jump that has to be looked up.
        early = _early(image)
        for link, word in _loads(image, self._regime):
            self._loads[link] = word
            if early is None or covered(early, np.array([link], np.uint64))[0]:
                self._loads[place.physical(link)] = word  # before the MMU is on
        last = image.symbols.address_of(_LAST)
        self._last = None if last is None else place.physical(last)
        self._free = place.physical(place.layout.tables.start)
        self._settled, self._is_done = 0, False
        debugger.set_breakpoints(self._loads)

    @property
    def is_done(self) -> bool:
        """Whether the guest is not stopped any more."""
        return self._is_done

    def poll(self) -> None:
        """Called often. Raises MachineError: the kernel moves, or QEMU is gone."""
        if not self._is_done and self._debugger.has_stopped():
            self._at_stop()

    def close(self) -> None:
        """Leave a guest that is at its end."""
        self._debugger.close()
        self._is_done = True

    def check(self) -> None:
        """See `Stops`: tables that lack the room show themselves."""

    def _at_stop(self) -> None:
        at = self._debugger.register(_PC)
        if at in self._loads:
            root = self._regime.root(self._loads[at], self._debugger)
            if root is not None:
                self._settle(self._state(root), root.address)
        if self._is_done:
            self._debugger.leave()
        else:
            self._debugger.go_on(at)

    def _settle(self, found: _State, root: int) -> None:
        """Note what tables have now. Each breakpoint makes its page of code slow, so the guest is left early."""
        if found is _State.ADDED:
            self._settled = 0
        elif found is _State.THERE:
            self._settled += 1
        is_last = root == self._last and found is not _State.NO_KERNEL
        self._is_done = is_last or self._settled >= _SETTLED

    def _state(self, root: Root) -> _State:
        """Add the room to tables that lack it, if they map the kernel where it is linked. They may also map it to where
        it is, for a moment: that does not count."""
        tables, text = Tables(root.form, root.address, self._memory, self._page), self._place.text
        try:
            found = self._added(tables, root, 0) if root.has_kernel else _State.NO_KERNEL
            if root.has_kernel and found is _State.NO_KERNEL:
                self._check_moved(tables)
            if root.has_identity and self._added(tables, root, self._place.physical(text) - text) is _State.ADDED:
                found = _State.ADDED
        except UnreadableError:  # no tables: a register that is not in use yet
            return _State.NO_KERNEL
        return found

    def _added(self, tables: Tables, root: Root, distance: int) -> _State:
        """The same, for addresses that are so far from the link addresses."""
        text, layout = self._place.text, self._place.layout
        leaf = tables.leaf(text + distance)
        if leaf is None or leaf[1] != self._place.physical(text) or not root.form.is_code(leaf[0]):
            return _State.NO_KERNEL
        if tables.leaf(layout.data.start + distance) is not None:
            return _State.THERE
        self._add(tables, leaf[0], distance)
        return _State.ADDED

    def _add(self, tables: Tables, text: int, distance: int) -> None:
        """Map the room so far from its link addresses."""
        layout = self._place.layout
        for part, is_code in ((layout.data, False), (layout.code, True)):
            tables.add(text, part.start + distance, self._place.physical(part.start), len(part), is_code=is_code)

    def _check_moved(self, tables: Tables) -> None:
        """Raises MachineError: they map the kernel elsewhere."""
        text = self._place.text
        own = self._place.physical(text) % tables.span
        moved = next((one for one in tables.code_at(self._place.physical(text)) if one != own), None)
        if moved is not None:
            raise MachineError(
                f"the kernel moves itself by {(moved - text) % tables.span:#x} bytes (KASLR), away from the "
                "trampolines in front of it: add nokaslr to --append"
            )

    def _page(self, size: int) -> int:
        """A page for another table, aligned to its size. Raises MachineError: there are no more."""
        start = self._free + -self._free % size
        if start + size > self._place.physical(self._place.layout.tables.stop):
            raise MachineError("the kernel uses more page tables than there is room for ours in")
        self._free = start + size
        return start


def _early(image: Image) -> Spans | None:
    """The code that also runs at its physical addresses; None: all of it may."""
    identity = labelled_code(image, image.facts.linux.identity)
    return united(np.concatenate([identity, labelled_code(image, _INIT)])) if len(identity) else None


def _loads(image: Image, regime: Regime) -> Iterator[tuple[int, int]]:
    """The instructions that load a root: link addresses and words. Not those of code that is no part of the kernel when
    it runs, such as its hypervisor's."""
    apart = labelled_code(image, image.facts.linux.elsewhere)
    for region in image.code_regions:
        code = code_of(image, region)
        for at in range(0, 4, regime.step):
            words = code[at : at + (len(code) - at) // 4 * 4].view("<u4").astype(np.uint64)
            for row in np.flatnonzero(matches(words, (regime.load,))).tolist():
                address = region.address + at + 4 * row
                if not covered(apart, np.array([address], np.uint64))[0]:
                    yield address, int(words[row])
