"""What names of inlined copies were resolved to -> values for the manifest, and back to the sites of those copies.

Only debug information, which may be in a separate file, says where such copies are. A patched image keeps what is
needed to probe them again, but not where their arguments are.
"""

from collections.abc import Sequence

import numpy as np

from kinst.rewriter.naming.inline_exits import rows_between
from kinst.rewriter.naming.inline_probes import Expansion, InlineSite
from kinst.rewriter.naming.refusals import no_refusals
from kinst.rewriter.naming.select import Names, Selection
from kinst.rewriter.naming.sites import Decoded, Rows
from kinst.targets.debuginfo.inlined import InlinedCopy, SourceLine
from kinst.targets.functions.found import Functions
from kinst.targets.manifest.inlined_names import InlinedName, InlinedPlace
from kinst.targets.probe import ProbeName
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Remembered:
    """A name that the image was patched with earlier: its sites, with the interface of
    `inline_probes.Inlined`."""

    known: InlinedName
    fbt: Selection

    def rows(self, functions: Functions) -> Rows:
        """The rows of the functions that must be decoded."""
        rows = (functions.row_at(place.address) for place in self.known.places)
        return np.array(sorted({row for row in rows if row is not None}), np.intp)

    def expansion(self, code: Decoded, name: ProbeName) -> Expansion:
        """The sites of the name."""
        rows = [rows_between(code, place.address, place.address + 1) for place in self.known.places]
        pairs = zip(rows, self.known.places, strict=True)
        sites = tuple(_site(found.start, place) for found, place in pairs if found)
        return Expansion(name, sites, self.known.copies, self.known.functions, no_refusals(), self.fbt)


def _site(row: int, place: InlinedPlace) -> InlineSite:
    copy = InlinedCopy((), place.address, "", 0, SourceLine(place.file, place.line))
    return InlineSite(row, place.address, place.function, (copy,), place.staying, knows_arguments=False)


def remembered(names: Sequence[InlinedName], name: ProbeName, functions: Functions, known: Names) -> Remembered | None:
    """What the image was patched with under a name; None if it was not."""
    for one in names:
        if (one.function, one.name) == (name.function, name.name):
            chosen = [known.select_exact(text) for _, text in one.own]
            places = [{functions.row_at(address)} for address, _ in one.own]
            kept = [_only(selection, rows) for selection, rows in zip(chosen, places, strict=True)]
            return Remembered(one, _joined(kept))
    return None


def _only(selection: Selection, rows: set[int | None]) -> Selection:
    keep = np.array([row in rows for row in selection.rows.tolist()], np.bool_)
    return Selection(selection.rows[keep], selection.names[keep])


def _joined(parts: Sequence[Selection]) -> Selection:
    rows = np.concatenate([np.zeros(0, np.intp), *(part.rows for part in parts)])
    return Selection(rows, np.concatenate([np.zeros(0, np.int64), *(part.names for part in parts)]))


def memory_of(expansion: Expansion, functions: Functions, names: Names) -> InlinedName:
    """What the manifest keeps of a name."""
    fbt = expansion.fbt
    own = zip(functions.address[fbt.rows].tolist(), map(names.text_of, fbt.names.tolist()), strict=True)
    places = tuple(
        InlinedPlace(site.address, site.function, site.staying, site.copies[0].call.file, site.copies[0].call.line)
        for site in expansion.sites
    )
    name = expansion.name
    return InlinedName(name.function, name.name, expansion.copies, expansion.functions, tuple(own), places)
