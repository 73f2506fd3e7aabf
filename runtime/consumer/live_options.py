"""What consumers ask of the options while a program runs."""

from typing import Protocol

from kinst.runtime.dlang.context import OptionValues


class LiveOptions(OptionValues, Protocol):
    """`kinst.runtime.dlang.options.Options`."""

    def is_set(self, name: str) -> bool:
        """Whether somebody set it."""
        ...

    def set_while_running(self, name: str, value: str | None) -> None:
        """setopt(). Raises `kinst.runtime.dlang.options.OptionError`."""
        ...
