"""What a kind of fuzzing is: inputs that hypothesis draws and shrinks, and what is done with one."""

import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from click.testing import CliRunner, Result
from hypothesis.strategies import SearchStrategy

from kinst.targets.errors import GuestError, NothingLeftError

_NUMBER: Final = re.compile(r"0x[0-9a-f]+|\d+")


class Finding(AssertionError):
    """A rule that an input breaks."""


class Hang(BaseException):
    """An input that takes too long; no command may catch it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """`run` is given an input and a folder of its own, and raises what it finds; `repr` shows all of an input."""

    name: str
    inputs: SearchStrategy[Any]
    run: Callable[[Any, Path], None]
    seconds: float = 10  # that an input may take
    megabytes: int = 1024  # that a process may take more than it had


def signature(error: BaseException) -> str:
    """What two findings of one defect have in common: the kind of error and the last place of ours."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if ".typing" in frame.filename]
    place = f"{Path(ours[-1].filename).name}:{ours[-1].name}" if ours else _NUMBER.sub("#", str(error))[:300]
    return f"{type(error).__name__} in {place}"


def command(main: click.Command, *words: str | Path, also: int = 0) -> Result:
    """Run a command in this process: it ends with a status that is known, or `also` with this one, and says no more
    than one error."""
    result = CliRunner(env={"KINST_TRACEBACK": "1"}).invoke(main, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if "internal error" in result.stderr:
        raise Finding("\n".join(result.stderr.splitlines()[-5:]))
    if result.exit_code not in (0, 1, 2, also, GuestError.exit_code, NothingLeftError.exit_code):
        raise Finding(f"exit status {result.exit_code}")
    return result
