"""What the commands accept as a file: any path that can be passed to a system call; and texts with a file's name in
them. Each tells which file it means, so that those of a command can be compared: `kinst.rewriter.commandline.apart`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click


class FileName(click.Path):
    """click's path type, but with an error for a path with a NUL."""

    is_written = False

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path. Raises click.BadParameter for what cannot be one."""
        if not str(value) or "\0" in str(value):
            self.fail(f"{value!r} is no name of a file", param, ctx)
        return super().convert(value, param, ctx)

    def files_in(self, value: Any) -> Iterator[Path]:
        """The files that a value of the parameter names: one, or several if the option is given several times."""
        yield from map(Path, value if isinstance(value, tuple) else (value,))


class OutputFile(FileName):
    """A file that is written. `replaces`: the parameter with the input that it may be, since it is replaced as a whole
    when all of it is read."""

    is_written = True

    def __init__(self, *, replaces: str | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.replaces = replaces


class TextWithFile(click.types.StringParamType):
    """A text with the name of a file that is read, or written. `find`: the file; None: there is none in it. `count`:
    how many of several texts have one; None: all."""

    def __init__(
        self, find: Callable[[str], Path | None], count: int | None = None, *, is_written: bool = False
    ) -> None:
        self._find, self._count, self.is_written = find, count, is_written

    def files_in(self, value: Any) -> Iterator[Path]:
        """The files that a value of the parameter names."""
        texts = value if isinstance(value, tuple) else (value,)
        return (path for path in map(self._find, texts[: self._count]) if path is not None)
