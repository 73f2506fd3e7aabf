"""The objects of a machine's devices, by the paths on which they are reached -> what in them changes as the guest runs.

Devices are plain objects: their state is numbers, bytes and containers of these, in their attributes. What else they
hold (lines, clocks, each other) is how they are put together, which a board does alike each time. So the same paths
lead to the same objects in any machine with the same board and options, and state can go from one to another.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from mmap import mmap
from random import Random
from types import FunctionType, GeneratorType, MethodType
from typing import Any, Final

from kinst.targets.errors import MachineError

# Where the classes are whose objects are devices, or parts of them.
_ROOMS: Final = tuple(f"kinst.runtime.machine.{room}." for room in ("devices", "boards", "exceptions"))
_OTHERS: Final = ("kinst.runtime.machine.serial_line", "kinst.runtime.machine.exception_model")
_PLAIN: Final = (int, float, str, bytes, type(None), Enum)  # bool is an int
_MAPPINGS: Final = (dict,)
_SEQUENCES: Final = (list, tuple, deque)
_UNORDERED: Final = (set, frozenset)


def is_record(value: object) -> bool:
    """Whether it is a value of a class of ours: it cannot change, so that it is state where it stands."""
    return is_dataclass(value) and not isinstance(value, type) and bool(type(value).__dataclass_params__.frozen)  # type: ignore[attr-defined]


def is_data(value: object) -> bool:
    """Whether a value is state as a whole: there is no device in it, nor anything that acts."""
    if isinstance(value, (*_PLAIN, bytearray, mmap, Random)):
        return True
    if isinstance(value, _MAPPINGS):
        return all(is_data(key) and is_data(one) for key, one in value.items())
    if isinstance(value, (*_SEQUENCES, *_UNORDERED)):
        return all(map(is_data, value))
    return is_record(value) and is_part(value) and all(is_data(getattr(value, one.name)) for one in fields(value))  # type: ignore[arg-type]


def is_part(value: object) -> bool:
    """Whether an object, or the objects of a class, are devices, or parts of them."""
    module = (value if isinstance(value, type) else type(value)).__module__
    return (module + ".").startswith(_ROOMS) or module in _OTHERS


def _names(value: object) -> Iterator[str]:
    """The attributes of an object, whether or not its class has slots."""
    for one in reversed(type(value).__mro__):
        slots = vars(one).get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots
    yield from getattr(value, "__dict__", ())


class Place:
    """An attribute of an object, or what a function has in its closure, that may hold state."""

    __slots__ = ("get", "path", "set")

    def __init__(self, path: str, get: Callable[[], Any], set_: Callable[[Any], None] | None) -> None:
        """`set_` is None for what can only be changed in place."""
        self.path, self.get, self.set = path, get, set_


class ObjectGraph:
    """All places of state that are reached from some objects."""

    def __init__(self) -> None:
        """Nothing has been reached."""
        self.places: list[Place] = []
        self.objects: dict[str, object] = {}  # by path
        self._seen: dict[int, object] = {}  # by identity; kept, so that no other object gets it

    def add(self, path: str, value: object) -> None:
        """Follow what an object holds. Raises MachineError: something in it is not known to be restorable."""
        if id(value) in self._seen:
            return
        if isinstance(value, partial | MethodType | FunctionType):
            self._add_function(path, value)
        elif isinstance(value, GeneratorType):
            raise MachineError(f"{path}: is in the middle of a request")
        elif isinstance(value, (*_MAPPINGS, *_SEQUENCES)):
            self._add_container(path, value)
        elif callable(getattr(value, "state", None)) and callable(getattr(value, "restore", None)):
            self._seen[id(value)] = value
            self.places.append(Place(path, value.state, value.restore))  # type: ignore[attr-defined]
        elif is_part(value) and not isinstance(value, type):
            self._seen[id(value)] = self.objects[path] = value
            self._add_attributes(path, value)

    def _add_attributes(self, path: str, value: object) -> None:
        is_fixed = is_record(value)
        for name in _names(value):
            try:
                held = getattr(value, name)
            except AttributeError:  # a slot that is empty
                continue
            if not is_data(held):
                self.add(f"{path}.{name}", held)
            elif not is_fixed:
                self.places.append(
                    Place(f"{path}.{name}", partial(getattr, value, name), partial(setattr, value, name))
                )
            elif not isinstance(held, (*_PLAIN, tuple, frozenset)):
                self.places.append(Place(f"{path}.{name}", partial(getattr, value, name), None))

    def _add_container(self, path: str, value: Any) -> None:
        self._seen[id(value)] = value
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            if not is_data(one):
                self.add(f"{path}[{key}]", one)
            elif not isinstance(value, tuple) and isinstance(key, int | str):
                self.places.append(
                    Place(f"{path}[{key}]", partial(value.__getitem__, key), partial(value.__setitem__, key))
                )

    def _add_function(self, path: str, value: Any) -> None:
        """What a function is bound to, or remembers: an interrupt line knows its controller by that."""
        self._seen[id(value)] = value
        match value:
            case partial():
                for number, one in enumerate((value.func, *value.args, *value.keywords.values())):
                    self.add(f"{path}({number})", one)
            case MethodType():
                self.add(f"{path}()", value.__self__)
            case FunctionType() if value.__closure__:
                for name, cell in zip(value.__code__.co_freevars, value.__closure__, strict=True):
                    self._add_cell(f"{path}<{name}>", cell)

    def _add_cell(self, path: str, cell: Any) -> None:
        try:
            held = cell.cell_contents
        except ValueError:  # it is empty
            return
        if not is_data(held):
            self.add(path, held)
        elif not isinstance(held, (*_PLAIN, tuple, frozenset)) and id(held) not in self._seen:
            self._seen[id(held)] = held
            self.places.append(Place(path, lambda: held, None))
