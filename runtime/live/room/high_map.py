"""A PC's Linux and the room behind it -> the room in the table that maps the kernel, from its first tables on.

One table has an entry for each 2 MiB of the addresses at which kernels are linked (`level2_kernel_pgt`), and all roots
of all CPUs and programs lead to it. So the room is mapped once, and stays. Until then the guest is stopped

- where the kernel is entered: the room is taken from its RAM. It still runs at physical addresses, by tables of its
  boot loader's that map them all;
- where it gives the MMU its first own tables, from which it has just removed all that it is not;
- where `cleanup_highmap` begins and ends, which does so again: meanwhile a copy of the table is in its place, so that
  the functions that it calls find the room;
- where `pti_init` ends, if user mode has tables of its own, which have little of the kernel: what comes in by an
  interrupt or a system call runs by these at first;
- before the kernel makes its text read-only, and checks that nothing may be both written and executed. Until then it
  writes to text, and to the copies of what its tables lead to in the trampolines.

(Intel SDM volume 3, 4.5; arch/x86/kernel/head64.c, arch/x86/mm/init_64.c, arch/x86/mm/pti.c.)
"""

from typing import Final

from kinst.runtime.live.ram import SharedRam
from kinst.runtime.live.room.behind import CLEANUP, FREEING, Behind, first_loads
from kinst.runtime.live.room.debugger import Debugger
from kinst.runtime.live.room.e820 import reserve
from kinst.runtime.live.room.stopping import Stops
from kinst.runtime.readout.memory import Space, UnreadableError
from kinst.targets.image import Image

COUNTER: Final = 16  # RIP, for gdb
_PTI: Final = "pti_init"
_P, _W, _A, _D, _PS = 1 << 0, 1 << 1, 1 << 5, 1 << 6, 1 << 7
_NX: Final = 1 << 63
_PAGE: Final = _P | _A | _D | _PS  # write-back, not global, the kernel's
_ADDRESS: Final = (1 << 52) - (1 << 12)
_LA57: Final = 1 << 12  # of CR4
_NXE: Final = 1 << 11  # of EFER
_SHIFT: Final = 21
_LARGE: Final = 1 << _SHIFT
_ENTRY, _ENTRIES = 8, 512


class _NoTableError(Exception):
    """Nothing is mapped there."""


class HighMap:
    """The tables of one guest, and the room in them."""

    def __init__(self, image: Image, room: Behind, text: int, memory: SharedRam, debugger: Debugger) -> None:
        """`text`: the link address of some code of the kernel's. The guest has not begun."""
        self._image, self._room, self._text = image, room, text
        self._memory, self._debugger = memory, debugger

    def stops(self) -> Stops:
        """See the module. Raises MachineError."""
        yield (self._image.entry,)
        start = self._room.physical(self._room.code.start)
        reserve(self._memory, self._debugger.named_register("rsi"), start, self._room.end - self._room.code.start)
        loads, table = first_loads(self._image), None
        while table is None:
            at = yield (*loads,)
            table = self._kernels(self._debugger.named_register(loads[at]))
        self._map(table)
        yield (self._address_of(CLEANUP),)
        pointer = self._pointer(self._root)
        own = self._load(pointer)
        self._replace(pointer, own)
        yield (self._return_address(),)
        self._map(own & _ADDRESS)
        self._store(pointer, own)
        if self._image.symbols.address_of(_PTI) is not None:
            yield (self._address_of(_PTI),)
            yield (self._return_address(),)
            self._add_to_users()
        yield (self._address_of(FREEING),)
        self._map(self._load(self._pointer(self._root)) & _ADDRESS, is_settled=True)

    # -- the guest ----------------------------------------------------------------------------------------------------

    def _address_of(self, name: str) -> int:
        found = self._image.symbols.address_of(name)
        assert found is not None, "this kernel may have a room"
        return found

    @property
    def _root(self) -> int:
        return self._debugger.named_register("cr3")

    def _return_address(self) -> int:
        """Where a function goes on to that has just been called, on the first stack, which is in the kernel."""
        return self._load(self._room.physical(self._debugger.named_register("rsp")))

    # -- its tables ---------------------------------------------------------------------------------------------------

    def _kernels(self, root: int) -> int | None:
        """The physical address of the table of large pages under a root; None: it does not map the kernel where it
        is."""
        try:
            table = self._load(self._pointer(root)) & _ADDRESS
            leaf = self._load(table + self._place(self._text))
        except (UnreadableError, _NoTableError):
            return None
        is_own = leaf & _ADDRESS & -_LARGE == self._room.physical(self._text) & -_LARGE
        return table if leaf & _P and leaf & _PS and is_own else None

    def _pointer(self, root: int) -> int:
        """Where the entry is, below a root, that leads to the table of large pages. Raises _NoTableError."""
        has_five = self._debugger.named_register("cr4") & _LA57
        table, place = root & _ADDRESS, 0
        for shift in (48, 39, 30) if has_five else (39, 30):
            place = table + self._place(self._text, shift)
            entry = self._load(place)
            if entry & (_P | _PS) != _P:
                raise _NoTableError
            table = entry & _ADDRESS
        return place

    def _place(self, link: int, shift: int = _SHIFT) -> int:
        """The offset of an address's entry in its table."""
        return _ENTRY * (link >> shift & _ENTRIES - 1)

    def _map(self, table: int, *, is_settled: bool = False) -> None:
        """Add the room to a table of large pages. `is_settled`: the kernel does not write to text any more."""
        # Before the kernel allows the bit, it would be a fault.
        never = _NX if self._debugger.named_register("efer") & _NXE else 0
        room = self._room
        for first, end, flags in (
            (room.code.start, room.data.start, 0 if is_settled else _W),
            (room.data.start, room.end, _W | never),
        ):
            for link in range(first, end, _LARGE):
                self._store(table + self._place(link), room.physical(link) | _PAGE | flags)

    def _replace(self, pointer: int, entry: int) -> None:
        """Let a copy of a table stand in for it."""
        copy = self._room.physical(self._room.spare)
        self._memory.write(copy, self._memory.read(Space.PHYSICAL, entry & _ADDRESS, _ENTRY * _ENTRIES))
        self._store(pointer, entry & ~_ADDRESS | copy)

    def _add_to_users(self) -> None:
        """Add the room to the kernel's part of all programs' own tables, if they have such tables."""
        (register, bit), *_ = self._image.facts.linux.user_tables
        try:
            pointer = self._pointer(self._debugger.named_register(register) | bit)
        except _NoTableError:
            return
        self._map(self._load(pointer) & _ADDRESS, is_settled=True)

    def _load(self, place: int) -> int:
        return int.from_bytes(self._memory.read(Space.PHYSICAL, place, _ENTRY), "little")

    def _store(self, place: int, entry: int) -> None:
        self._memory.write(place, entry.to_bytes(_ENTRY, "little"))
