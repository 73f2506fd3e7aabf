"""Weighted stacks -> a row for each function: what was counted in it, and by whom it was called and whom it called."""

from collections import Counter
from itertools import pairwise
from typing import Any, Final

from kinst.runtime.consumer.pictures.folded_stacks import FrameKind, Stacks

_FUNCTIONS: Final = 3000  # in a page: those in which most was counted
_NEIGHBOURS: Final = 100  # of each


def callers_and_callees(stacks: Stacks) -> list[list[Any]]:
    """[function, in itself, with what it called, [[caller, count], ...], [[callee, count], ...]], the most first.

    A function that is several times in a stack counts once; so does a call.
    """
    own, whole = Counter[str](), Counter[str]()
    callers, callees = dict[str, Counter[str]](), dict[str, Counter[str]]()
    for frames, weight in stacks.items():
        names = [frame.text for frame in frames if frame.kind is not FrameKind.KEY]
        if not names:
            continue
        own[names[-1]] += weight
        for name in dict.fromkeys(names):
            whole[name] += weight
        for caller, callee in dict.fromkeys(pairwise(names)):
            callers.setdefault(callee, Counter())[caller] += weight
            callees.setdefault(caller, Counter())[callee] += weight
    return [
        [name, own[name], total, _most(callers.get(name)), _most(callees.get(name))]
        for name, total in whole.most_common(_FUNCTIONS)
    ]


def _most(neighbours: "Counter[str] | None") -> list[list[Any]]:
    return [] if neighbours is None else [list(one) for one in neighbours.most_common(_NEIGHBOURS)]
