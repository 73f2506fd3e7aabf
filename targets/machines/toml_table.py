"""A TOML file -> tables whose values are asked for by key and kind; what is wrong is said with its line and column.

`tomllib` keeps no positions. They are searched for in the text, and only when there is an error to report. Schema
libraries do not know them either, and take longer to import than a board takes to read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass

_HEADER: Final = re.compile(r"^\s*\[\[?\s*([^\]]+?)\s*\]\]?")
_KEY: Final = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_DOTTED: Final = re.compile(rf"\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*=")
_PARTS: Final = re.compile(_KEY)
_SIZE: Final = re.compile(r"(\d[\d_]*)\s*([kmg])i?b?", re.IGNORECASE)
_UNITS: Final = {"k": 10, "m": 20, "g": 30}
_LARGEST: Final = 1 << 20  # bytes of a file
_MOST: Final = (1 << 64) - 1

Path_ = tuple[str, ...]  # the keys that lead to a value


@dataclass(frozen=True, slots=True)
class TomlText:
    """The text of a file, and its name for messages. `base`: that of the file which it extends, if it names one."""

    name: str
    text: str
    base: "TomlText | None" = None

    def error(self, keys: Path_, why: str) -> UsageError:
        """The error of the value that the keys lead to, in the file that has most of them."""
        source, (depth, line, column) = self, self.place(keys)
        base = self.base
        while base is not None:
            deeper, *place = base.place(keys)
            if deeper > depth:
                source, depth, (line, column) = base, deeper, place
            base = base.base
        what = ".".join(keys)
        return UsageError(f"{source.name}:{line}:{column}: {what + ': ' if what else ''}{why}")

    def place(self, keys: Path_) -> tuple[int, int, int]:
        """The longest beginning of `keys` that is found in the text: its length, and line and column, both from 1."""
        best = 0, 1, 1
        for found, line, column in self._keys():
            common = next((n for n, (one, other) in enumerate(zip(found, keys, strict=False)) if one != other), None)
            depth = min(len(found), len(keys)) if common is None else common
            if depth > best[0]:
                best = depth, line, column
        return best

    def _keys(self) -> Iterator[tuple[Path_, int, int]]:
        """The keys of each table and value, and where they are written."""
        table: Path_ = ()
        for number, line in enumerate(self.text.splitlines(), 1):
            header, value = _HEADER.match(line), _DOTTED.match(line)
            if header is not None:
                table = _parts(header[1])
                yield table, number, header.start(1) + 1
            elif value is not None:
                name = (*table, *_parts(value[1]))
                yield name, number, value.start(1) + 1
                yield from _inner(name, line, value.end(), number)


def _inner(name: Path_, line: str, start: int, number: int) -> Iterator[tuple[Path_, int, int]]:
    """The keys of a table that is written as a value: { offset = 4, ... }."""
    for found in re.finditer(rf"(?<=[{{,])\s*({_KEY})\s*=", line[start - 1 :]):
        yield (*name, *_parts(found[1])), number, start - 1 + found.start(1) + 1


def _parts(dotted: str) -> Path_:
    return tuple(part.strip("\"'") for part in _PARTS.findall(dotted))


@dataclass(slots=True)
class Table:
    """One table of a file. Each key that is read is known; `end` refuses the others."""

    source: TomlText
    values: Mapping[str, Any]
    keys: Path_ = ()
    _known: list[str] = field(default_factory=list)

    def error(self, key: str, why: str) -> UsageError:
        """The error of one of its values."""
        return self.source.error((*self.keys, key) if key else self.keys, why)

    def has(self, key: str) -> bool:
        """Whether a key is there."""
        self._known.append(key)
        return key in self.values

    def value(self, key: str) -> Any:
        """A value of any kind; UsageError if it is not there."""
        if not self.has(key):
            raise self.error("", f"lacks {key!r}")
        return self.values[key]

    def text(self, key: str, default: str | None = None, choices: Sequence[str] | None = None) -> str:
        """Text, one of `choices` if they are given."""
        if default is not None and not self.has(key):
            return default
        value = self.value(key)
        if not isinstance(value, str):
            raise self.error(key, f"is {_shown(value)}, and must be text in quotes")
        if choices is not None and value not in choices:
            raise self.error(key, f"{value!r} does not exist{nearest(value, choices)}")
        return value

    def number(self, key: str, default: int | None = None, *, low: int = 0, high: int = _MOST) -> int:
        """A number, or a size such as "512m"."""
        if default is not None and not self.has(key):
            return default
        value = self.value(key)
        if isinstance(value, str) and (found := _SIZE.fullmatch(value)) is not None:
            value = int(found[1].replace("_", "")) << _UNITS[found[2].lower()]
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(key, f'is {_shown(value)}, and must be a number such as 0x1000, or "512m"')
        if not low <= value <= high:
            raise self.error(key, f"is {value:#x}, and must be {low:#x} to {high:#x}")
        return value

    def flag(self, key: str) -> bool:
        """A switch: false where it is not there."""
        value = self.value(key) if self.has(key) else False
        if not isinstance(value, bool):
            raise self.error(key, f"is {_shown(value)}, and must be true or false")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; empty where it is not there."""
        value = self.value(key) if self.has(key) else []
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self.error(key, f"is {_shown(value)}, and must be a list of texts")
        return tuple(value)

    def table(self, key: str) -> "Table":
        """A table; an empty one where it is not there."""
        value = self.value(key) if self.has(key) else {}
        if not isinstance(value, dict):
            raise self.error(key, f"is {_shown(value)}, and must be a table: [{'.'.join((*self.keys, key))}]")
        return Table(self.source, value, (*self.keys, key))

    def tables(self, key: str) -> Iterator["Table"]:
        """The named tables in a table."""
        group = self.table(key)
        for name in group.values:
            yield group.table(name)

    @property
    def name(self) -> str:
        """The last of its keys."""
        return self.keys[-1]

    def end(self) -> None:
        """Refuse keys that nobody has asked for."""
        for key in self.values:
            if key not in self._known:
                raise self.error(key, f"no such key here{nearest(key, self._known)}")


def read_toml(path: Path) -> Table:
    """The whole file as a table.

    Raises:
        UsageError: it cannot be read, or is no TOML.
    """
    import tomllib

    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or 'is not text'}") from None
    if len(content) > _LARGEST:
        raise UsageError(f"{path}: is larger than {_LARGEST >> 20} MiB: it is no board")
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        why, _, place = str(error).partition(" (at line ")
        line, _, column = place.rstrip(")").partition(", column ")
        where = f":{line}:{column}" if column else ""
        raise UsageError(f"{path}{where}: {why[:200]}") from None
    return Table(TomlText(str(path), text), values)


def nearest(word: str, words: Sequence[str]) -> str:
    """A hint for a word that does not exist: the nearest one, or all if they are few."""
    from difflib import get_close_matches

    close = get_close_matches(word, words, 1)
    if close:
        return f": did you mean {close[0]!r}?"
    return f"; there are {', '.join(sorted(set(words)))}" if words else ""


def _shown(value: object) -> str:
    return repr(value)[:40]
