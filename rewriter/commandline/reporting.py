"""What every command does about errors: one line each on stderr and an exit code, never a traceback."""

import errno
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, TextIO

from kinst.targets.errors import ImageError, KinstError
from kinst.targets.nearest import nearest
from kinst.targets.visible import visible_lines

PATCH_HELP: Final = (
    "Write instructions of your own, padded with nops to whole ones of IMAGE. WHERE: f, f+0x10, or an address. WHAT: "
    "assembly with ; between instructions, functions and symbols by name (amd64: Intel's syntax, or AT&T's where there "
    "is a % or $), or hex:BYTES. Repeatable."
)
METHOD_HELP: Final = (
    "How probed instructions are run: in trampolines, except those that must be emulated (auto); or emulated "
    "wherever that can be, on amd64 also what functions begin and end with, at up to twice the cost (emulate); or as "
    "auto, with each hit dispatched, even where it could be counted or batched (trap); or as auto, without "
    "breakpoints at functions' entries where hits are only counted (block: kinst-run); or by jumps to code that counts "
    "in the image, with no handler (jump: --standalone of kinst-rewrite, in memory with kinst-run). "
    "Default: auto, or what IMAGE was patched with."
)
_WITH_TRACEBACK: Final = "KINST_TRACEBACK"


def check_files(*paths: Path | None) -> None:
    """Raise ImageError for the first file that does not exist, before any other error is reported."""
    for path in paths:
        if path is not None and not path.exists():
            raise ImageError(f"{path}: cannot be read: {os.strerror(errno.ENOENT)}{_beside(path)}")


def _beside(path: Path) -> str:
    """Names in the same folder that may have been meant."""
    try:
        return nearest(path.name, (one.name for one in path.parent.iterdir()))
    except OSError:
        return ""


@contextmanager
def reported(command: str) -> Iterator[None]:
    """Run the body of `command`; an error ends the process with the error's exit code."""
    try:
        with _streams():
            yield
    except KinstError as error:
        _fail(command, str(error), error.exit_code)
    except BrokenPipeError:
        # The reader (head, less) has read enough. Python would flush stdout again at exit, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        _fail(command, f"{error.filename or 'cannot write'}: {error.strerror}", 1)
    except Exception as error:  # a defect of ours: one line, and how to see more
        if os.environ.get(_WITH_TRACEBACK):
            traceback.print_exc()
        _fail(command, f"internal error: {type(error).__name__}: {error} ({_WITH_TRACEBACK}=1 shows where)", 1)


class _Visible:
    """A stream of text whose control characters are escaped: names come from an image, and errors may quote them."""

    def __init__(self, stream: TextIO) -> None:
        self.unescaped = stream

    def write(self, text: str) -> int:
        _put(self.unescaped, visible_lines(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unescaped, name)


def unescaped(stream: TextIO) -> TextIO:
    """The stream without escaping, for output that only moves the cursor."""
    found: TextIO = getattr(stream, "unescaped", stream)
    return found


def _put(stream: TextIO, text: str) -> None:
    """Write text. A character that the user's locale cannot encode is no error."""
    encoding = stream.encoding or "utf-8"
    stream.write(text if text.isascii() else text.encode(encoding, "backslashreplace").decode(encoding))


@contextmanager
def _streams() -> Iterator[None]:
    """Give the process its streams. In a process started with closed ones they are None in Python; then output is
    dropped."""
    with ExitStack() as before:
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            stream = getattr(sys, name)
            before.callback(setattr, sys, name, stream)
            if stream is None:
                stream = before.enter_context(Path(os.devnull).open(mode))
            setattr(sys, name, stream if mode == "r" or isinstance(stream, _Visible) else _Visible(stream))
        yield


def _fail(command: str, message: str, code: int) -> None:
    """Print an error and exit. Each line is an error of its own, unless it begins with a blank."""
    with _streams():
        _say(command, message)
    sys.exit(code)


def _say(command: str, message: str) -> None:
    """Print an error. On a terminal the command's name and what carets point at are in colour."""
    from kinst.rewriter.commandline.color import is_colored, painted  # which needs click, an import that takes long

    stream = unescaped(sys.stderr)
    paint = painted if is_colored(stream) else _plain
    name = paint(f"{command}:", "red")
    for line in map(visible_lines, message.splitlines()):
        if line[:1] not in (" ", "\t"):
            stream.write(f"{name} ")
        is_caret = not line.strip(" \t^") and "^" in line
        _put(stream, paint(line, "green") if is_caret else line)
        stream.write("\n")


def _plain(text: str, _color: str) -> str:
    return text
