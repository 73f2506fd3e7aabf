"""The options as consumers use them while a program runs. Interface only."""

from typing import Protocol

from kinst.runtime.dlang.context import OptionValues


class LiveOptions(OptionValues, Protocol):
    """Options that can be read and set. `kinst.runtime.dlang.options.Options` implements it."""

    def is_set(self, name: str) -> bool:
        """Whether the user or the program set it."""
        ...

    def set_while_running(self, name: str, value: str | None) -> None:
        """setopt(name, value). Raises `kinst.runtime.dlang.options.OptionError` for an option that it may not
        change."""
        ...
