"""The coverage of two runs of the same images -> that of both together."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from kinst.runtime.coverage.document import Block, Coverage, CoveredImage, Function
from kinst.targets.errors import ImageError


def merged(first: Coverage, second: Coverage, *, has_others: bool = False) -> Coverage:
    """The sum. Functions come in the order of the first run, then those that only the second called in its order. With
    `has_others`, an image of the same name with other code is another image. The order of calls is that of no run: the
    sum has none.

    Raises ImageError: they list different things, or an image has other code (without `has_others`) or other functions
    in one than in the other.
    """
    if first.granularity is not second.granularity:
        listed = f"{first.granularity.value} in one, and {second.granularity.value} in the other"
        raise ImageError(f"{listed}: give both runs the same --coverage-of")
    others = {(one.module, one.digest): one for one in second.images}
    same = {one.module for one in first.images} & {one.module for one in second.images}
    images = []
    for one in first.images:
        other = others.pop((one.module, one.digest), None)
        if other is None and one.module in same and not has_others:
            raise ImageError(f"{one.module}: the runs are of different images of that name")
        images.append(one if other is None else _image(one, other))
    runs, outside = first.runs + second.runs, max(first.outside, second.outside)
    has_order = first.has_order and second.has_order
    return Coverage(first.granularity, runs, (*images, *others.values()), outside, has_order=has_order)


def _image(one: CoveredImage, other: CoveredImage) -> CoveredImage:
    if [(f.name, f.address, f.size) for f in one.functions] != [(f.name, f.address, f.size) for f in other.functions]:
        raise ImageError(f"{one.module}: the runs had different names for it (--symbols, --debug-file)")
    ranked = _ranks(one.functions, other.functions)
    pairs = zip(one.functions, other.functions, ranked, strict=True)
    functions = tuple(_function(first, second, rank) for first, second, rank in pairs)
    unknown = _elsewhere([(at, size, 1) for at, size in (*one.unknown, *other.unknown)])
    return replace(
        one,
        functions=functions,
        elsewhere=_elsewhere((*one.elsewhere, *other.elsewhere)),
        unknown=tuple((at, size) for at, size, _ in unknown),
    )


def _ranks(first: Sequence[Function], second: Sequence[Function]) -> list[int]:
    """The order of both: 0 for what ran in neither."""
    pairs = [(one.rank, other.rank, row) for row, (one, other) in enumerate(zip(first, second, strict=True))]
    order = sorted((not one, one or other, row) for one, other, row in pairs if one or other)
    found = [0] * len(pairs)
    for rank, (_, _, row) in enumerate(order, 1):
        found[row] = rank
    return found


def _function(one: Function, other: Function, rank: int) -> Function:
    if not one.rank or not other.rank:
        return replace(one if one.rank else other, rank=rank)
    instructions = max(one.instructions, other.instructions)
    if not one.blocks or not other.blocks:
        executed, blocks = max(one.executed, other.executed), one.blocks or other.blocks
    else:
        blocks = tuple(_refined(one.blocks, other.blocks))
        executed = sum(block.instructions for block in blocks if block.runs)
    runs = one.runs + other.runs
    return Function(one.name, one.address, one.size, max(instructions, executed), executed, runs, rank, blocks)


def _refined(one: Sequence[Block], other: Sequence[Block]) -> Iterator[Block]:
    """Blocks that are in one of each. A block's index says how many instructions are before it in the function, so that
    the parts of a block that the other list divides have known numbers."""
    index: dict[int, int] = {}
    for block in (*one, *other):
        index[block.offset] = block.index
        index.setdefault(block.offset + block.size, block.index + block.instructions)
    points = sorted(index)
    for start, end in pairwise(points):
        parts = [block for block in (_at(one, start), _at(other, start)) if block is not None]
        instructions = index[end] - index[start]
        if parts and instructions > 0:
            yield Block(start, end - start, index[start], instructions, sum(block.runs for block in parts))


def _at(blocks: Sequence[Block], offset: int) -> Block | None:
    row = bisect_right(blocks, offset, key=lambda block: block.offset) - 1
    return blocks[row] if row >= 0 and offset < blocks[row].offset + blocks[row].size else None


def _elsewhere(parts: Sequence[tuple[int, int, int]]) -> tuple[tuple[int, int, int], ...]:
    """What ran in no function, added up."""
    changes: dict[int, int] = {}
    for start, size, runs in parts:
        changes[start] = changes.get(start, 0) + runs
        changes[start + size] = changes.get(start + size, 0) - runs
    points, runs, found = sorted(changes), 0, []
    for start, end in pairwise(points):
        runs += changes[start]
        if runs:
            found.append((start, end - start, runs))
    return tuple(found)
