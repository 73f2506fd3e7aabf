"""The standard library's `dataclass` for classes with slots, of which most is made when it is first needed.

To make all of it is to compile source text, a millisecond a class: half of what a command needs to start, for hundreds
of classes of which a run uses a sixth. Only `__init__`, which a run needs of these, is made here; all else, fields and
parameters too, is the standard library's own, made of the class as it was written.
"""

import dataclasses
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

_ALWAYS: Final = ("__init__", "__repr__")
_WITH_EQUALITY: Final = (*_ALWAYS, "__eq__", "__hash__")
_ABOUT: Final = ("__dataclass_fields__", "__dataclass_params__", *(("__replace__",) * (sys.version_info >= (3, 13))))
_DECIDED_THERE: Final = ("InitVar", "KW_ONLY", "_KW_ONLY_TYPE")  # annotations that mean something there
_MISSING: Final = dataclasses.MISSING


class _Factory:
    """The default of an argument that a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY: Final = _Factory()


class _Late:
    """In the place of a member that is not made yet. Whoever looks it up, also the interpreter, gets the member."""

    __slots__ = ("_member",)

    def __init__(self, member: Callable[[], Any]) -> None:
        self._member = member

    def __get__(self, instance: object, owner: type) -> Any:
        member = self._member()
        return member.__get__(instance, owner) if hasattr(member, "__get__") else member


class _Written:
    """A class as it was written, and the options of its decorator."""

    __slots__ = ("_found", "_given", "_is_made", "_options")

    def __init__(self, found: type, options: dict[str, bool]) -> None:
        self._found, self._options, self._is_made = found, options, False
        self._given = dict(vars(found))  # the standard library takes defaults out of the class

    def member(self, name: str) -> Any:
        """One of the standard library's."""
        if not self._is_made:
            doc = self._found.__doc__
            self._found.__doc__ = doc or "-"  # else one is made of a signature
            dataclasses.dataclass(**self._options)(self._found)
            self._found.__doc__, self._is_made = doc, True
        return vars(self._found)[name]

    def init(self) -> Any:
        """`__init__`, as the standard library's, without its other methods."""
        space: dict[str, Any] = {"__name__": self._found.__module__, "_put": object.__setattr__, "_factory": _FACTORY}
        annotations = _fields(self._found)
        parameters = [_parameter(name, self._given.get(name, _MISSING), space) for name in annotations]
        put = "_put(self, '{0}', {1})" if self._options["frozen"] else "self.{0} = {1}"
        lines = [put.format(name, _value_of(name, space)) for name in annotations]
        lines += ["self.__post_init__()"] if hasattr(self._found, "__post_init__") else []
        star = ["*"] if self._options["kw_only"] and annotations else []
        text = f"def __init__({', '.join(['self', *star, *parameters])}):\n  " + "\n  ".join(lines or ["pass"])
        exec(text, space)
        made = space["__init__"]
        made.__qualname__ = f"{self._found.__qualname__}.__init__"
        made.__annotations__ = {**annotations, "return": None}
        return made


def _parameter(name: str, default: Any, space: dict[str, Any]) -> str:
    """The text of a parameter, whose default is put among the names that the method sees."""
    if isinstance(default, dataclasses.Field):
        if default.default_factory is not _MISSING:
            space[f"_make_{name}"] = default.default_factory
            return f"{name}=_factory"
        default = default.default
    if default is _MISSING:
        return name
    space[f"_default_{name}"] = default
    return f"{name}=_default_{name}"


def _value_of(name: str, space: dict[str, Any]) -> str:
    return f"_make_{name}() if {name} is _factory else {name}" if f"_make_{name}" in space else name


def _late(made: type, name: str, make: Callable[[], Any]) -> _Late:
    def member() -> Any:
        found = make()
        setattr(made, name, found)
        return found

    return _Late(member)


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


def _is_plain(found: type) -> bool:
    """Whether all annotations are fields that `__init__` sets, and that no base has."""
    if any(map(dataclasses.is_dataclass, found.__bases__)):
        return False
    space = vars(found)
    return not any(
        _head(kind) in _DECIDED_THERE
        or (isinstance(one := space.get(name), dataclasses.Field) and (not one.init or one.kw_only is True))
        for name, kind in _fields(found).items()
    )


def _head(annotation: Any) -> str:
    """What an annotation begins with, without its module: `ClassVar` of `typing.ClassVar[int]`."""
    if isinstance(annotation, str):
        return annotation.partition("[")[0].rpartition(".")[2]
    kind = getattr(annotation, "__origin__", annotation)
    return getattr(kind, "__name__", None) or getattr(kind, "_name", None) or type(kind).__name__


def _fields(found: type) -> dict[str, Any]:
    """The annotations that are fields."""
    return {name: kind for name, kind in found.__annotations__.items() if _head(kind) != "ClassVar"}


def _slots(found: type) -> Iterator[str]:
    """The fields that no base has as a slot."""
    inherited = {name for base in found.__mro__[1:-1] for name in vars(base).get("__slots__", ())}
    return (name for name in _fields(found) if name not in inherited)


def _value(found: type, *, frozen: bool, eq: bool = True, kw_only: bool = False) -> Any:
    if not _is_plain(found):
        return dataclasses.dataclass(frozen=frozen, slots=True, eq=eq, kw_only=kw_only)(found)
    written = _Written(found, {"frozen": frozen, "eq": eq, "kw_only": kw_only})
    names, fields = _missing(dict(vars(found)), has_equality=eq), tuple(_fields(found))
    left_out = *fields, "__dict__", "__weakref__", *(() if found.__annotations__ else ("__annotations__",))
    space = {name: value for name, value in vars(found).items() if name not in left_out}
    space |= {"__slots__": tuple(_slots(found)), "__match_args__": () if kw_only else fields}
    made: Any = type(found)(found.__name__, found.__bases__, space)  # slots are for a class that is made anew
    made.__qualname__ = found.__qualname__
    for name in (*names, *_ABOUT):
        make = written.init if name == "__init__" else partial(written.member, name)
        has_none = name == "__hash__" and not frozen  # what can change has no hash
        setattr(made, name, None if has_none else _late(made, name, make))
    if frozen:
        made.__setattr__, made.__delattr__ = _refuse_assignment, _refuse_deletion
        for name, method in (("__getstate__", _state), ("__setstate__", _set_state)):
            if name not in space:
                setattr(made, name, method)
    return made


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(found=None, /, **options):
        """As `dataclasses.dataclass`."""
        rest = dict(options)
        if found is not None or not rest.pop("slots", False):
            return dataclasses.dataclass(found, **options)
        if rest.keys() - {"frozen", "eq", "kw_only"}:
            return dataclasses.dataclass(**options)
        return lambda one: _value(one, **{"frozen": False, **rest})
