"""The options as consumers use them while a program runs. Contracts only."""

from typing import Protocol

from kinst.runtime.dlang.context import OptionValues


class LiveOptions(OptionValues, Protocol):
    """Options that can be read and set. `kinst.runtime.dlang.options.Options` implements it."""

    def is_set(self, name: str) -> bool:
        """Whether it was set, to whatever value."""
        ...

    def set_while_running(self, name: str, value: str | None) -> None:
        """setopt(name, value). Raises `kinst.runtime.dlang.options.OptionError` for what it may not change."""
        ...
