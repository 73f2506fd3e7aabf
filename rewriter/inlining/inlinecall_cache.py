"""What kinst-inlinecall found, cached: a JSON file for each build-id and function.

The cache is never required: what cannot be read or written is ignored. An answer is valid only while the files that it
came from, and the code that found it, are unchanged. It may be forged nevertheless: files and folders of other users
are ignored, and what is read must have the shape of an answer, with texts that do nothing to a terminal.
"""

import contextlib
import errno
import json
import os
import stat
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from kinst.rewriter.inlining.inlinecall import SHAPE
from kinst.rewriter.shell.cache_home import cache_home, is_private, own_folder
from kinst.rewriter.shell.fresh_file import fresh_file
from kinst.targets import elf
from kinst.targets.elf.file import ElfFile
from kinst.targets.elf.notes import build_id
from kinst.targets.visible import visible

_NAME: Final = "inlinecall"
_DEPTH: Final = 3  # folders: kinst-rewrite/inlinecall/<build-id>
_LONGEST_NAME: Final = 200  # of a file; an answer for a function with a longer name is not kept
_LARGEST: Final = 64 << 20  # bytes of a file: Linux's most inlined function has 3 MB
_WORD: Final = range(1 << 64)
Values = list[dict[str, Any]]


class KeptAnswers:
    """The answers about one image, in ``$XDG_CACHE_HOME/kinst-rewrite/inlinecall`` (else in ``~/.cache``)."""

    def __init__(self, image: ElfFile, debug_file: Path | None) -> None:
        """Nothing is kept for an image without a build-id."""
        identity = build_id(image)
        self._folder = None if identity is None else cache_home() / "kinst-rewrite" / _NAME / identity.hex()
        self._state = [str(debug_file or ""), _state(image.path), _code_state()]

    def read(self, function: str) -> Values | None:
        """The cached answer about a function; None if there is none, or if it is no longer valid."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
            path = self._path(function)
            kept = None if path is None or not is_private(path.parent, _DEPTH) else json.loads(_content(path))
            if kept and kept["state"] == self._state and kept["debug_state"] == _state(Path(kept["debug_path"])):
                functions: Values = kept["functions"]
                return functions if _fits(functions, SHAPE) else None
        return None

    def write(self, function: str, functions: Values, debug_path: Path) -> None:
        """Keep what the debug information in `debug_path` says."""
        path = self._path(function)
        if path is None:
            return
        debug_path = debug_path.absolute()
        values = {
            "state": self._state,
            "debug_path": str(debug_path),
            "debug_state": _state(debug_path),
            "functions": functions,
        }
        with contextlib.suppress(OSError):
            if is_private(own_folder(_NAME, path.parent.name), _DEPTH):
                with fresh_file(path) as file:
                    file.write(json.dumps(values, separators=(",", ":")).encode())

    def _path(self, function: str) -> Path | None:
        name = f"{quote(function, safe='', errors='surrogateescape')}.json"
        return None if self._folder is None or len(name) > _LONGEST_NAME else self._folder / name


def _content(path: Path) -> bytes:
    """The content of a file.

    Raises OSError for a link, for anything that is not a regular file of the user's own, and for a file larger than any
    answer.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode) or state.st_uid != os.getuid() or state.st_size > _LARGEST:
            raise OSError(errno.EINVAL, "not a file of ours")
        return file.read(_LARGEST)


def _fits(value: Any, shape: Any) -> bool:
    """Whether a JSON value has a shape such as `inlinecall.SHAPE`."""
    if isinstance(shape, dict):
        return (
            isinstance(value, dict)
            and value.keys() == shape.keys()
            and all(_fits(value[key], shape[key]) for key in shape)
        )
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(one, shape[0]) for one in value)
    if type(value) is not shape:  # a bool is an int to isinstance()
        return False
    return value in _WORD if shape is int else visible(value) == value if shape is str else True


def _state(path: Path) -> list[int]:
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]


def _code_state() -> int:
    """When what finds the answers was last changed."""
    targets, here = Path(elf.__file__).parent.parent, Path(__file__).parent
    files = (*targets.glob("debuginfo/*.py"), *targets.glob("elf/*.py"), *here.glob("inlinecall*.py"))
    return max(path.stat().st_mtime_ns for path in files)
