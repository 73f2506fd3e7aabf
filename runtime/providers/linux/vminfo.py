"""vminfo, DTrace's provider of the statistics that vmstat(1) shows: Linux' events of its virtual memory.

The kernel counts them where they happen, in code that is inlined everywhere, and so nothing in its code is probed: what
is watched are the counters, of which each CPU has its own (vm_event_states, in include/linux/vmstat.h). An event is by
how much one rises, and fires at the instruction that stores it. Its name is the kernel's (enum vm_event_item) in small
letters, or DTrace's where that means the same.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from kinst.runtime.machine.watching.mirrored_pages import MemoryAccess
from kinst.runtime.paging.walker import Access
from kinst.runtime.providers.mem import MemoryHost
from kinst.runtime.providers.probe_table import Identifiers
from kinst.runtime.providers.provider import Action, Argument, Probes, Registration
from kinst.runtime.providers.stability import EVOLVING, PRIVATE, ProviderAttributes
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.targets.c_types import EnumType, ImageTypes, strip
from kinst.targets.probe import ProbeName

_COUNTERS: Final = "vm_event_states"
_OFFSETS: Final = "__per_cpu_offset"
_ITEMS: Final = "enum vm_event_item"
_END: Final = "NR_VM_EVENT_ITEMS"
_WORD: Final = 8
_ADDRESSES: Final = 1 << 64
# DTrace's names of events that Linux counts alike.
_ALIASES: Final = {
    "as_fault": ("PGFAULT",),
    "maj_fault": ("PGMAJFAULT",),
    "pgswapin": ("PSWPIN",),
    "pgswapout": ("PSWPOUT",),
    "scan": ("PGSCAN_KSWAPD", "PGSCAN_DIRECT"),
}


class CountersHost(MemoryHost, Protocol):
    """What the provider needs from the run."""

    @property
    def types(self) -> ImageTypes:
        """The image's types."""
        ...

    def at_start(self, called: Callable[[], None]) -> None:
        """Call `called` before the guest runs, or runs on from a snapshot."""
        ...

    def translated(self, address: int) -> int | None:
        """The physical address of a virtual one, as the guest's tables have it now; None if it is not mapped."""
        ...

    def word(self, address: int) -> int | None:
        """The word at a physical address."""
        ...

    def linked(self, name: str) -> range | None:
        """The addresses that a variable of each CPU is linked to, to which its offset is to be added."""
        ...


class VminfoProvider:
    """The provider `vminfo`; implements `kinst.runtime.providers.provider.Provider`."""

    registration = Registration(
        "vminfo",
        ProviderAttributes(EVOLVING, PRIVATE, PRIVATE, EVOLVING, EVOLVING),
        needs="a Linux kernel with its types, which counts these events (CONFIG_VM_EVENT_COUNTERS)",
    )

    def __init__(self, host: CountersHost) -> None:
        """Nothing is enabled, and nothing watched."""
        self._host = host
        self._enablings: dict[int, Enabling] = {}
        self._of: dict[int, list[int]] = {}  # number of an event -> identifiers
        self._areas: set[range] = set()  # physical addresses of the counters that are watched
        self._amount = 0  # of what fires
        self._is_watching = False

    def provide(self, probes: Probes, wanted: ProbeName | None) -> None:
        """Create all of them when it registers."""
        if wanted is not None or self._host.linked(_COUNTERS) is None:
            return
        numbers = _numbers(self._host.types)
        names = {name.lower(): (name,) for name in numbers} | _ALIASES
        for name, items in names.items():
            found = [numbers[item] for item in items if item in numbers]
            identifier = probes.create("", "", name) if found else 0
            for number in found:
                self._of.setdefault(number, []).append(identifier)

    def enable(self, identifiers: Identifiers, action: Action) -> None:
        """Watch the counters."""
        for identifier in identifiers.tolist():
            self._enablings[identifier] = Enabling(identifier, action, self.argument, 0)
        if not self._is_watching:
            self._is_watching = True
            self._host.at_start(self._begin)

    def disable(self, identifiers: Identifiers) -> None:
        """Watch them no more when the last is disabled."""
        for identifier in identifiers.tolist():
            self._enablings.pop(identifier, None)
        if not self._enablings and self._areas:
            self._areas.clear()
            self._host.unwatch_memory(self._counted)

    def destroy(self, identifiers: Identifiers) -> None:
        """Do nothing: there is nothing to release."""

    def arguments(self, identifier: int) -> Sequence[Argument]:
        """By how much the counter rises."""
        return (Argument("uint64_t"),)

    def argument(self, firing: Firing, index: int) -> int:
        """A number of what fires."""
        return self._amount if index == 0 else 0

    def _begin(self) -> None:
        """Watch the counters that there are, and where the kernel will note where each CPU's are."""
        offsets = self._host.variable(_OFFSETS)
        if offsets is None:  # it has one CPU only
            self._watch(0)
            return
        noted = self._host.physical(offsets)
        if noted is None:
            return
        self._host.watch_memory(noted, Access.WRITE, self._noted)
        for address in range(noted.start, noted.stop, _WORD):
            if offset := self._host.word(address):
                self._watch(offset)

    def _noted(self, access: MemoryAccess) -> None:
        """The kernel stores how far the data of a CPU are from where they are linked."""
        if access.size == _WORD and self._enablings:
            self._watch(access.value)

    def _watch(self, offset: int) -> None:
        linked = self._host.linked(_COUNTERS)
        start = None if linked is None else self._host.translated((linked.start + offset) % _ADDRESSES)
        if linked is None or start is None:
            return
        area = range(start, start + len(linked))
        if area not in self._areas:
            self._areas.add(area)
            self._host.watch_memory(area, Access.WRITE, self._counted)

    def _counted(self, access: MemoryAccess) -> None:
        area = next(area for area in self._areas if access.address in area)
        amount = (access.value - access.before) % _ADDRESSES
        if 0 < amount < _ADDRESSES // 2:  # else a CPU that goes off sets it to 0
            for identifier in self._of.get((access.address - area.start) // _WORD, ()):
                enabling = self._enablings.get(identifier)
                if enabling is not None:
                    self._amount = amount
                    self._host.in_memory().fire(enabling)


def _numbers(types: ImageTypes) -> dict[str, int]:
    """The events by the kernel's names; none without its types."""
    found = types.type_named(_ITEMS)
    kind = None if found is None else strip(found)
    numbers = dict(kind.enumerators) if isinstance(kind, EnumType) else {}
    return {name: number for name, number in numbers.items() if number < numbers.get(_END, 0)}
