"""Addresses that no device of a board has, and that its board file gives rules for: accesses -> values, and a record of
what was touched, by whom, how often.

Their pages are mapped when the guest first accesses them, each to a page of a window of its own: a board may name
gigabytes, and what is not touched costs nothing.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kinst.runtime.machine.physical.frames import PAGE, UNMODELLED, UNMODELLED_PAGES
from kinst.runtime.paging.walker import Access
from kinst.targets.machines.machine import MachineFacts
from kinst.targets.machines.registers import RangeFacts, Reads, Rule

_MOST_REGISTERS: Final = 1 << 16
_MOST_PLACES: Final = 16  # of a register's accesses that are remembered
_WORD: Final = 4
_FAULT: Final = Reads.FAULT
_LIKE_MEMORY: Final = 128  # words of a page that were written: no device has so many registers that keep what they get


@dataclass(slots=True, eq=False)
class Register:
    """A register that was touched. `places`: PCs of the blocks that accessed it, with how often."""

    name: str  # "clock.PLLC", "clock+0x10", or an address
    address: int  # physical
    size: int
    rule: Rule
    value: int  # what was written last
    reads: int = 0
    writes: int = 0
    given: int = 0  # what the last read gave
    group: str = ""  # the range it is in, or its page
    places: dict[int, int] = field(default_factory=dict)

    @property
    def is_named(self) -> bool:
        """Whether the board file names it or its range."""
        return not self.name.startswith("0x")

    def read(self) -> int:
        """What the next read gives."""
        rule, count = self.rule, self.reads
        self.reads += 1
        match rule.kind:
            case Reads.CONSTANT:
                value = rule.value
            case Reads.TOGGLE:
                value = rule.value ^ (rule.bits if count & 1 else 0)
            case Reads.COUNT:
                value = rule.value + count * rule.step
            case Reads.LIST:
                value = rule.values[min(count, len(rule.values) - 1)]
            case _:
                value = self._changed(count) if count >= rule.after else self.value
        self.given = value & (1 << 8 * self.size) - 1
        return self.given

    def _changed(self, count: int) -> int:
        """What was written, with the changes of the rule."""
        rule = self.rule
        return self.value & ~rule.clear ^ (rule.toggle if count & 1 else 0) | rule.bits

    def take(self, address: int, size: int) -> int:
        """What the next read of a part gives: `size` bytes at a physical address in it."""
        return self.read() >> 8 * (address - self.address) & (1 << 8 * size) - 1

    def put(self, address: int, size: int, value: int) -> None:
        """Write `size` bytes at a physical address in it."""
        shift, mask = 8 * (address - self.address), (1 << 8 * size) - 1
        self.writes += 1
        self.value = self.value & ~(mask << shift) | (value & mask) << shift

    def follow(self, rule: Rule) -> None:
        """Read by another rule from now on."""
        self.rule = rule

    def note(self, place: int) -> None:
        """Note who accesses it."""
        if place in self.places or len(self.places) < _MOST_PLACES:
            self.places[place] = self.places.get(place, 0) + 1


class Unmodelled:
    """What a board has at addresses of no device. `otherwise` of the machine's bus, and a window of its own."""

    def __init__(self, facts: MachineFacts, place: Callable[[], int], on_memory: Callable[[], None]) -> None:
        """`place` gives the PC of the access that is under way; `on_memory` is called when `like_memory` grows."""
        self._ranges, self._starts = facts.ranges, [one.address for one in facts.ranges]
        self._unnamed, self._place, self._on_memory = facts.unnamed, place, on_memory
        self._pages: list[int] = []  # the physical page of each page of the window
        self._frames: dict[int, int] = {}  # the other way round
        self._registers: dict[int, Register] = {}  # by physical address
        self._written: dict[int, int] = {}  # physical page -> its words without a name that were written
        self.like_memory: set[int] = set()  # pages of which many were
        self.reads = 0
        self.last: Register | None = None  # that was read
        self._on_read: Callable[[Register, int], None] | None = None

    @property
    def is_used(self) -> bool:
        """Whether the board file says anything about such addresses."""
        return bool(self._ranges) or self._unnamed is not None

    @property
    def touched(self) -> list[Register]:
        """The registers that were accessed, by address."""
        return sorted(self._registers.values(), key=lambda one: one.address)

    def frame(self, physical: int, access: Access) -> int | None:
        """The address in the window that stands for a physical address; None: an access there is a fault."""
        if access is Access.FETCH:
            return None
        page = physical // PAGE
        number = self._frames.get(page)
        if number is None:
            if len(self._pages) == UNMODELLED_PAGES or not self._answers(page * PAGE):
                return None
            number = self._frames[page] = len(self._pages)
            self._pages.append(page)
        return UNMODELLED + number * PAGE + physical % PAGE

    def real(self, address: int) -> int:
        """The physical address for one in the window; any other as it is."""
        if address < UNMODELLED:
            return address
        number = (address - UNMODELLED) // PAGE
        return self._pages[number] * PAGE + address % PAGE if number < len(self._pages) else address

    def _answers(self, start: int) -> bool:
        """Whether reads of a page give values, at least in a part of it."""
        if self._unnamed is not None and self._unnamed.kind is not _FAULT:
            return True
        at = bisect_right(self._starts, start + PAGE - 1)
        near = self._ranges[max(0, at - PAGE) : at]
        return any(one.address + one.size > start and one.rule.kind is not _FAULT for one in near)

    def read(self, address: int, size: int) -> int:
        """Read `size` bytes at a physical address, or at one in the window."""
        address = self.real(address)
        return sum(self._read(address + at, min(size, _WORD)) << 8 * at for at in range(0, size, _WORD))

    def write(self, address: int, size: int, value: int) -> None:
        """Write `size` bytes at a physical address, or at one in the window."""
        address = self.real(address)
        for at in range(0, size, _WORD):
            self._write(address + at, min(size, _WORD), value >> 8 * at)

    def _read(self, address: int, size: int) -> int:
        register = self._register(address)
        if register is None:
            return 0
        place = self._place()
        register.note(place)
        self.reads, self.last = self.reads + 1, register
        if self._on_read is not None:
            self._on_read(register, place)
        return register.take(address, size)

    def _write(self, address: int, size: int, value: int) -> None:
        register = self._register(address)
        if register is None:
            return
        register.note(self._place())
        if not register.writes and not register.is_named:
            self._count_written(register.address // PAGE)
        register.put(address, size, value)

    def _count_written(self, page: int) -> None:
        count = self._written[page] = self._written.get(page, 0) + 1
        if count == _LIKE_MEMORY and self.is_plain(page):
            self.like_memory.add(page)
            self._on_memory()

    def is_plain(self, page: int) -> bool:
        """Whether all of a physical page has no name, and reads as what was written and as 0 at first."""
        last = self._last_range(page * PAGE + PAGE - 1)
        return self._unnamed == Rule() and (last is None or last.address + last.size <= page * PAGE)

    def _last_range(self, address: int) -> RangeFacts | None:
        """The range that begins there, or last before it."""
        at = bisect_right(self._starts, address) - 1
        return self._ranges[at] if at >= 0 else None

    def give_up(self, page: int) -> list[Register]:
        """What is known of a physical page, which is RAM from now on."""
        self._written.pop(page, None)
        at = range(page * PAGE, (page + 1) * PAGE, _WORD)
        return [self._registers.pop(address) for address in at if address in self._registers]

    def state(self) -> tuple[tuple[int, ...], ...]:
        """What was touched, for a snapshot: the numbers of the window's pages, then for each register its address,
        what was written last, reads, writes, and what was given last."""
        rows = ((one.address, one.value, one.reads, one.writes, one.given) for one in self._registers.values())
        return tuple(self._pages), *rows

    def restore(self, state: Sequence[Sequence[int]]) -> None:
        """Return to what `state` gave; nothing in the TLB may refer to the window's pages."""
        self._pages = list(state[0])
        self._frames = {page: number for number, page in enumerate(self._pages)}
        self._registers.clear()
        for address, value, reads, writes, given in state[1:]:
            made = self._made(address)
            made.value, made.reads, made.writes, made.given = value, reads, writes, given
            self._registers[address] = made

    def watch(self, on_read: Callable[[Register, int], None]) -> None:
        """Call `on_read` before each read, with its register and the PC of the block that reads."""
        self._on_read = on_read

    def at(self, address: int) -> Register:
        """The register at a physical address, touched or not; it is not noted."""
        known = self._registers.get(address & -_WORD)
        is_in = known is not None and known.address <= address < known.address + known.size
        return known if known is not None and is_in else self._made(address)

    def _register(self, address: int) -> Register | None:
        """The register at an address; None if too many were touched."""
        known = self._registers.get(address & -_WORD)
        if known is not None and known.address <= address < known.address + known.size:
            return known
        if len(self._registers) >= _MOST_REGISTERS:
            return None
        made = self._made(address)
        return self._registers.setdefault(made.address, made)

    def _made(self, address: int) -> Register:
        found = self._last_range(address)
        if found is None or address >= found.address + found.size:
            where, rule = address & -_WORD, self._unnamed or Rule()
            return Register(f"{where:#x}", where, _WORD, rule, rule.value, group=f"{where & -PAGE:#x}")
        return _in_range(found, address)


def _in_range(found: RangeFacts, address: int) -> Register:
    offset = address - found.address
    at = bisect_right(found.registers, offset, key=lambda one: one.offset) - 1
    one = found.registers[at] if at >= 0 else None
    if one is not None and offset < one.offset + one.size:
        name, start = f"{found.name}.{one.name}", found.address + one.offset
        return Register(name, start, one.size, one.rule, one.rule.value, group=found.name)
    start = address & -_WORD
    name = f"{found.name}+{start - found.address:#x}"
    return Register(name, start, _WORD, found.rule, found.rule.value, group=found.name)
