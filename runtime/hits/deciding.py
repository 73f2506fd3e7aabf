"""What the probes of an image do -> how the hits of each of its sites are delivered, as columns.

A site has the dearest delivery that one of its probes needs. It is dispatched if the engine cannot tell all that
matters: whether a function is left, an argument in memory, what a displaced instruction does at its own address.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.hits.actions import Reads
from kinst.runtime.trap.delivery import Delivery, Way
from kinst.runtime.trap.trap import registers_unknown
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.instruction import Flow, Verdict
from kinst.targets.manifest.packed import Manifest, Method, ProbeKind
from kinst.targets.values import dataclass

ArgumentRegisters = Callable[[int], Sequence[int] | None]  # see `Enabling.registers`
_CALLS: Final = (Flow.CALL, Flow.INDIRECT_CALL)
_COUNTABLE: Final = (ProbeKind.KINST, ProbeKind.FBT_ENTRY)  # they fire whenever control reaches their site
_REASONS: Final = (
    "",
    "nothing is enabled there",
    "a provider examines each hit there",
    "a static probe is there",
    "a function is left there by a jump, or may be",
    "an argument there is not in a register",
    "the displaced instruction there depends on its own address",
)
_NOTHING, _PLANTED, _STATIC, _TAIL, _ARGUMENT, _DISPLACED = range(1, len(_REASONS))


@dataclass(frozen=True, slots=True)
class ProbeActions:
    """What the probes of an image do. Rows are those of its manifest's probes."""

    deliveries: Sequence[Delivery]  # by number of an action
    reads: Sequence[Reads]  # of each
    of: NDArray[np.uint32]  # the action's number by row; 0: none
    planted: Sequence[int]  # rows at which a provider is called
    registers: Mapping[int, ArgumentRegisters]  # by ProbeKind

    def ways(self) -> NDArray[np.uint8]:
        """How each probe's hits may be delivered."""
        ways = np.array([one.way for one in self.deliveries], np.uint8)[self.of]
        ways[list(self.planted)] = Way.DISPATCH
        return ways

    def is_active(self) -> NDArray[np.bool_]:
        """Whether anything happens at each probe."""
        active: NDArray[np.bool_] = self.of != 0
        active[list(self.planted)] = True
        return active

    def arguments(self, kinds: NDArray[np.uint8]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """For probes of these kinds: whether one reads an argument that is not in registers; and whether no register
        is read, because the arguments do not exist and are always 0."""
        in_memory, nowhere = np.zeros(len(kinds), np.bool_), np.zeros(len(kinds), np.bool_)
        for number, reads in enumerate(self.reads):
            for kind in np.unique(kinds).tolist() if reads.arguments else ():
                registers = self.registers.get(kind, registers_unknown)
                places = [registers(index) for index in reads.arguments]
                here = (self.of == number) & (kinds == kind)
                in_memory |= here & (None in places)
                nowhere |= here & (not reads.registers and not any(place is None or place for place in places))
        return in_memory, nowhere


class Displaced:
    """After which displaced instructions the engine can resume the CPU without Python."""

    def __init__(self, arch: ArchFacts, method: str, *, reaches: bool) -> None:
        """`reaches`: whether a jump reaches from the trampolines to the code."""
        kinds, flows = np.arange(256), np.arange(max(Flow) + 1)
        is_out_of_line, is_call = np.isin(kinds, [int(kind) for kind in arch.out_of_line]), np.isin(flows, _CALLS)
        known = np.isin(kinds, [int(kind) for kind in (*arch.control_only, *arch.movable)]) | is_out_of_line
        # In a trampoline that ends with a breakpoint a call would link to the trampoline, not to the site. Where
        # trampolines jump back, `moved_trampoline` pushes the return address as a constant.
        stays = (is_call & (arch.return_breakpoint is not None))[None, :]
        if not reaches:  # a branch out of line has one jump for each way that it can go
            stays = stays | (is_out_of_line[:, None] & (flows == Flow.BRANCH))
        self._goes_on = known[:, None] & ~stays
        self._is_emulable = np.isin(kinds, [int(kind) for kind in arch.emulable]) & (method == Method.EMULATE)

    def holds(self, verdict: NDArray[np.uint8], kind: NDArray[np.uint8], flow: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Whether Python must compute what each instruction does; of one with numbers in place of arrays."""
        held: NDArray[np.bool_] = ((verdict == Verdict.EMULATE) | self._is_emulable[kind]) & ~self._goes_on[kind, flow]
        return held


class SiteDeliveries:
    """The deliveries of all sites of an image."""

    def __init__(
        self,
        manifest: Manifest,
        actions: ProbeActions,
        displaced: Displaced,
        begins: Callable[[NDArray[np.bool_]], NDArray[np.bool_]] | None = None,
    ) -> None:
        """`begins` gives for sites that only count whether they can be counted where blocks begin; None: none can."""
        record, probes = manifest.sites, manifest.probes
        self._displaced = displaced
        self._reasons = (*_REASONS, *(one.why for one in actions.deliveries))
        is_active = actions.is_active()[manifest.enablings["probe"]]
        enablings = manifest.enablings[is_active]
        site, probe = enablings["site"], enablings["probe"]
        kind = probes["kind"][probe]
        # Per enabling at first. The reasons of actions are numbered after those of sites.
        ways, whys = actions.ways()[probe], actions.of[probe].astype(np.int64) + len(_REASONS)
        whys[np.isin(probe, list(actions.planted))] = _PLANTED
        is_return = kind == ProbeKind.FBT_RETURN
        in_memory, nowhere = actions.arguments(probes["kind"])
        ways[nowhere[probe] & (ways == Way.RECORD)] = Way.COUNT  # all records would be alike
        for against, why in (
            (kind == ProbeKind.SDT, _STATIC),
            (is_return & (record["flow"][site] != Flow.RETURN), _TAIL),
            (in_memory[probe], _ARGUMENT),
        ):
            _dispatch(ways, whys, against, why)
        # A site with several probes is assigned several times, and the last assignment of an index counts.
        dearest_last = np.argsort(ways, kind="stable")
        self._ways = np.full(len(record), Way.DISPATCH, np.uint8)
        self._whys = np.full(len(record), _NOTHING, np.int64)
        self._ways[site[dearest_last]], self._whys[site[dearest_last]] = ways[dearest_last], whys[dearest_last]
        self._has_return = np.zeros(len(record), np.bool_)
        self._has_return[site[is_return]] = True
        counts = self._ways == Way.COUNT
        counts[site[~np.isin(kind, _COUNTABLE)]] = False  # one such probe is enough to need the breakpoint
        self.is_at_block = np.zeros(len(record), np.bool_) if begins is None else begins(counts)
        # What the guest writes itself is not known yet: `of` decides it.
        held = displaced.holds(record["verdict"], record["kind"], record["flow"])
        _dispatch(self._ways, self._whys, held & ~manifest.is_deferred, _DISPLACED)

    def of(self, row: int, written: np.void | None = None) -> Delivery:
        """The delivery of one site with a breakpoint. `written`: what the guest wrote there (SITE), if it did."""
        way, why = int(self._ways[row]), int(self._whys[row])
        if written is not None and way != Way.DISPATCH:
            if self._has_return[row] and written["flow"] != Flow.RETURN:
                way, why = Way.DISPATCH, _TAIL
            elif self._displaced.holds(written["verdict"], written["kind"], written["flow"]):
                way, why = Way.DISPATCH, _DISPLACED
        return Delivery(Way(way), self._reasons[why])

    def counted(self, wanted: NDArray[np.bool_]) -> list[tuple[Delivery, int]]:
        """The deliveries of the wanted sites, and how many sites have each; in the order of ways, the most first."""
        ways = np.where(self.is_at_block, Way.BLOCK, self._ways)[wanted]
        whys = np.where(ways == Way.DISPATCH, self._whys[wanted], 0)
        found: dict[Delivery, int] = {}
        pairs, counts = np.unique(np.stack([ways, whys]), axis=1, return_counts=True)
        for way, why, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
            delivery = Delivery(Way(way), self._reasons[why])
            found[delivery] = found.get(delivery, 0) + count
        return sorted(found.items(), key=lambda one: (one[0].way, -one[1], one[0].why))


def _dispatch(ways: NDArray[np.uint8], whys: NDArray[np.int64], against: NDArray[np.bool_], why: int) -> None:
    """Dispatch the rows of `against` that are not dispatched yet: the first reason is the one that is shown."""
    new = against & (ways != Way.DISPATCH)
    ways[new], whys[new] = Way.DISPATCH, why
