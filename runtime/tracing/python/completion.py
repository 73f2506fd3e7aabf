"""A line that is being typed -> what may follow: names of the image in brackets, members of structs behind a dot."""

import re
from collections.abc import Mapping
from typing import Any, Final

# Names, members and elements: what can be evaluated without calling anything of the user's.
_REACHED: Final = r"[A-Za-z_]\w*(?:\.\w+|\[\d+\]|\[\"[^\"]*\"\]|\['[^']*'\])*"
_KEY: Final = re.compile(rf"({_REACHED})\[[\"']([^\"']*)$")
_MEMBER: Final = re.compile(rf"({_REACHED})\.(\w*)$")
_NAME: Final = re.compile(r"(?:^|[^\w.\"'])([A-Za-z_]\w*)$")
DELIMITERS: Final = " \t\n`~!@#$%^&*()-=+[{]}\\|;:'\",<>/?."  # of readline: a word is what is completed
_MOST: Final = 500  # names that are offered


def candidates(line: str, names: Mapping[str, Any]) -> list[str]:
    """The words that the last one of a line may become. `names` are those that the line can use."""
    if found := _KEY.search(line):
        return _starting(_keys(_value(found[1], names)), found[2])
    if found := _MEMBER.search(line):
        return _starting(dir(_value(found[1], names)), found[2])
    return _starting(list(names), found[1]) if (found := _NAME.search(line)) else []


def _value(text: str, names: Mapping[str, Any]) -> object:
    try:
        return eval(text, dict(names))
    except Exception:
        return None


def _keys(value: object) -> list[str]:
    keys = getattr(value, "_ipython_key_completions_", None)
    return [] if keys is None else keys()


def _starting(words: list[str], start: str) -> list[str]:
    found = (word for word in words if word.startswith(start) and (start.startswith("_") or not word.startswith("_")))
    return sorted(set(found))[:_MOST]
