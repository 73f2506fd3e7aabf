"""The devices of a machine after a call -> as they were before it; what has not changed costs a comparison."""

from mmap import mmap
from typing import TYPE_CHECKING, Any, Final

from kinst.runtime.machine.snapshots.devices import graph_of, put, state_of
from kinst.runtime.paging.walker import Access

if TYPE_CHECKING:
    from kinst.runtime.machine.system import System
    from kinst.runtime.machine.watching.accesses import DeviceAccess

_NAMED: Final = "device at "
_EVERYWHERE: Final = range(1 << 64)


class CalledDevices:
    """The devices as they are at first, with the exception model and what else a snapshot has besides memory and
    CPUs."""

    def __init__(self, system: "System") -> None:
        """Raises MachineError: something of their state cannot be kept."""
        graph = graph_of(system)
        state = state_of(graph)
        self._objects = tuple(graph.objects.values())
        # Memory of their own is large: it is restored only after stores to the device that has it.
        self._large = [(place, state[place.path]) for place in graph.places if isinstance(place.get(), mmap)]
        large = {place.path for place, _ in self._large}
        self._small = [(place, state[place.path]) for place in graph.places if place.path not in large]
        sizes = {name: device.size for name, device in system.accesses.devices()}
        self._spans = [_span(place.path, sizes) for place, _ in self._large]
        self._written: set[int] = set()  # numbers of those that may have been stored to
        system.accesses.watch(self._accessed)

    def _accessed(self, access: "DeviceAccess") -> None:
        if access.access is Access.WRITE:
            self._written.update(number for number, span in enumerate(self._spans) if access.address in span)

    def restore(self) -> None:
        """Give the devices their state."""
        found = [(place, value) for place, value in self._small if not _is(place.get(), value)]
        found += [self._large[number] for number in self._written]
        self._written.clear()
        for place, value in found:
            put(place, value)
        if found:
            for one in self._objects:
                restored = getattr(one, "restored", None)
                if callable(restored):
                    restored()


def _span(path: str, sizes: dict[str, int]) -> range:
    """The addresses at which a device is that has what the path leads to; all, if that is not known."""
    name = next((one for one in sizes if path.startswith(f"{one}.") and one.startswith(_NAMED)), None)
    if name is None:
        return _EVERYWHERE
    start = int(name.removeprefix(_NAMED), 16)
    return range(start, start + sizes[name])


def _is(held: Any, value: Any) -> bool:
    return held is value or (type(held) is type(value) and held == value)
