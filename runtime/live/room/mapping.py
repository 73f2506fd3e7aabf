"""A guest that runs, and its room -> the room in the page tables of its kernel, from the first to the last ones.

A kernel maps itself several times while it boots: for its first instructions, and for good. At each instruction that
gives the MMU other tables the guest is stopped, and the room is added to them, before it can be needed: as far from the
kernel as it was linked, wherever the kernel maps itself (KASLR). Programs' tables are copies of the kernel's half: when
the kernel's last tables have the room, or others have it without our doing, the guest is left alone for good.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, assert_never

from kinst.runtime.live.ram import SharedRam
from kinst.runtime.live.room.debugger import Debugger
from kinst.runtime.live.room.layout import Layout
from kinst.runtime.live.room.listing import claim
from kinst.runtime.live.room.regime import Root
from kinst.runtime.live.room.registry import regime_of
from kinst.runtime.live.room.stops import Stop, Why, is_hypervisor, is_listed, stops_of
from kinst.runtime.live.room.tables import Tables
from kinst.runtime.readout.memory import UnreadableError
from kinst.targets.errors import MachineError
from kinst.targets.image import Image
from kinst.targets.manifest.packed import Manifest
from kinst.targets.values import dataclass

_SETTLED: Final = 4  # stops in a row at which tables had the room: early ones may be loaded twice
_LAST: Final = "swapper_pg_dir"  # the root that a kernel keeps, on both machines
_LIST: Final = "vmlist"  # Linux: what its early code has mapped where vmalloc would
_PC: Final = 32  # its number for gdb on both machines
_REGISTER: Final = 0x1F  # of an instruction
_ADDRESSES: Final = 1 << 64


@dataclass(frozen=True, slots=True)
class Place:
    """Where a kernel with a room is: the room's layout, the physical address of its code, the link address of some
    code of the kernel's, and from the room's beginning to the kernel's end, in bytes."""

    layout: Layout
    code: int
    text: int
    size: int

    def physical(self, link: int) -> int:
        """The physical address of a link address."""
        return link - self.layout.code.start + self.code


class _State(Enum):
    """What tables have been found to have."""

    NO_KERNEL = 0
    THERE = 1  # the room
    ADDED = 2  # the kernel only, and the room now


