"""The devices of a machine -> their state as plain values, and back."""

from collections import deque
from collections.abc import Mapping
from mmap import mmap
from random import Random
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kinst.runtime.machine.device import Timed
from kinst.runtime.machine.disk import Content
from kinst.runtime.machine.snapshots.object_graph import ObjectGraph, Place, is_data
from kinst.targets.errors import MachineError

if TYPE_CHECKING:
    from kinst.runtime.machine.system import System

_PAGE: Final = 4096


def graph_of(system: "System") -> ObjectGraph:
    """All state of a machine's devices, which are attached by now. Raises MachineError: some device's cannot be
    kept."""
    graph = ObjectGraph()
    for name, device in system.accesses.devices():
        graph.add(name, device)
    graph.add("board", system.board)
    graph.add("exceptions", system.exceptions)
    graph.add("serial line", system.serial_line)
    for name, kept in (("registers", system.assumed), ("unmodelled", system.unmodelled), *system.kept.items()):
        graph.add(name, kept)
    # What acts at a time ends turns of CPUs then, which the guest can tell, even if it is no device.
    acting: list[Timed] = []
    system.timed.each(acting.append)
    for number, one in enumerate(acting):
        graph.add(f"acting {number}", one)
    return graph


def state_of(graph: ObjectGraph) -> dict[str, Any]:
    """Copies of all values. Raises MachineError: a device is in the middle of something that cannot be kept."""
    return {place.path: _copied(place) for place in graph.places}


def _copied(place: Place) -> Any:
    held = place.get()
    if not is_data(held):
        raise MachineError(f"{place.path}: is in the middle of something: take the snapshot an instruction later")
    return copy_of(held)


def copy_of(held: Any) -> Any:
    """A value that does not change when the one that it is made of does."""
    match held:
        case Random():
            return held.getstate()
        case mmap():
            return _content(held)
        case dict():
            return {key: copy_of(one) for key, one in held.items()}
        case list() | deque() | tuple() | set() | bytearray():
            return type(held)(copy_of(one) for one in held) if not isinstance(held, bytearray) else bytearray(held)
        case _:
            return held


def _content(held: mmap) -> Content:
    pages = np.frombuffer(held, np.uint64).reshape(-1, _PAGE // 8)
    return Content({at: pages[at].tobytes() for at in np.flatnonzero(pages.any(axis=1)).tolist()})


def restore(graph: ObjectGraph, state: Mapping[str, Any]) -> None:
    """Give the devices what `state_of` gave, of the same ones or of others that are made alike. Raises MachineError:
    they are made otherwise."""
    known = {place.path: place for place in graph.places}
    if known.keys() != state.keys():
        path = sorted(known.keys() ^ state.keys())[0]
        raise MachineError(f"{path}: is in one of the machines only: they have other devices")
    for path, place in known.items():
        put(place, state[path])
    for one in graph.objects.values():
        restored = getattr(one, "restored", None)
        if callable(restored):
            restored()


def put(place: Place, value: Any) -> None:
    """Give a place a copy of a value. Raises MachineError: it holds something else."""
    held = place.get()
    match held:
        case Random():
            held.setstate(value)
        case mmap():
            _fill(held, value)
        case list() | bytearray() if type(value) is type(held):
            held[:] = copy_of(value)
        case dict() | set() if type(value) is type(held):
            held.clear()
            held.update(copy_of(value))
        case deque() if isinstance(value, deque):
            held.clear()
            held.extend(value)
        case _ if place.set is not None:
            place.set(copy_of(value))
        case _:
            raise MachineError(f"{place.path}: cannot be a {type(value).__name__}")


def _fill(held: mmap, content: Mapping[int, bytes]) -> None:
    for at in _content(held).keys() - content.keys():
        held[at * _PAGE : (at + 1) * _PAGE] = bytes(_PAGE)
    for at, page in content.items():
        held[at * _PAGE : (at + 1) * _PAGE] = page
