"""An unknown word and the known ones -> what an error adds: which of them may have been meant."""

import difflib
from collections.abc import Collection, Iterable
from typing import Final

_FEW: Final = 3
_LONGER: Final = 3  # the most letters by which the lengths of near words differ


def nearest(name: str, known: Iterable[str]) -> str:
    """`; nearest timestamp`, with up to three words, the nearest first; empty if none is near."""
    candidates = {word for word in known if abs(len(word) - len(name)) <= _LONGER and word.isprintable()}
    found = difflib.get_close_matches(name, sorted(candidates - {name}), _FEW)
    return f"; nearest {', '.join(found)}" if found else ""


def nearest_names(name: str, known: Collection[str], count: int = _FEW) -> list[str]:
    """Names of functions that look like `name`, the nearest first, then the shortest ones that contain it."""
    lowered = name.lower()
    inside = [other for other in known if lowered in other.lower()] if len(name) > _LONGER else []
    close = difflib.get_close_matches(name, [one for one in known if abs(len(one) - len(name)) <= _LONGER], count)
    return list(dict.fromkeys([*close, *sorted(inside, key=len)]))[:count]
