"""The files of a command -> an error, before the first is written, if one of them would be lost.

A file that is written must not be read as well, nor written twice: `--console IMAGE` would empty the image that is
mapped. Files are compared by device and inode, so that no other name or link hides one.
"""

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from kinst.rewriter.shell.file_name import FileName, OutputFile, TextWithFile
from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass

_Identity = tuple[int, int, str]  # device and inode; of a file that is not there yet, its folder's and its name


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file, and what the command line calls it: --disk, IMAGE."""

    name: str
    path: Path
    replaces: str | None = None  # the name of what it may be


def check_apart(read: Sequence[NamedFile], written: Sequence[NamedFile]) -> None:
    """Raise UsageError for a file that is written and read, or written twice. Devices and pipes do not count."""
    known = [(identity, one) for one in read if (identity := _identity(one.path)) is not None]
    for one in written:
        identity = _identity(one.path)
        if identity is None:
            continue
        for other, user in known:
            if identity == other and user.name != one.replaces:
                raise UsageError(
                    f"{one.name} {one.path}: is the file of {user.name}, which would be lost: name another"
                )
        known.append((identity, one))


def _identity(path: Path) -> _Identity | None:
    """None: it is no regular file, or there can be none."""
    try:
        path = path.resolve()
        if not path.exists():
            folder = path.parent.stat()
            return folder.st_dev, folder.st_ino, path.name
        status = path.stat()
    except (OSError, RuntimeError, ValueError):  # a loop of links, a path with a NUL: opening it reports that
        return None
    return (status.st_dev, status.st_ino, "") if stat.S_ISREG(status.st_mode) else None


def check_files_of(ctx: click.Context, *written: NamedFile) -> None:
    """The same for all files that a command line names, and for others that the command writes. Raises UsageError."""
    files = [(parameter, one) for parameter in ctx.command.params for one in _named(parameter, ctx)]
    outputs = [one for parameter, one in files if _is_written(parameter)]
    inputs = [one for parameter, one in files if not _is_written(parameter)]
    check_apart(inputs, [*outputs, *written])


def _named(parameter: click.Parameter, ctx: click.Context) -> Iterator[NamedFile]:
    kind, value = parameter.type, ctx.params.get(parameter.name or "")
    if value is None or not isinstance(kind, (FileName, TextWithFile)):
        return
    for path in kind.files_in(value):
        yield NamedFile(_spelled(parameter), path, _replaced(kind, ctx))


def _is_written(parameter: click.Parameter) -> bool:
    return isinstance(parameter.type, (FileName, TextWithFile)) and parameter.type.is_written


def _replaced(kind: Any, ctx: click.Context) -> str | None:
    if not isinstance(kind, OutputFile) or kind.replaces is None:
        return None
    return next(_spelled(one) for one in ctx.command.params if one.name == kind.replaces)


def _spelled(parameter: click.Parameter) -> str:
    """The option or argument as users write it."""
    if isinstance(parameter, click.Argument):
        return parameter.human_readable_name.partition("]")[0].strip("[")
    return max(parameter.opts, key=len)
