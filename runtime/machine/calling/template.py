"""A call as text, with $1 or $name where rows differ -> a call for each row."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from kinst.runtime.machine.calling.arguments import Argument, Buffer, Hole, Structure, Written, parse_arguments, shown
from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass

Given = Argument | str  # as Python code gives an argument
_CALL: Final = re.compile(r"\s*([A-Za-z_.$][\w.$]*|0[xX][0-9a-fA-F]+)\s*\((.*)\)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Call:
    """A function, by name or 0x address, and its arguments; `text` is the call as it was written."""

    function: str
    arguments: tuple[Argument, ...]
    text: str


def parse_call(text: str) -> Call:
    """Read ``f(1, -2, 0x10, 'c', "text", hex"00ff", {u32 1, "name"})``. Raises UsageError."""
    function, inside = _parts(text)
    arguments = parse_arguments(inside, f"--call {text}")
    return Call(function, tuple(one for one in arguments if not isinstance(one, Hole)), text.strip())


def _parts(text: str) -> tuple[str, str]:
    found = _CALL.fullmatch(text)
    if found is None:
        raise UsageError(f"--call {text}: not a call such as 'f(1, 0x10, \"text\")'")
    return found[1], found[2]


def call_of(function: str, arguments: Iterable[Given]) -> Call:
    """A call whose arguments are values. Its text is one that `parse_call` reads. Raises UsageError."""
    values = tuple(value_of(function, number, one) for number, one in enumerate(arguments, 1))
    return made(function, values)


def made(function: str, values: tuple[Argument, ...]) -> Call:
    """A call with its text."""
    return Call(function, values, f"{function}({', '.join(map(shown, values))})")


def value_of(function: str, number: int, argument: Given) -> Argument:
    """An argument as Python code gives it. `function` and `number` are for the message. Raises UsageError."""
    match argument:
        case int() | bytes() | Buffer() | Structure():
            return argument
        case str():
            return argument.encode()
        case _:
            raise UsageError(f"{function}: argument {number} is neither a number nor a text: {argument!r}")


@dataclass(frozen=True, slots=True)
class CallTemplate:
    """A call whose arguments rows say, where they are holes."""

    function: str
    arguments: tuple[Written, ...]
    text: str

    @property
    def holes(self) -> tuple[str, ...]:
        """Their names, each once."""
        return tuple(dict.fromkeys(one.name for one in self.arguments if isinstance(one, Hole)))

    def binder(self, columns: Sequence[str], what: str) -> Callable[[Sequence[Argument]], Call]:
        """What makes a call of a row with these columns; without names, of $1, $2... Raises UsageError: a column is
        missing."""
        places = {name: number for number, name in enumerate(columns)}
        order = [self._place(one.name, places, what) if isinstance(one, Hole) else -1 for one in self.arguments]

        def bind(row: Sequence[Argument]) -> Call:
            values = [
                one if not isinstance(one, Hole) else row[at] for at, one in zip(order, self.arguments, strict=True)
            ]
            return made(self.function, tuple(values))

        return bind

    def _place(self, name: str, places: dict[str, int], what: str) -> int:
        if name in places:
            return places[name]
        if name.isdecimal() and int(name) > 0:
            return int(name) - 1
        known = f"has columns {', '.join(places)}" if places else "has no line with the names of its columns"
        raise UsageError(f"--call {self.text}: ${name}: {what} {known}")

    @property
    def width(self) -> int:
        """How many columns a row has at least, by $1, $2..."""
        return max((int(name) for name in self.holes if name.isdecimal()), default=0)


def parse_template(text: str) -> CallTemplate:
    """Read ``f($1, 2, $name)``. Raises UsageError."""
    function, inside = _parts(text)
    return CallTemplate(function, parse_arguments(inside, f"--call {text}", Hole), text.strip())
