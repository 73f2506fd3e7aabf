"""What the commands accept as a file: any path that can be passed to a system call."""

from typing import Any

import click


class FileName(click.Path):
    """click's path type, but with an error for a path with a NUL."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path. Raises click.BadParameter for what cannot be one."""
        if not str(value) or "\0" in str(value):
            self.fail(f"{value!r} is no name of a file", param, ctx)
        return super().convert(value, param, ctx)
