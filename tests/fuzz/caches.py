"""What is kept in the user's cache (~/.cache/kinst-rewrite), forged: any JSON in place of an answer, links, owners and
permissions. What is read is an answer or nothing; what may be another's is nothing."""

import json
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import click
from hypothesis import strategies as st

from kinst.rewriter.inlining.inlinecall_cli import inlinecall as kinst_inlinecall
from tests.fuzz.kind import Finding, Kind, command

_SAMPLE: Final = Path(__file__).parent.parent.parent / "samples" / "kernel-amd64.elf"
_FUNCTION: Final = "v2_limits"
_OTHER: Final = 12345  # a user who is not us
_SCALARS: Final = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ("\x1b[31m", "\u202e", "\ud800", "/dev/zero", "/", "\0", "", "state", "functions", "copies", "NaN")
    ),
)
VALUES: Final = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=6,
)
Step = str | int
Change = tuple[tuple[int, ...], Any]  # where in the answer, by the numbers of its members; what is there instead


def changed(value: Any, path: tuple[int, ...], what: Any) -> Any:
    """A copy of a JSON value with something else at a path, which leads into it as far as it goes."""
    if not path or not isinstance(value, dict | list) or not value:
        return what
    number, rest = path[0] % len(value), path[1:]
    if isinstance(value, list):
        return [changed(one, rest, what) if at == number else one for at, one in enumerate(value)]
    chosen = list(value)[number]
    return {key: changed(one, rest, what) if key == chosen else one for key, one in value.items()}


def _foreign(path: Path) -> None:
    os.chown(path, _OTHER, _OTHER)


def _linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _writable(path: Path) -> None:
    path.parent.chmod(0o777)


def _folder_of_another(path: Path) -> None:
    os.chown(path.parent, _OTHER, _OTHER)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


_AS_IT_IS: Final = 0
_HOW: Final[tuple[Callable[[Path], None], ...]] = (
    lambda _path: None,
    _foreign,
    _linked,
    _writable,
    _folder_of_another,
    _pipe,
)


def _asked(home: Path, *words: str) -> str:
    """What the command says with this home, or the error."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(home)
    try:
        result = command(kinst_inlinecall, _FUNCTION, _SAMPLE, *words)
    finally:
        if before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = before
    if any(not letter.isprintable() for letter in click.unstyle(result.stdout) if letter not in "\n\t"):
        raise Finding("a kept answer acts on the terminal")
    return result.stdout


@cache
def _right() -> tuple[str, str, Any]:
    """What is right to say; the name of the file that is kept, below the home; and what is in it."""
    with tempfile.TemporaryDirectory() as name:
        said = _asked(Path(name))
        (kept,) = (path for path in Path(name).rglob("*.json") if path.is_file())
        return said, str(kept.relative_to(name)), json.loads(kept.read_bytes())


def _run(drawn: tuple[tuple[Change, ...], bytes | None, int], folder: Path) -> None:
    changes, raw, how = drawn
    said, name, value = _right()
    for path, what in changes:
        value = changed(value, path, what)
    kept = folder / "home" / name
    for part in reversed(kept.parents[:4]):
        part.mkdir(mode=0o700, exist_ok=True)
    kept.write_bytes(json.dumps(value).encode() if raw is None else raw)
    kept.chmod(0o600)
    _HOW[how if os.getuid() == 0 else 0](kept)
    found = _asked(folder / "home")
    if how != _AS_IT_IS and os.getuid() == 0 and found != said:
        raise Finding(f"{_HOW[how].__name__} was believed")
    _asked(folder / "home", "--format", "json")


_CHANGES: Final = st.lists(st.tuples(st.lists(st.integers(0, 20), max_size=6).map(tuple), VALUES), max_size=3).map(
    tuple
)
_RAW: Final = st.one_of(
    st.none(),
    st.none(),
    st.none(),
    st.binary(max_size=20),
    st.sampled_from((b"[" * 100_000, b'{"state":' * 5000, b"1e999999", b"\xff\xfe", b"9" * 10_000)),
)
CACHES: Final = Kind("caches", st.tuples(_CHANGES, _RAW, st.integers(0, len(_HOW) - 1)), _run)
