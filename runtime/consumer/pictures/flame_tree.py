"""Weighted stacks -> a tree of frames, laid out: the boxes of a flame graph."""

from collections.abc import Iterator
from dataclasses import field

from kinst.runtime.consumer.pictures.folded_stacks import Frame, FrameKind, Stacks
from kinst.targets.values import dataclass


@dataclass(slots=True)
class _Node:
    weight: int = 0
    children: "dict[Frame, _Node]" = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Box:
    """A frame and its position. `start` (from the left) and `weight` are in the unit that was counted; `depth` is 0 for
    the root, which has the total."""

    frame: Frame
    start: int
    weight: int
    depth: int


def boxes(stacks: Stacks, least: float) -> Iterator[Box]:
    """The boxes of all frames, each before its callees, which are in order of their names. Frames with a share of the
    total below `least` are left out."""
    root = _tree(stacks)
    pending = [(Box(Frame("all", FrameKind.KEY), 0, root.weight, 0), root)]
    while pending:
        box, node = pending.pop()
        yield box
        start, found = box.start, []
        for frame, child in sorted(node.children.items(), key=lambda item: (item[0].text, item[0].kind.value)):
            if child.weight >= least * root.weight:
                found.append((Box(frame, start, child.weight, box.depth + 1), child))
            start += child.weight
        pending += reversed(found)


def _tree(stacks: Stacks) -> _Node:
    root = _Node()
    for frames, weight in stacks.items():
        node = root
        node.weight += weight
        for frame in frames:
            node = node.children.setdefault(frame, _Node())
            node.weight += weight
    return root
