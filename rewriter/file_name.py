"""What the commands take for a file: any path that a system call could be given."""

from typing import Any

import click


class FileName(click.Path):
    """click's path, which leaves it to the system to find a NUL."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A path; click.BadParameter for what is none."""
        if not str(value) or "\0" in str(value):
            self.fail(f"{value!r} is no name of a file", param, ctx)
        return super().convert(value, param, ctx)
