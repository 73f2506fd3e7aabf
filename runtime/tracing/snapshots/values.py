"""The state of devices <-> JSON: numbers, texts and bytes as they are, and each kind of container by a letter.

    ["l", ...]  list        ["t", ...]  tuple      ["q", ...]  deque     ["s", ...]  set       ["f", ...]  frozenset
    ["d", [key, value], ...]  dict                 ["c", [page, bytes], ...]  `Content`
    ["b", text]  bytes and ["a", text]  bytearray, in base 64
    ["e", module, class, name]  a member of an enumeration          ["r", module, class, field, ...]  a record

A file may be anybody's. What it says is checked against a machine that was just made: a value must be of the kind that
is there, so that no device finds what it does not expect. Classes are those of devices, and are never loaded for it.
"""

import base64
import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import Enum
from mmap import mmap
from random import Random
from typing import Any, Final

from kinst.runtime.machine.disk import Content
from kinst.runtime.machine.snapshots.object_graph import is_part, is_record

_WORD: Final = 1 << 65
_PAGE: Final = 4096


class ValueProblem(ValueError):
    """What a file says is no value of ours, or not one for its place."""


_LETTERS: Final[Mapping[type, str]] = {list: "l", tuple: "t", deque: "q", set: "s", frozenset: "f"}
_KINDS: Final[Mapping[str, Callable[[Any], Any]]] = {letter: kind for kind, letter in _LETTERS.items()}


def encoded(value: Any) -> Any:
    """A value as `copy_of` makes them, as JSON has it."""
    match value:
        case Enum():
            return ["e", type(value).__module__, type(value).__qualname__, value.name]
        case None | int() | str():
            return value
        case bytes() | bytearray():
            return ["b" if isinstance(value, bytes) else "a", base64.b64encode(value).decode()]
        case dict():
            rows = [[encoded(key), encoded(one)] for key, one in value.items()]
            return ["c" if isinstance(value, Content) else "d", *rows]
        case _ if type(value) in _LETTERS:
            parts = map(encoded, value)
            return [
                _LETTERS[type(value)],
                *(parts if not isinstance(value, set | frozenset) else sorted(parts, key=repr)),
            ]
        case _ if is_record(value):
            held = [encoded(getattr(value, one.name)) for one in fields(value)]
            return ["r", type(value).__module__, type(value).__qualname__, *held]
        case _:
            raise ValueProblem(f"a {type(value).__name__} has no place in a file")


def decoded(text: Any) -> Any:
    """The value that `encoded` made it of. Raises ValueProblem."""
    match text:
        case None | bool() | str():
            return text
        case int():
            return text
        case ["e", str(module), str(name), str(member)]:
            return _member(_class(module, name), member)
        case ["r", str(module), str(name), *held]:
            return _record(_class(module, name), [decoded(one) for one in held])
        case ["b" | "a" as letter, str(content)]:
            plain = _bytes(content)
            return plain if letter == "b" else bytearray(plain)
        case ["d" | "c" as letter, *rows]:
            return (dict if letter == "d" else Content)(map(_pair, rows))
        case [str(letter), *parts] if letter in _KINDS:
            return _hashed(_KINDS[letter], [decoded(one) for one in parts])
        case _:
            raise ValueProblem("a value is none of ours")


def _hashed(kind: Callable[[Any], Any], parts: list[Any]) -> Any:
    try:
        return kind(parts)
    except TypeError:
        raise ValueProblem("a set has what cannot be in one") from None


def _pair(row: Any) -> tuple[Any, Any]:
    if not isinstance(row, list) or len(row) != 2:
        raise ValueProblem("a row of a table is no pair")
    key = decoded(row[0])
    try:
        hash(key)
    except TypeError:
        raise ValueProblem("a key of a table is no key") from None
    return key, decoded(row[1])


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueProblem("bytes are not in base 64") from None


def _class(module: str, name: str) -> type:
    found = getattr(sys.modules.get(module), name, None)
    if not isinstance(found, type) or found.__module__ != module or not is_part(found):
        raise ValueProblem(f"{module[:99]}.{name[:99]} is no class of a device")
    return found


def _member(found: type, name: str) -> Any:
    members: Mapping[str, Any] = getattr(found, "__members__", {})
    if name not in members:
        raise ValueProblem(f"{found.__name__} has no member {name[:99]}")
    return members[name]


def _record(found: type, held: list[Any]) -> Any:
    if not getattr(getattr(found, "__dataclass_params__", None), "frozen", False) or len(fields(found)) != len(held):
        raise ValueProblem(f"{found.__name__} has other fields")
    if not all(isinstance(one, int | bytes | str | None | tuple) for one in held):
        raise ValueProblem(f"{found.__name__} has other fields")
    return found(*held)


# -- whether a value is one for its place ------------------------------------------------------------------------------


def check(path: str, present: Any, value: Any) -> None:
    """Whether a value from a file can take the place of one that a new machine has. Raises ValueProblem."""
    if not _fits(present, value):
        raise ValueProblem(f"{path[:200]}: is {type(value).__name__}, which cannot be there")


def _fits(present: Any, value: Any) -> bool:
    match present:
        case Random():
            return _is_generator(value)
        case mmap():
            return isinstance(value, Content) and all(_is_page(at, one, len(present)) for at, one in value.items())
        case None:
            return value is None or isinstance(value, int) or _is_plain(value)
        case int() if not isinstance(present, Enum):
            return value is None or (isinstance(value, int) and abs(value) < _WORD) or _is_wide(present, value)
        case dict():
            return isinstance(value, dict) and _fit_rows(present, value)
        case _:
            return type(value) is type(present) and _fit_parts(present, value)


def _fit_parts(present: Any, value: Any) -> bool:
    """What has parts when a machine is new has as many for ever; what is empty then is filled by and by."""
    match present:
        case Enum():
            return True
        case bytearray():
            return len(value) == len(present)
        case list() | tuple() if present:
            return len(value) == len(present) and all(map(_fits, present, value))
        case _:
            return _is_plain(value)


def _is_wide(present: int, value: Any) -> bool:
    """Whether it is a number of many bits, as those of an interrupt controller with a bit for each source."""
    return isinstance(value, int) and 0 <= value < 1 << 4096 and not isinstance(present, bool)


def _is_generator(value: Any) -> bool:
    try:
        Random().setstate(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _is_page(at: Any, content: Any, size: int) -> bool:
    return isinstance(at, int) and 0 <= at < size // _PAGE and isinstance(content, bytes) and len(content) == _PAGE


def _fit_rows(present: dict[Any, Any], value: dict[Any, Any]) -> bool:
    if isinstance(value, Content):
        return all(isinstance(at, int) and isinstance(one, bytes) for at, one in value.items())
    return all(
        _fits(present[key], one) if key in present else _is_plain(key) and _is_plain(one) for key, one in value.items()
    )


def _is_plain(value: Any) -> bool:
    """Whether it is a value that starts out empty and can be: numbers, bytes, and containers of these."""
    match value:
        case int():
            return abs(value) < 1 << 4096
        case None | str() | bytes() | bytearray():
            return True
        case dict():
            return all(_is_plain(key) and _is_plain(one) for key, one in value.items())
        case list() | tuple() | set() | frozenset() | deque():
            return all(map(_is_plain, value))
        case _:
            return is_record(value)
