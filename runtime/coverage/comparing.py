"""The coverage of two runs -> what differs between them: functions, counts, and the order in which functions began."""

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from kinst.runtime.consumer.pictures.flame_difference import FlameDifference
from kinst.runtime.consumer.pictures.folded_stacks import Frame, FrameKind, Stacks
from kinst.runtime.coverage.call_parting import CallParting, call_partings
from kinst.runtime.coverage.document import Coverage, Function, Granularity
from kinst.targets.errors import ImageError
from kinst.targets.values import dataclass
from kinst.targets.visible import visible

_SHOWN: Final = 40  # lines of a list in text


@dataclass(frozen=True, slots=True)
class Counted:
    """A function, how often each run called it, and how many of its instructions and blocks each executed."""

    name: str  # module`function
    runs: tuple[int, int]
    executed: tuple[int, int]  # both 0 if one run counted calls alone
    blocks: tuple[int, int] = (0, 0)  # both 0 if no blocks were listed


@dataclass(frozen=True, slots=True)
class Parting:
    """Where the runs part: they begin the same functions up to `number`, the last of which is `before` (empty: none),
    and then one begins a function for the first time, and the other another one, or none more (empty)."""

    number: int
    before: str
    then: tuple[str, str]


@dataclass(frozen=True, slots=True)
class RunDifference:
    """What differs. A function that only one run called is in no other list."""

    only: tuple[tuple[Counted, ...], tuple[Counted, ...]]
    counts: tuple[Counted, ...]
    parting: Parting | None
    same: int  # functions that both called equally often
    skipped: int  # functions of which one run could not count all
    calls: tuple[CallParting, ...] | None = None  # where the order of all calls parts; None: it is not known of both

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return not (*self.only[0], *self.only[1], *self.counts, *(self.calls or ())) and self.parting is None


def compared(first: Coverage, second: Coverage) -> RunDifference:
    """Compare two runs. Functions are the same by module and name; of several of a name the first is the first.

    Raises ImageError: the order of calls of one is damaged.
    """
    one, other = _named(first), _named(second)
    has_blocks = first.granularity is second.granularity is Granularity.BLOCKS
    skipped = {*_uncounted(first), *_uncounted(second)}
    names = [name for name in {**one, **other} if name not in skipped]
    both = [_counted(name, one.get(name), other.get(name), has_blocks=has_blocks) for name in names]
    only = [tuple(sorted((found for found in both if found.name not in b), key=_by_weight)) for b in (other, one)]
    shared = [found for found in both if found.name in one and found.name in other]
    counts = sorted((found for found in shared if _differs(found)), key=_by_weight)
    parting = _parting(_order(one), _order(other)) if first.has_order and second.has_order else None
    found = (only[0], only[1]), tuple(counts), parting, len(shared) - len(counts), len(skipped)
    return RunDifference(*found, call_partings(first, second))


def _differs(found: Counted) -> bool:
    return found.runs[0] != found.runs[1] or found.executed[0] != found.executed[1]


def _by_weight(found: Counted) -> tuple[int, str]:
    return -abs(found.runs[0] - found.runs[1]), found.name


def _named(coverage: Coverage) -> dict[str, Function]:
    functions = (one for image in coverage.images for one in image.functions)
    return {name: one for name, one in zip(coverage.names, functions, strict=True) if one.rank}


def _uncounted(coverage: Coverage) -> Iterator[str]:
    """The functions of which code could not be counted."""
    starts = [np.array(sorted(at for at, _ in image.unknown), np.uint64) for image in coverage.images]
    pairs = zip(coverage.images, starts, strict=True)
    functions = ((one, unknown) for image, unknown in pairs for one in image.functions)
    for name, (one, unknown) in zip(coverage.names, functions, strict=True):
        low, high = np.searchsorted(unknown, np.array([one.address, one.address + one.size], np.uint64)).tolist()
        if low < high:
            yield name


def _counted(name: str, one: Function | None, other: Function | None, *, has_blocks: bool) -> Counted:
    knows = all(found.instructions for found in (one, other) if found)  # else one run counted calls alone
    runs, executed = ((found.runs, found.executed if knows else 0) if found else (0, 0) for found in (one, other))
    blocks = [sum(block.runs > 0 for block in found.blocks) if found and has_blocks else 0 for found in (one, other)]
    return Counted(name, (runs[0], executed[0]), (runs[1], executed[1]), (blocks[0], blocks[1]))


def _order(found: dict[str, Function]) -> list[str]:
    return sorted(found, key=lambda name: (name.partition("`")[0], found[name].rank))


