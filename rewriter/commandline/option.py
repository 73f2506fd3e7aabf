"""What a command knows of an option beyond click: the heading of its help, a short text, and whether it is rare."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from kinst.targets.nearest import nearest

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
        is_rare: only --help-all shows it.
    """

    def __init__(
        self, *arguments: Any, group: str, brief: str | None = None, is_rare: bool = False, **settings: Any
    ) -> None:
        super().__init__(*arguments, **settings)
        self.group, self.brief, self.is_rare = group, brief, is_rare


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
    return click.option(*spellings, cls=Option, **settings)


def together(*decorators: Decorator) -> Decorator:
    """Several as one, in their order."""

    def add(command: T) -> T:
        for one in reversed(decorators):
            command = one(command)
        return command

    return add
