"""A word that names nothing, and the words that would -> what an error adds: which of them was perhaps meant."""

import difflib
from collections.abc import Iterable
from typing import Final

_FEW: Final = 3
_LONGER: Final = 3  # letters by which the length of a word that is near may differ


def nearest(name: str, known: Iterable[str]) -> str:
    """`; nearest timestamp`, up to three words with the nearest first; empty if none is near."""
    candidates = {word for word in known if abs(len(word) - len(name)) <= _LONGER and word.isprintable()}
    found = difflib.get_close_matches(name, sorted(candidates - {name}), _FEW)
    return f"; nearest {', '.join(found)}" if found else ""
