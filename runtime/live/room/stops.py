"""A kernel's code -> where its guest is stopped: before its MMU gets other tables or is turned on, and before it asks
for what it must not take."""

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import partial
from typing import Final

import numpy as np

from kinst.runtime.live.room.regime import Regime
from kinst.targets.arch.code_shape import Pattern
from kinst.targets.columns import unique
from kinst.targets.image import Image
from kinst.targets.kernels.labelled_code import labelled_code
from kinst.targets.manifest.packed import Manifest
from kinst.targets.module_code import code_of
from kinst.targets.patterns import matches
from kinst.targets.spans import Spans, covered, united
from kinst.targets.values import dataclass

_INIT: Final = (("_sinittext", "_einittext"),)
LISTING: Final = "vmalloc_init"  # Linux: where it takes over what its early code has listed as used


class Why(Enum):
    """What is about to happen at a stop."""

    LOAD = 0  # the MMU gets a root
    ENABLED = 1  # it is turned on, with roots that have been loaded before
    ENTERED = 2  # code with a jump of ours, which may run at its physical address by tables that were changed since
    LISTED = 3  # `LISTING`


@dataclass(frozen=True, slots=True)
class Stop:
    """An instruction: its link address, and its word. `is_linked`, `is_loaded`: whether it may be executed where the
    kernel maps itself, and at its physical address."""

    link: int
    word: int
    why: Why
    is_linked: bool
    is_loaded: bool


def is_hypervisor(image: Image, regime: Regime) -> bool:
    """Whether a kernel's own tables are given by the hypervisor's instruction, and the other one is for its guests.
    Linux has both, the hypervisor's for KVM alone."""
    own = regime.hypervisor_load
    return own is not None and not len(_identity(image)) and any(_matching(image, own, regime.step))


def is_listed(image: Image, regime: Regime) -> bool:
    """Whether a kernel that moves has to know what is in front of it, lest it puts modules there."""
    return regime.is_among_modules and len(_identity(image)) > 0


def stops_of(image: Image, manifest: Manifest, regime: Regime) -> Sequence[Stop]:
    """The stops of a kernel. Few of them: QEMU compares each wherever a block of code ends in a jump that has to be
    looked up."""
    own = regime.hypervisor_load if is_hypervisor(image, regime) else None
    if own is not None:
        loads = [
            Stop(link, word, Why.LOAD, is_linked=True, is_loaded=True)
            for link, word in _matching(image, own, regime.step)
        ]
        return [*loads, *_entered(manifest, loads)]
    early = _early(image)
    found = []
    for link, word in _matching(image, regime.load, regime.step):
        is_loaded = early is None or _is_in(early, link)
        found.append(Stop(link, word, Why.LOAD, is_linked=True, is_loaded=is_loaded))
    return [*found, *_enabled(image, regime), *_listed(image, regime)]


def _enabled(image: Image, regime: Regime) -> Iterator[Stop]:
    """Linux before 6.0 moves by making its tables anew while the MMU is off: no root is loaded after that."""
    identity = _identity(image)
    if regime.enable is not None and len(identity):
        for link, word in _matching(image, regime.enable, regime.step):
            if _is_in(identity, link):
                yield Stop(link, word, Why.ENABLED, is_linked=False, is_loaded=True)


def _listed(image: Image, regime: Regime) -> Iterator[Stop]:
    link = image.symbols.address_of(LISTING) if is_listed(image, regime) else None
    if link is not None:
        yield Stop(link, 0, Why.LISTED, is_linked=True, is_loaded=False)


def _entered(manifest: Manifest, loads: Sequence[Stop]) -> Iterator[Stop]:
    """The jumps on the way to a load, within its function. Xen calls that at its physical address, which it maps just
    before, in the tables that it has then as well."""
    starts, jumps = unique(manifest.functions["address"]), unique(manifest.jumps["address"])
    seen = set[int]()
    for load in loads:
        row = int(np.searchsorted(starts, load.link, "right")) - 1
        if row < 0:
            continue
        first, last = np.searchsorted(jumps, (starts[row], np.uint64(load.link))).tolist()
        seen.update(jumps[first:last].tolist())
    yield from (Stop(link, 0, Why.ENTERED, is_linked=False, is_loaded=True) for link in sorted(seen))


def _early(image: Image) -> Spans | None:
    """The code that also runs at its physical addresses; None: all of it may."""
    identity = _identity(image)
    return united(np.concatenate([identity, labelled_code(image, _INIT)])) if len(identity) else None


def _identity(image: Image) -> Spans:
    """Linux' code that turns the MMU on. No other kernel has these labels."""
    return labelled_code(image, image.facts.linux.identity)


def _is_in(spans: Spans, address: int) -> bool:
    return bool(covered(spans, np.array([address], np.uint64))[0])


def _matching(image: Image, pattern: Pattern, step: int) -> Iterator[tuple[int, int]]:
    """The instructions of a pattern: link addresses and words. Not those of code that is no part of the kernel when it
    runs, such as its hypervisor's."""
    is_apart = partial(_is_in, labelled_code(image, image.facts.linux.elsewhere))
    for region in image.code_regions:
        code = code_of(image, region)
        for at in range(0, 4, step):
            words = code[at : at + (len(code) - at) // 4 * 4].view("<u4").astype(np.uint64)
            for row in np.flatnonzero(matches(words, (pattern,))).tolist():
                address = region.address + at + 4 * row
                if not is_apart(address):
                    yield address, int(words[row])
