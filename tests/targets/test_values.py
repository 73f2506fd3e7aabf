"""Classes drawn at random are, by what can be seen of them, what the standard library makes of the same text."""

import copy
import dataclasses
import inspect
import pickle
import random
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from kinst.targets import values

_DEFAULTS = ("", " = {value}", " = field(default={value})", " = field(default_factory=lambda: {value})")
_MORE = (" = field(default={value}, repr=False)", " = field(default={value}, compare=False)")
_METHODS = (
    "    def __repr__(self) -> str:\n        return 'own'\n",
    "    def __eq__(self, other: object) -> bool:\n        return type(other) is type(self)\n",
    "    def __hash__(self) -> int:\n        return 7\n",
    "    def __post_init__(self) -> None:\n        object.__setattr__(self, 'seen', type(self).__name__)\n",
    "    @property\n    def whole(self) -> int:\n        return 1\n",
)


def _drawn(random_: random.Random) -> str:
    """The text of three classes, each the next one's base or not."""
    text = "from dataclasses import field\nfrom typing import ClassVar\n"
    options = random_.choice(("", ", eq=False", ", kw_only=True"))
    frozen = random_.choice(("frozen=True, ", "frozen=True, ", ""))
    is_shared = random_.random() < 0.5
    for number in range(3):
        base = f"(C{number - 1})" if number and random_.random() < 0.6 else ""
        text += f"@dataclass({frozen}slots=True{options})\nclass C{number}{base}:\n"
        text += '    """Documented."""\n' if random_.random() < 0.5 else ""
        text += "    shared: ClassVar[int] = 3\n" if is_shared else ""
        text += "".join(_field(random_, number, index) for index in range(random_.randrange(4)))
        methods = "".join(method for method in _METHODS if random_.random() < 0.2)
        text += "    pass\n"
        text += methods if "seen" not in methods else methods + "    seen: str = field(default='', init=False)\n"
    return text


def _field(random_: random.Random, number: int, index: int) -> str:
    # Of a derived class none may be without a default behind one that has one.
    kinds = _DEFAULTS[1:] + _MORE if number or index else _DEFAULTS[:1]
    return f"    f{number}{index}: int{random_.choice(kinds)}\n".format(value=random_.randrange(3))


def _made(text: str, dataclass: Callable[..., Any], name: str) -> list[Any]:
    module = ModuleType(name)
    module.__dict__["dataclass"] = dataclass
    sys.modules[name] = module  # where pickle looks for classes
    exec(text, module.__dict__)
    return [module.__dict__[f"C{number}"] for number in range(3)]


def _seen(one: Any, arguments: tuple[int, ...]) -> Iterator[object]:
    """What can be seen of a class, and of an instance made with these arguments."""
    yield _tried(lambda: (one(*arguments), one(*arguments))[0] == one(*arguments))
    made: Any = _tried(lambda: one(*arguments))
    yield repr(made)
    yield _tried(lambda: hash(made) == hash(one(*arguments)))
    for look in (dataclasses.astuple, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))):
        yield repr(_tried(lambda look=look: look(made)))  # type: ignore[misc]
    for name in [*one.__match_args__][:2]:
        yield repr(_tried(lambda name=name: setattr(made, name, 1)))  # type: ignore[misc]
        yield repr(_tried(lambda name=name: delattr(made, name)))  # type: ignore[misc]
        yield repr(_tried(lambda name=name: dataclasses.replace(made, **{name: 9})))  # type: ignore[misc]
        yield repr(_tried(lambda name=name: one(**{name: 4})))  # type: ignore[misc]
    yield str(inspect.signature(one))
    yield [(field.name, field.type, field.kw_only, field.init) for field in dataclasses.fields(one)]
    yield one.__match_args__, one.__slots__, one.__qualname__, one.__init__.__qualname__
    yield one.__dataclass_params__.frozen, sorted(one.__dict__.keys() - {"__doc__"})


def _tried(call: Callable[[], object]) -> object:
    try:
        return call()
    except (TypeError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("seed", range(60))
def test_a_class_is_what_the_standard_library_makes(seed: int) -> None:
    random_ = random.Random(seed)
    text = _drawn(random_)
    ours = _made(text, values.dataclass, "drawn")
    order = random_.sample(range(3), 3)  # a derived class may be used before its base
    arguments = [tuple(range(random_.randrange(5))) for _ in order]
    found = [[*_seen(ours[which], given)] for which, given in zip(order, arguments, strict=True)]
    theirs = _made(text, dataclasses.dataclass, "drawn")
    wanted = [[*_seen(theirs[which], given)] for which, given in zip(order, arguments, strict=True)]
    assert found == wanted, text


def test_what_is_not_used_is_not_made() -> None:
    text = "".join(f"@dataclass(frozen=True, slots=True)\nclass C{number}:\n    one: int = 1\n" for number in range(3))
    one, *_ = _made(text, values.dataclass, "drawn")
    assert isinstance(vars(one)["__init__"], values._Late)
    assert inspect.isfunction(one.__init__)
    assert inspect.isfunction(vars(one)["__init__"])
    assert isinstance(vars(one)["__eq__"], values._Late)


def test_defaults_are_those_that_were_written() -> None:
    """Who asks for fields first lets the standard library take defaults out of the class as it was written."""
    text = "from dataclasses import field\n" + "".join(
        f"@dataclass(frozen=True, slots=True)\nclass C{number}:\n    one: list = field(default_factory=list)\n"
        for number in range(3)
    )
    one, *_ = _made(text, values.dataclass, "drawn")
    assert [field.name for field in dataclasses.fields(one)] == ["one"]
    assert one().one == []
