"""Functions and their tail calls -> which function was entered, and by which call, where an unwinder finds one caller.

A function that ends with a jump to another one leaves no frame. So the call that an unwinder finds may have entered a
function that then jumped to this one, and this one may have been entered again from itself. An argument is given only
if neither is possible, or if there is only one way; gdb has the same rules.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kinst.runtime.unwinding.call_instructions import CallInstructions, Leading
from kinst.targets.debuginfo.call_sites import CallingFunction, CallSite, CallSites

_MOST: Final = 256  # the most functions that are searched for one answer
_KEPT: Final = 1 << 16  # targets that are kept
_MOST_NOPS: Final = 64  # bytes of nops for patching that a function may begin with

Target = tuple[CallSite, int]  # a tail call and its target


class TailCall(NamedTuple):
    """A tail call and the function that makes it."""

    function: CallingFunction
    site: CallSite


class TailCalls:
    """The tail calls of an image. Answers are kept. All addresses are link addresses."""

    def __init__(self, sites: CallSites, instructions: CallInstructions) -> None:
        self._sites = sites
        self._instructions = instructions
        self._entered: dict[int, CallingFunction | None] = {}
        self._targets: dict[int, tuple[Target, ...] | None] = {}  # by the function's offset
        self._reenters: dict[int, bool] = {}
        self._last: dict[tuple[int, int], TailCall | None] = {}

    def entered(self, target: int) -> CallingFunction | None:
        """The function that a call to an address enters; None if no function has that address.

        With nops for patching (-fpatchable-function-entry), debug information may let the function begin after them.
        """
        if target not in self._entered:
            if len(self._entered) >= _KEPT:
                self._entered.clear()
            places = (target, *self._instructions.starts(target, _MOST_NOPS))
            found = ((place, self._sites.function_at(place)) for place in places)
            place, function = next((one for one in found if one[1] is not None), (0, None))
            self._entered[target] = function if function is not None and function.start == place else None
        return self._entered[target]

    def may_reenter(self, function: CallingFunction) -> bool:
        """Whether tail calls, of which the first is the function's own, may enter it again; also True if that is
        unknown."""
        found = self._reenters.get(function.start)
        if found is None:
            reached = self._reached(function)
            found = reached is None or any(target.offset == function.offset for _, _, target in reached)
            self._reenters[function.start] = found
        return found

    def last(self, first: CallingFunction, function: CallingFunction) -> TailCall | None:
        """The tail call that entered `function` when `first` was called; None if it is not known or there may be
        several."""
        key = first.start, function.start
        if key not in self._last:
            self._last[key] = self._only(first, function)
        return self._last[key]

    def _only(self, first: CallingFunction, function: CallingFunction) -> TailCall | None:
        found = [
            TailCall(one, site) for one, site, target in self._reached(first) or () if target.offset == function.offset
        ]
        return found[0] if len(found) == 1 else None

    def _reached(self, function: CallingFunction) -> list[tuple[CallingFunction, CallSite, CallingFunction]] | None:
        """All tail calls that may follow when a function was entered, each with its function and its target; None if
        not all of them are known."""
        waiting, known, found = [function], {function.start}, list[tuple[CallingFunction, CallSite, CallingFunction]]()
        while waiting:
            one = waiting.pop()
            targets = self._targets_of(one)
            if targets is None or len(known) > _MOST:
                return None
            for site, target in targets:
                called = self.entered(target)
                if called is None:
                    return None
                found.append((one, site, called))
                if called.start not in known:
                    known.add(called.start)
                    waiting.append(called)
        return found

    def _targets_of(self, function: CallingFunction) -> tuple[Target, ...] | None:
        if function.offset not in self._targets:
            found = list(self._resolved(function)) if function.has_all_tail_calls else [None]
            known = tuple(one for one in found if one is not None)
            self._targets[function.offset] = known if len(known) == len(found) else None
        return self._targets[function.offset]

    def _resolved(self, function: CallingFunction) -> Iterator[Target | None]:
        """The targets of a function's tail calls; None for a call whose target is not known."""
        for site in self._sites.calls_of(function).tails:
            leading = self._instruction(site)
            target = None if leading is None or leading.is_call else leading.target
            yield None if target is None else (site, target)

    def _instruction(self, site: CallSite) -> Leading | None:
        if site.at is not None:
            return self._instructions.at(site.at)
        return None if site.returns is None else self._instructions.before(site.returns)
