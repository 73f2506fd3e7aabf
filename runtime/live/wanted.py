"""What is wanted of hits at some sites, again and again -> the forms of their records: at each site what is wanted
there, and nothing else."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.live.fields import joined
from kinst.targets.standalone import MOST_FORMS, TIME

_MOST: Final = 62  # different wants that a number of 64 bits tells apart
Sites = NDArray[np.bool_]


class Wanted:
    """What is wanted at the sites of one image. A site of which nothing is wanted counts."""

    def __init__(self, sites: int) -> None:
        """`sites` is how many there are."""
        self._count = sites
        self._sites: dict[tuple[str, ...], Sites] = {}  # by what is recorded there

    @property
    def is_empty(self) -> bool:
        """Whether all sites count."""
        return not self._sites

    def add(self, sites: Sites, fields: Iterable[str]) -> None:
        """Let the hits of some sites be recorded, with these fields."""
        found = self._sites.setdefault(tuple(fields), np.zeros(self._count, np.bool_))
        found |= sites

    def forms(self, own: Sequence[str], *, has_all: bool) -> tuple[tuple[tuple[str, ...], ...], bytes]:
        """The fields of each form of record, all with those that are `own`, and for each site 0 if it counts, else the
        number of its form, from 1. `has_all`: none counts."""
        wanted = [(fields, sites) for fields, sites in self._sites.items()]
        if has_all:
            wanted.append(((), np.ones(self._count, np.bool_)))
        if len(wanted) > _MOST:
            wanted = _as_one(wanted)
        forms, of_sites = _told_apart(wanted, own)
        if len(forms) > MOST_FORMS:
            forms, of_sites = _told_apart(_as_one(wanted), own)
        return forms, of_sites


def _as_one(wanted: list[tuple[tuple[str, ...], Sites]]) -> list[tuple[tuple[str, ...], Sites]]:
    """The same form at all sites that record."""
    fields = joined(field for fields, _ in wanted for field in fields)
    return [(fields, np.logical_or.reduce([sites for _, sites in wanted]))]


def _told_apart(
    wanted: Sequence[tuple[tuple[str, ...], Sites]], own: Sequence[str]
) -> tuple[tuple[tuple[str, ...], ...], bytes]:
    masks = np.zeros(len(wanted[0][1]), np.int64)
    for number, (_, sites) in enumerate(wanted):
        masks |= sites.astype(np.int64) << number
    distinct, which = np.unique(masks, return_inverse=True)
    forms: dict[tuple[str, ...], int] = {}
    numbers = []
    for mask in distinct.tolist():
        fields = [field for number, (fields, _) in enumerate(wanted) if mask >> number & 1 for field in fields]
        form = joined([*([TIME] if TIME in (*own, *fields) else []), *own, *fields])
        numbers.append(forms.setdefault(form, len(forms) + 1) if mask else 0)
    return tuple(forms), np.array(numbers).astype(np.uint8)[which].tobytes()
