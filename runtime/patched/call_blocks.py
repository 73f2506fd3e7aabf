"""A tracepoint of Linux fires -> whether it really does, and its arguments.

At the place of a tracepoint is a nop. While the kernel's own tracing is on it is a jump to a block out of line, which
makes the arguments and calls the tracepoint's function with them (`kinst.targets.tracepoints`). The nop stays what it
is. When the CPU comes to it, the block is run on a copy of the machine (`SecondCpu`), as if the tracing were on, up to
that call: there the arguments are where the C ABI has them. If the block returns without a call, because a condition
of the tracepoint does not hold, the probe does not fire. A block may call a function that has the same tracepoint
itself: at that place its run continues with the block there.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from kinst.runtime.paging.walker import PageFault
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.targets.kernels.kernel_tables import words_at
from kinst.targets.static_probes import Callees, PlaceKind, StaticPlace, StaticProbe
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.patched.join_points import JoinPoints
    from kinst.runtime.patched.second_cpu import SecondCpu
    from kinst.runtime.trap.trap import Enabling, Firing
    from kinst.targets.image import Image

_LIMIT: Final = 100_000  # instructions of a block and of what it calls
_ADDRESS: Final = (1 << 64) - 1
_WORD: Final = 8
_LOST: Final = "the code that makes a tracepoint's arguments reached neither its call nor its end when it was run ahead"
NO_SECOND_CPU: Final = "a tracepoint's arguments need one of the machines of kinst-run"


@dataclass(frozen=True, slots=True)
class Block:
    """The code out of line of one place. Addresses are link addresses; the CPU may be `moved` bytes away from them."""

    address: int
    behind: int  # the next instruction
    target: int
    places: dict[int, int]  # all places of its tracepoint -> targets of their jumps
    callees: Callees


@dataclass(frozen=True, slots=True)
class _Ends:
    """Where the run of a block stops. Addresses are those at which the guest executes the code."""

    calls: frozenset[int]
    back: frozenset[int]  # it returned without a call
    places: dict[int, int]  # of the same tracepoint, from which it continues at the targets
    stops: frozenset[int]  # all of them


def _ends_of(block: Block, moved: int, called: tuple[int, ...], join_points: frozenset[int]) -> _Ends:
    calls = {function + moved & _ADDRESS for function in block.callees.functions} | {*called}
    back = {address + moved & _ADDRESS for address in (block.address, *join_points)}
    places = {place + moved & _ADDRESS: target + moved & _ADDRESS for place, target in block.places.items()}
    return _Ends(frozenset(calls), frozenset(back), places, frozenset(calls | back | places.keys()))


def block_at(probe: StaticProbe, place: StaticPlace, size: int) -> Block:
    """The block of a place whose instruction has `size` bytes."""
    assert probe.callees is not None, "places of tracepoints alone have blocks"
    places = {one.address: one.target for one in probe.places if one.kind is PlaceKind.BLOCK}
    return Block(place.address, place.address + size, place.target, places, probe.callees)


class CallBlocks:
    """Makes the enablings at places of tracepoints."""

    def __init__(self, cpu: "SecondCpu", join_points: "JoinPoints", nops: tuple[bytes, ...], image: "Image") -> None:
        """`cpu` runs the blocks; `nops` are the machine's; `image` has tracepoints' records as they are linked."""
        self._nops = nops
        self._image = image
        self._blank: dict[int, tuple[int, ...]] = {}  # by record: see `_lists`
        self._cpu = cpu
        self._join_points = join_points
        # By address of a block, how far it moved, and what it may call besides the tracepoint's functions.
        self._known: dict[tuple[int, int, tuple[int, ...]], _Ends] = {}
        self._is_lost = False  # whether the tracepoint that fires has no arguments, since its block did not end

    def enabling(self, block: Block, enabling: "Enabling") -> "Enabling":
        """`enabling` with the arguments of the function that the block calls; it fires only if the block calls it."""
        inner = enabling.argument

        def argument(firing: "Firing", index: int) -> int:
            if self._is_lost:
                raise Fault(FaultKind.ILLOP, 0, _LOST)
            frame = firing.exchange_frame(self._cpu.frame)
            try:
                return inner(firing, index)
            finally:
                firing.exchange_frame(frame)

        called = replace(enabling, argument=argument)

        def act(firing: "Firing") -> None:
            if self._calls(block, firing.site - block.address):
                firing.fire_instead(called)

        return replace(enabling, action=act)

    def _calls(self, block: Block, moved: int) -> bool:
        """Run a block. Whether it reaches the call, or neither that nor its end: then the probe fires without
        arguments."""
        cpu = self._cpu
        cpu.begin(block.target + moved & _ADDRESS, _traced(block.callees, moved))
        ends = self._ends(block, moved)
        self._is_lost = False
        for _ in ends.places:  # more turns than that would be a loop
            pc = cpu.run(ends.stops, _LIMIT)
            if pc in ends.back:
                return False
            if pc is None or pc in ends.calls:
                self._is_lost = pc is None
                return True
            if self._jumps(pc):
                return False
            cpu.go_to(ends.places[pc])
        self._is_lost = True
        return True

    def _jumps(self, place: int) -> bool:
        """Whether the kernel itself traces, so that the guest's CPU will reach a place inside the block, and fire
        there."""
        longest = max(map(len, self._nops))
        return not self._cpu.frame.load(place, longest).to_bytes(longest, "little").startswith(self._nops)

    def _word(self, address: int) -> int | None:
        """A word of guest memory; None where nothing is mapped, as before the kernel has mapped its data."""
        with suppress(PageFault):
            return self._cpu.frame.load(address & _ADDRESS, _WORD)
        return None

    def _lists(self, callees: Callees) -> tuple[int, ...]:
        """The words of a tracepoint's record that are 0 as it is linked. One of them leads to a list of tracers, once
        there are any."""
        found = self._blank.get(callees.record)
        if found is None:
            words = words_at(self._image, np.array([callees.record], np.uint64), callees.size // _WORD)[0]
            found = tuple(callees.record + _WORD * at for at in np.flatnonzero(words == 0).tolist())
            self._blank[callees.record] = found
        return found

    def _tracers(self, callees: Callees, moved: int) -> tuple[int, ...]:
        """What a block may call besides the tracepoint's own functions: the first of the guest's own tracers. A
        compiler that sees the tracepoint's function may put its loop over the list into the block. If there is no
        list, what the record begins with is called in its place: see `_traced`."""
        lists = (self._word(at + moved) for at in self._lists(callees))
        firsts = [self._word(one) for one in (callees.record + moved, *filter(None, lists))]
        key = self._word(callees.word + moved) if callees.word else None
        return tuple(filter(None, (*firsts, key)))

    def _ends(self, block: Block, moved: int) -> _Ends:
        found = self._tracers(block.callees, moved)
        ends = self._known.get((block.address, moved, found))
        if ends is None:
            join_points = self._join_points.of(block.address, block.behind, block.target, block.places)
            # Not every such word leads to a list, and Unicorn 2.1.4 stops nowhere if one place is no address of the
            # machine: seen on arm64 with what the record of a key's jump entries begins with.
            called = tuple(one for one in found if self._word(one) is not None)
            ends = self._known[block.address, moved, found] = _ends_of(block, moved, called, join_points)
        return ends


def _traced(callees: Callees, moved: int) -> Callable[[int, memoryview], None]:
    """A change of copied pages that makes a tracepoint's record say that it is traced: pointers that are null point to
    the record itself."""
    start = callees.record + moved & _ADDRESS
    words = range(start, start + callees.size, _WORD)
    content = start.to_bytes(_WORD, "little")

    def change(address: int, copy: memoryview) -> None:
        if address + len(copy) <= start or start + callees.size <= address:
            return
        for word in words:
            at = word - address
            if 0 <= at <= len(copy) - _WORD and not any(copy[at : at + _WORD]):
                copy[at : at + _WORD] = content

    return change


def no_blocks(_block: Block, enabling: "Enabling") -> "Enabling":
    """`CallBlocks.enabling` where there is no second CPU: the probe fires, and has no arguments."""

    def argument(_firing: "Firing", _index: int) -> int:
        raise Fault(FaultKind.ILLOP, 0, NO_SECOND_CPU)

    return replace(enabling, argument=argument)
