"""The standard library's `dataclass` for frozen classes with slots, whose methods are made when each is first called.

To make them is to compile source text, a millisecond a class: half of what a command needs to start, for hundreds of
classes of which a run uses a sixth. They are the standard library's own, and so are fields, slots and defaults.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

_ALWAYS: Final = ("__init__", "__repr__")
_WITH_EQUALITY: Final = (*_ALWAYS, "__eq__", "__hash__")


class _Late:
    """In the place of a method that is not made yet. Whoever looks it up, also the interpreter, gets the method."""

    __slots__ = ("_method",)

    def __init__(self, method: Callable[[], Any]) -> None:
        self._method = method

    def __get__(self, instance: object, owner: type) -> Any:
        return self._method().__get__(instance, owner)


def _late_method(found: type, name: str) -> Callable[[], Any]:
    """Makes the method of that name, and puts it into the class. A run that only makes instances makes no `__eq__`."""

    def made() -> Any:
        space: dict[str, Any] = {"__module__": found.__module__, "__qualname__": found.__qualname__}
        space |= {"__post_init__": None} if hasattr(found, "__post_init__") else {}  # looked up again at each call
        space["__doc__"] = "-"  # else one is made of a signature
        fields = [(one.name, one.type, one) for one in dataclasses.fields(found)]
        alone: dict[str, Any] = {
            "init": name == "__init__",
            "repr": name == "__repr__",
            "eq": name in ("__eq__", "__hash__"),
        }
        model = dataclasses.make_dataclass(found.__name__, fields, namespace=space, frozen=True, **alone)
        method = vars(model)[name]
        setattr(found, name, method)
        return method

    return made


def _refuse_assignment(_self: object, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)  # it is frozen


def _missing(space: dict[str, Any], *, has_equality: bool) -> tuple[str, ...]:
    """The names of methods that a class does not define itself."""
    # A class that defines __eq__ has a __hash__ that is None, put there by the interpreter.
    own = {name for name, value in space.items() if value is not None or name != "__hash__" or "__eq__" not in space}
    return tuple(name for name in (_WITH_EQUALITY if has_equality else _ALWAYS) if name not in own)


def _value(found: type, *, eq: bool = True, kw_only: bool = False) -> Any:
    if any(map(dataclasses.is_dataclass, found.__bases__)):  # it must be frozen before it is made, if they are
        return dataclasses.dataclass(frozen=True, slots=True, eq=eq, kw_only=kw_only)(found)
    names = _missing(dict(vars(found)), has_equality=eq)
    doc = found.__doc__
    found.__doc__ = doc or "-"  # else one is made of a signature, which is not known yet
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(found)
    made.__doc__ = doc
    for name in names:
        setattr(made, name, _Late(_late_method(made, name)))
    made.__setattr__, made.__delattr__ = _refuse_assignment, _refuse_deletion
    for name, method in (("__getstate__", _state), ("__setstate__", _set_state)):
        if name not in vars(made):
            setattr(made, name, method)
    made.__dataclass_params__.frozen = True
    return made


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(found=None, /, **options):
        """As `dataclasses.dataclass`."""
        rest = dict(options)
        if found is not None or not (rest.pop("frozen", False) and rest.pop("slots", False)):
            return dataclasses.dataclass(found, **options)
        if rest.keys() - {"eq", "kw_only"}:
            return dataclasses.dataclass(**options)
        return lambda one: _value(one, **rest)
