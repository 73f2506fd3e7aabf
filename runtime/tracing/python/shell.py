"""A prompt of Python's where a probe has fired: --shell. IPython, if it is installed; else Python's own."""

import signal
import sys
from code import InteractiveConsole
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, NoReturn

from kinst.runtime.tracing.hits import Hit
from kinst.runtime.tracing.python.completion import DELIMITERS, candidates
from kinst.runtime.typed import walks
from kinst.targets.errors import KinstError
from kinst.targets.signals import caught

_FUNCTIONS: Final = (
    *("cast", "container_of", "follow", "hlist_for_each_entry", "list_for_each_entry", "offsetof", "sizeof"),
)
_BANNER: Final = "{probe}: Python, with hit, trace[NAME] and {functions}; Ctrl-D goes on with the run, exit() ends it"


class Shell:
    """The action of --shell: a prompt, when its probe fires for the first time."""

    def __init__(self) -> None:
        """Nobody has come yet."""
        self._is_done = False
        self._end: Callable[[], None] | None = None
        self._flush: Callable[[], None] = lambda: None

    def attach(self, end: Callable[[], None], flush: Callable[[], None]) -> None:
        """`end` ends the run; `flush` writes what was printed before."""
        self._end, self._flush = end, flush

    def __call__(self, hit: Hit) -> None:
        """The probe fires."""
        if self._is_done:
            return
        self._is_done = True
        self._flush()
        names = {"hit": hit, "trace": hit.objects, **{name: getattr(walks, name) for name in _FUNCTIONS}}
        banner = _BANNER.format(probe=hit.probe, functions=", ".join(_FUNCTIONS))
        try:
            with caught(_interrupted, signal.SIGINT):  # Ctrl-C ends a line, and not the run
                _interact(names, banner)
        except SystemExit:
            if self._end is not None:
                self._end()
        finally:
            sys.stdout.flush()  # what the run prints goes by another way


def _interrupted(_number: int) -> NoReturn:
    raise KeyboardInterrupt


def _interact(names: dict[str, Any], banner: str) -> None:
    if not sys.stdin.isatty():
        _Lines(names).interact(banner="", exitmsg="")
    elif find_spec("IPython") is not None:
        _ipython(names, banner)
    else:
        _complete(names)
        _Console(names).interact(banner=banner, exitmsg="")


def _ipython(names: dict[str, Any], banner: str) -> None:
    made: Any = import_module("IPython.terminal.embed").InteractiveShellEmbed
    shell = made(user_ns=names, banner1=f"{banner}\n", exit_msg="", confirm_exit=False)
    shell.set_custom_exc((KinstError,), lambda _self, kind, error, _at, **_more: _show(kind, error))
    while True:
        try:
            shell()
            return
        except KeyboardInterrupt:  # where its prompt is a simple one, as on a dumb terminal
            shell.banner1 = "\n"


def _show(kind: type[BaseException], error: BaseException) -> None:
    sys.stderr.write(f"{kind.__name__}: {error}\n")


class _Console(InteractiveConsole):
    """Python's own prompt. What is wrong with a typed value is a line."""

    def showtraceback(self) -> None:
        """Show the error that a line has raised."""
        kind, error, _ = sys.exc_info()
        if kind is not None and isinstance(error, KinstError):
            _show(kind, error)
        else:
            super().showtraceback()


class _Lines(_Console):
    """A pipe or a file: its lines are run, and no prompt is printed."""

    def raw_input(self, prompt: str = "") -> str:
        """The next line. Raises EOFError: there is none."""
        del prompt
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.rstrip("\n")

    def write(self, data: str) -> None:
        """Errors, as Python prints them; not the empty line behind the last one."""
        if data.strip():
            super().write(data)


def _complete(names: dict[str, Any]) -> None:
    """Let Tab complete names of the image, where Python has readline."""
    with suppress(ImportError):
        readline: Any = import_module("readline")
        readline.set_completer_delims(DELIMITERS)
        readline.set_completer(lambda _word, number: _candidate(readline, names, number))
        readline.parse_and_bind("tab: complete")


def _candidate(readline: Any, names: dict[str, Any], number: int) -> str | None:
    found = candidates(readline.get_line_buffer()[: readline.get_endidx()], names)
    return found[number] if number < len(found) else None
