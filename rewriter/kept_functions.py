"""The functions of a large image, kept from one run to the next.

To find those of Linux takes as long as all else of a run that continues from a snapshot, up to its first line. What is
kept follows from the files, from how they are read, and from our code: their digest is its name.
"""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

import kinst.rewriter
import kinst.targets
from kinst.rewriter.shell.fresh_file import fresh_file
from kinst.rewriter.shell.kept_files import code_state, file_digest, forget_beyond, kept_folder
from kinst.targets.functions.found import Functions
from kinst.targets.image import Image

_FOLDER: Final = "functions"
_DIGESTS: Final = "digests"
_SUFFIX: Final = ".functions"
_KEPT: Final = 64 << 20  # bytes; those of Linux have three MB
_FEWEST: Final = 1000  # functions that are worth it
_SMALLEST: Final = 1 << 18  # bytes of code in which there may be so many
_SUM: Final = 32  # bytes of the checksum, before all else
_LENGTH: Final = 4  # bytes of the length of the head, behind it
_COLUMNS: Final = (("address", "<u8"), ("size", "<u8"), ("evidence", "|u1"), ("strict", "<u8"))

Finder = Callable[[Image], Functions]


def keeping(find: Finder, files: tuple[Path | None, ...], how: object, *, smallest: int = _SMALLEST) -> Finder:
    """`find`, or what it found before for the same files. `how`: what else it depends on, with a text that says all.
    `smallest`: the bytes of code from which on an image is worth it."""

    def found(image: Image) -> Functions:
        is_large = sum(one.size for one in image.code_regions) >= smallest
        path = _path(files, how) if is_large else None
        kept = None if path is None else _read(path)
        if kept is not None:
            return kept
        fresh = find(image)
        if path is not None and len(fresh) >= _FEWEST:
            _write(path, fresh)
        return fresh

    return found


def _path(files: tuple[Path | None, ...], how: object) -> Path | None:
    """Where functions are kept that follow from these; None: nowhere, or a file cannot be read twice."""
    folder, digests = kept_folder(_FOLDER), kept_folder(_DIGESTS)
    if folder is None or digests is None:
        return None
    with suppress(OSError):
        found = [None if file is None else file_digest(file, digests) for file in files]
        if any(file is not None and digest is None for file, digest in zip(files, found, strict=True)):
            return None
        all_of_it = found, how, code_state((kinst.rewriter, kinst.targets)), np.__version__
        return folder / f"{hashlib.sha256(repr(all_of_it).encode()).hexdigest()[:32]}{_SUFFIX}"
    return None


def _write(path: Path, functions: Functions) -> None:
    columns = {name: np.ascontiguousarray(getattr(functions, name), kind) for name, kind in _COLUMNS}
    shapes = {name: column.shape for name, column in columns.items()}
    aliases = [[row, *names] for row, names in functions.aliases.items()]
    head = json.dumps([shapes, functions.names, aliases]).encode("ascii")
    body = len(head).to_bytes(_LENGTH, "little") + head + b"".join(one.tobytes() for one in columns.values())
    with suppress(OSError):
        with fresh_file(path) as file:
            file.write(hashlib.sha256(body).digest() + body)
        forget_beyond(path.parent, _SUFFIX, _KEPT)


def _read(path: Path) -> Functions | None:
    """What is kept there; None: nothing, or it is damaged."""
    try:
        data = path.read_bytes()
        body = memoryview(data)[_SUM:]
        if hashlib.sha256(body).digest() != data[:_SUM]:
            return None
        path.touch()  # `forget_beyond` sorts by it
    except OSError:
        return None
    start = _LENGTH + int.from_bytes(body[:_LENGTH], "little")
    shapes, names, aliases = json.loads(bytes(body[_LENGTH:start]))
    columns: dict[str, Any] = {}
    for name, kind in _COLUMNS:
        size = int(np.prod(shapes[name])) * np.dtype(kind).itemsize
        columns[name] = np.frombuffer(body[start : start + size], kind).reshape(shapes[name]).copy()
        start += size
    return Functions(**columns, names=tuple(names), aliases={row: tuple(others) for row, *others in aliases})