def _parting(one: list[str], other: list[str]) -> Parting | None:
    pairs = enumerate(zip(one, other, strict=False))
    number = next((at for at, pair in pairs if pair[0] != pair[1]), min(len(one), len(other)))
    if number == len(one) == len(other):
        return None
    then = tuple(names[number] if number < len(names) else "" for names in (one, other))
    return Parting(number, one[number - 1] if number else "", (then[0], then[1]))


def text_lines(found: RunDifference, names: tuple[str, str]) -> Iterator[str]:
    """The difference in words. `names` are those of the runs."""
    for name, only in zip(names, found.only, strict=True):
        yield from _list(f"only {name} called {len(only):,} functions:", only) if only else ()
    if found.counts:
        yield from _list(f"{len(found.counts):,} functions differ in what they did:", found.counts)
    if found.parting is not None:
        yield _parted(found.parting, names)
    for one in found.calls or ():
        yield from _calls_parted(one, names)
    if found.skipped:
        yield f"{found.skipped:,} functions are left out: one of the runs could not count all of their code"
    yield f"{found.same:,} functions did the same" + ("" if found.is_same else " in both")


def _list(title: str, rows: tuple[Counted, ...]) -> Iterator[str]:
    yield title
    for one in rows[:_SHOWN]:
        calls = f"{one.runs[0]:,} and {one.runs[1]:,} calls"
        reached = f", {one.executed[0]:,} and {one.executed[1]:,} instructions reached" if any(one.executed) else ""
        blocks = f" in {one.blocks[0]:,} and {one.blocks[1]:,} blocks" if any(one.blocks) else ""
        yield f"  {visible(one.name)}: {calls}{reached}{blocks}"
    if len(rows) > _SHOWN:
        yield f"  and {len(rows) - _SHOWN:,} more (--format json has all)"


def _parted(parting: Parting, names: tuple[str, str]) -> str:
    then = [visible(one) or "no other" for one in parting.then]
    last = f"after {parting.number:,} functions, the last of them {visible(parting.before)}"
    where = last if parting.number else "at once"
    return (
        f"the order in which functions first ran parts {where}: {names[0]} then calls {then[0]}, {names[1]} {then[1]}"
    )


def _calls_parted(one: CallParting, names: tuple[str, str]) -> Iterator[str]:
    yield f"the calls of CPU {one.cpu} part after {one.number:,}:"
    if one.before:
        yield f"  both call {_chain(one.before)}"
    for name, then in zip(names, one.then, strict=True):
        yield f"  then {name} calls {_chain(then) if then else 'nothing more'}"


def _chain(calls: tuple[str, ...]) -> str:
    return ", ".join(map(visible, calls))


def json_text(found: RunDifference) -> str:
    """The difference as a JSON document."""
    shown: dict[str, Any] = {
        "same": found.is_same,
        "only_first": [_row(one) for one in found.only[0]],
        "only_second": [_row(one) for one in found.only[1]],
        "counts": [_row(one) for one in found.counts],
        "equal": found.same,
        "left_out": found.skipped,
        "order": None,
    }
    if found.parting is not None:
        shown["order"] = {
            "equal": found.parting.number,
            "before": found.parting.before,
            "then": list(found.parting.then),
        }
    shown["calls"] = None if found.calls is None else [_row_of_calls(one) for one in found.calls]
    return json.dumps(shown)


def _row_of_calls(one: CallParting) -> dict[str, Any]:
    then = [list(names) for names in one.then]
    return {"cpu": one.cpu, "equal": one.number, "before": list(one.before), "then": then}


def _row(one: Counted) -> dict[str, Any]:
    return {"function": one.name, "runs": list(one.runs), "executed": list(one.executed), "blocks": list(one.blocks)}


def picture(first: Coverage, second: Coverage, title: str) -> Iterator[bytes]:
    """A flame graph of the second run, as SVG: modules, and in them functions as wide as the instructions that they
    executed; red is a larger part of all than in the first. Raises ImageError: nothing ran in one of them."""
    stacks = [_stacks(one) for one in (first, second)]
    if not all(stacks):
        raise ImageError("there is no picture: in one of the runs nothing ran")
    return FlameDifference(stacks[0], stacks[1], title).drawn()


def _stacks(coverage: Coverage) -> Stacks:
    found: Stacks = {}
    for image in coverage.images:
        for one in image.ran:
            weight = sum(block.runs * block.instructions for block in one.blocks) or one.runs
            frames = Frame(image.module, FrameKind.KEY), Frame(one.name, FrameKind.KERNEL)
            if weight:
                found[frames] = found.get(frames, 0) + weight
    return found
