"""Two files of folded stacks -> one flame graph of the second, whose colours show what increased and decreased.

Shares of the total are compared, so that a longer run, or a higher sampling rate, makes no difference by itself.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kinst.runtime.consumer.pictures.flame_graph import FlameGraph
from kinst.runtime.consumer.pictures.flame_tree import Box
from kinst.runtime.consumer.pictures.folded_stacks import Frame, FrameKind, Stacks
from kinst.targets.errors import ImageError
from kinst.targets.visible import visible

_SATURATED: Final = 0.1  # of the whole: a change that has the deepest colour
_Path = tuple[Frame, ...]


class FlameDifference(FlameGraph):
    """The stacks of `after`: red has a larger share of the total than `before`, blue a smaller one."""

    def __init__(self, before: Stacks, after: Stacks, title: str) -> None:
        """Each has stacks."""
        self._title, self._unit = title, ""
        self._shares = _shares(before)
        gone = len(self._shares.keys() - _shares(after).keys())
        less = f"; {gone:,} call paths are gone" if gone else ""
        self._what = f"red: more than before, blue: less, white: the same{less}"
        self._after = after
        self._path: list[Frame] = []

    def drawn(self) -> Iterator[bytes]:
        """The picture."""
        return self.pieces(self._after)

    def _colour(self, box: Box, width: float) -> tuple[str, str]:
        change = width - self._before(box)
        depth = min(1.0, abs(change) / _SATURATED)
        kind = "same" if abs(change) < 5e-5 else "more" if change > 0 else "less"
        return kind, f"--c:{depth:.3f}"

    def _description(self, box: Box, width: float) -> str:
        before = self._before(box)
        return f"{box.frame.text}: {box.weight:,}, {100 * width:.2f} %, before {100 * before:.2f} %"

    def _before(self, box: Box) -> float:
        """The share that the same call path had. Each box comes before its callees."""
        if box.depth == 0:
            return 1.0
        del self._path[box.depth - 1 :]
        self._path.append(box.frame)
        return self._shares.get(tuple(self._path), 0.0)


def read_folded(path: Path) -> Stacks:
    """The stacks of a file, as --format folded writes it, and as other tools do.

    Raises:
        ImageError: a line is none of these, or there is none.
    """
    found: Stacks = {}
    for number, line in enumerate(path.read_text(errors="surrogateescape").splitlines(), 1):
        names, _, weight = line.rpartition(" ")
        if not names or not weight.isdecimal():
            shown = visible(line[:60])
            raise ImageError(f"{path}: line {number} is not a folded stack (frame;frame;frame COUNT): {shown}")
        frames = tuple(Frame(name, FrameKind.KERNEL) for name in names.split(";"))
        found[frames] = found.get(frames, 0) + int(weight)
    if not sum(found.values()):
        raise ImageError(f"{path}: there are no stacks in it")
    return found


def difference(before: Path, after: Path) -> Iterator[bytes]:
    """The picture for two files. Raises ImageError: see `read_folded`."""
    title = f"{visible(after.name)}, compared with {visible(before.name)}"
    return FlameDifference(read_folded(before), read_folded(after), title).drawn()


def _shares(stacks: Stacks) -> dict[_Path, float]:
    """The share of the total that each call path has."""
    whole, found = sum(stacks.values()), dict[_Path, float]()
    for frames, weight in stacks.items():
        for depth in range(1, len(frames) + 1):
            found[frames[:depth]] = found.get(frames[:depth], 0.0) + weight / whole
    return found