class Mapper:
    """Adds the room of one guest to its tables; implements `kinst.runtime.live.room.driving.Follows`."""

    def __init__(
        self,
        image: Image,
        manifest: Manifest,
        place: Place,
        memory: SharedRam,
        debugger: Debugger,
        on_moved: Callable[[int], None],
    ) -> None:
        """Set the breakpoints; the guest has not begun. `on_moved` is called with the bytes by which the kernel turns
        out to have moved from its link addresses. Raises StubError."""
        self._place, self._memory, self._on_moved = place, memory, on_moved
        self._regime, self._debugger = regime_of(image.facts), debugger
        self._is_hypervisor = is_hypervisor(image, self._regime)
        self._known = stops_of(image, manifest, self._regime)
        self._is_listed = is_listed(image, self._regime)
        last, listed = image.symbols.address_of(_LAST), image.symbols.address_of(_LIST)
        self._last = None if last is None else place.physical(last)
        self._list = None if listed is None else place.physical(listed)
        self._free = place.physical(place.layout.tables.start)
        self._moved = self._settled = 0
        self._is_settled = False
        self._is_claimed = True  # whether the kernel knows that the room is taken, where it might give it away
        self._stops = dict[int, Stop]()
        self._set_stops()

    def _set_stops(self) -> None:
        """Stop where the kernel is now."""
        self._stops = {self._place.physical(one.link): one for one in self._known if one.is_loaded}
        self._stops |= {(one.link + self._moved) % _ADDRESSES: one for one in self._known if one.is_linked}
        self._debugger.set_breakpoints(self._stops)

    def check(self) -> None:
        """See `Follows`: tables that lack the room show themselves."""

    def at_stop(self) -> None:
        """See `Follows`. Raises MachineError: the kernel moves, or QEMU is gone."""
        at = self._debugger.register(_PC)
        if at in self._stops:
            self._stopped(self._stops[at])
        if self._is_settled and self._is_claimed:
            self._debugger.leave()
        else:
            self._debugger.go_on(at)

    def _stopped(self, stop: Stop) -> None:
        match stop.why:
            case Why.LOAD:
                root = self._regime.root(stop.word, self._debugger)
                if root is not None:
                    self._settle(self._state(root, stop), root.address)
            case Why.ENABLED | Why.ENTERED:
                for root in self._current(stop):
                    if self._state(root, stop) is _State.ADDED:
                        self._settled = 0
            case Why.LISTED:
                self._claim()
            case _:
                assert_never(stop.why)

    def _current(self, stop: Stop) -> Sequence[Root]:
        """The roots that are in use after a stop at which none is loaded."""
        is_off = stop.why is Why.ENABLED and not self._debugger.register(stop.word & _REGISTER) & 1
        return () if is_off else self._regime.current(self._debugger, is_hypervisor=self._is_hypervisor)

    def _settle(self, found: _State, root: int) -> None:
        """Note what tables have now. Each breakpoint makes its page of code slow, so the guest is left early."""
        if found is _State.ADDED:
            self._settled = 0
        elif found is _State.THERE:
            self._settled += 1
        is_last = root == self._last and found is not _State.NO_KERNEL
        self._is_settled |= is_last or self._settled >= _SETTLED

    def _state(self, root: Root, stop: Stop) -> _State:
        """Add the room to tables that lack it, if they map the kernel. They may also map it to where it is, for a
        moment: that does not count. Of a hypervisor it may be no more than the page of the stop."""
        tables, text = Tables(root.form, root.address, self._memory, self._page), self._place.text
        low = stop.link if self._is_hypervisor else text
        try:
            found = self._found(tables, root, text) if root.has_kernel else _State.NO_KERNEL
            if root.has_identity and self._added(tables, root, low, self._place.physical(low) - low) is _State.ADDED:
                found = _State.ADDED
        except UnreadableError:  # no tables: a register that is not in use yet
            return _State.NO_KERNEL
        return found

    def _found(self, tables: Tables, root: Root, text: int) -> _State:
        """The same for the kernel's addresses, which may be others than before."""
        found = self._added(tables, root, text, self._moved)
        if found is _State.NO_KERNEL and (moved := self._moved_by(tables)) is not None:
            self._move(moved)
            found = self._added(tables, root, text, moved)
        return found

    def _added(self, tables: Tables, root: Root, text: int, distance: int) -> _State:
        """The same, for addresses that are so far from the link addresses, by the link address of some code."""
        layout = self._place.layout
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

    def _moved_by(self, tables: Tables) -> int | None:
        """How far from their link addresses they map the kernel; None: they do not."""
        text, physical = self._place.text, self._place.physical(self._place.text)
        found = (one for one in tables.code_at(physical) if one != physical % tables.span)
        return next((one - text % tables.span for one in found), None)

    def _move(self, by: int) -> None:
        """Follow the kernel. Raises MachineError: names would be ambiguous, or it would not know of the room."""
        if abs(by) < self._place.size:
            why = "less than its size, so that names of addresses would be ambiguous"
        elif self._is_listed and (self._list is None or all(one.why is not Why.LISTED for one in self._known)):
            why = "and has no list by which it could be told of the trampolines in front of it"
        else:
            self._moved, self._is_claimed = by, not self._is_listed
            self._set_stops()
            self._on_moved(by)
            return
        raise MachineError(f"the kernel moves itself by {by:#x} bytes (KASLR), {why}: add nokaslr to --append")

    def _claim(self) -> None:
        """Let the kernel's list of its own memory begin with the room. Raises MachineError: the kernel is not in it."""
        if self._list is not None and self._moved:
            room = self._place.layout
            start, text = room.start + self._moved, self._place.text + self._moved
            claim(self._memory, self._list, start, text, lambda one: self._place.physical(one - self._moved))
        self._is_claimed = True

    def _page(self, size: int) -> int:
        """A page for another table, aligned to its size. Raises MachineError: there are no more."""
        start = self._free + -self._free % size
        if start + size > self._place.physical(self._place.layout.tables.stop):
            raise MachineError("the kernel uses more page tables than there is room for ours in")
        self._free = start + size
        return start
