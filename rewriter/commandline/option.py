"""What a command knows of an option beyond click: the heading of its help, a short text, and whether it is rare.

An option that is spelled otherwise today is an `OldSpelling`: it goes on working, hidden, and tells the new spelling.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import click

from kinst.targets.nearest import nearest

_NOTES: Final = "kinst.old_spellings"

T = TypeVar("T", bound=Callable[..., Any])


class Decorator(Protocol):
    """Adds options to a function that becomes a command."""

    def __call__(self, command: T, /) -> T:
        """The function."""
        ...


class Option(click.Option):
    """An option of a command.

    Args:
        group: the heading that help shows it under.
        brief: what --help says in less than a line; --help-all and the documents say `help`.
        is_rare: --help leaves it to --help-all.
    """

    def __init__(
        self, *arguments: Any, group: str, brief: str | None = None, is_rare: bool = False, **settings: Any
    ) -> None:
        super().__init__(*arguments, **settings)
        self.group, self.brief, self.is_rare = group, brief, is_rare


class OldSpelling(click.Option):
    """An option that sets another parameter, `sets`, to `value` or, without one, to what is given.

    A command that has any calls `apply_old_spellings` when everything is read. `instead` is the spelling of today.
    """

    def __init__(
        self, spellings: Sequence[str], *, sets: str, instead: str, value: Any = None, **settings: Any
    ) -> None:
        names = [*spellings, f"old_{spellings[0].strip('-')}"]
        is_flag = value is not None
        super().__init__(
            names, is_flag=is_flag, default=None, hidden=True, expose_value=False, callback=self._note, **settings
        )
        self._sets, self._instead, self._value = sets, instead, value

    def _note(self, ctx: click.Context, _option: click.Parameter, given: Any) -> None:
        if given:
            value = given if self._value is None else self._value
            hint = f"{self.opts[0]} is spelled {self._instead} now; it goes on working"
            ctx.meta.setdefault(_NOTES, []).append((self._sets, value, hint))


def apply_old_spellings(ctx: click.Context) -> list[str]:
    """Set what old spellings stand for. Returns a hint for each."""
    notes = ctx.meta.get(_NOTES, [])
    for name, value, _ in notes:
        ctx.params[name] = value
    return [hint for _, _, hint in notes]


if TYPE_CHECKING:
    Words = click.Choice[str]
else:
    Words = click.Choice  # which has no parameter in click 8.1


class Choice(Words):
    """click's choice, with the nearest words in the error."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """One of the words. Raises click.BadParameter."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(error.message.rstrip(".") + nearest(str(value), self.choices), param, ctx)


def option(*spellings: str, **settings: Any) -> Decorator:
    """A decorator: click's for an `Option`."""
    return _decorator(Option, spellings, settings)


def old_spelling(*spellings: str, **settings: Any) -> Decorator:
    """A decorator: click's for an `OldSpelling`."""
    return _decorator(OldSpelling, spellings, settings)


def together(*decorators: Decorator) -> Decorator:
    """Several as one, in their order."""

    def add(command: T) -> T:
        for one in reversed(decorators):
            command = one(command)
        return command

    return add


def _decorator(kind: type[click.Option], spellings: Sequence[str], settings: dict[str, Any]) -> Decorator:
    return click.option(*spellings, cls=kind, **settings)
