"""Several images in a machine: which of them has the code at an address, and what is known about it there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from kinst.runtime.clauses.guest.symbols import ImageSymbols
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.targets.elf.header import PT_LOAD

if TYPE_CHECKING:
    from kinst.rewriter.program import Program
    from kinst.runtime.clauses.guest.moved_image import MovedImage
    from kinst.runtime.machine.loading.loaded import Loaded
    from kinst.runtime.unwinding.frame_rules import CallerRule, FrameRules
    from kinst.runtime.unwinding.unwind import Rule
    from kinst.targets.image import Image

Observe = Callable[[int], int | None]  # a virtual address -> the physical one


@dataclass(frozen=True)
class PlacedImage:
    """One image, from when it has arrived on."""

    original: "Image"  # without patches
    program: "Callable[[], Program]"
    loaded: "Loaded"
    moved: "MovedImage"
    rules: "FrameRules"

    @cached_property
    def symbols(self) -> ImageSymbols:
        """Its names. They are asked for once it has arrived."""
        return ImageSymbols(
            self.original,
            lambda: self.program().functions,
            bias=self.loaded.bias,
            moved=self.moved.original,
            follows_call=self.rules.unwinder.follows_call,
        )

    def locate(self, link: int, site: int) -> int:
        """Where what was linked at `link` is now, for the code at `site`. Raises Fault: nowhere."""
        if not self.loaded.segments:
            raise Fault(FaultKind.BADADDR, link, f"{self.original.module} is not in memory")
        return self.moved.locate(link, site)

    def link_address(self, address: int) -> int:
        """Where the code at an address in one of its copies was linked."""
        return self.moved.original(address) - self.loaded.bias

    def has(self, address: int) -> bool:
        """Whether it is, or was, loaded at a virtual address."""
        return any(address - self.loaded.bias in span for span in self._spans)

    def has_copied(self, address: int) -> bool:
        """Whether a copy that it made of itself is there."""
        original = self.moved.original(address)
        return original != address and self.has(original)

    def at_physical(self, physical: int) -> int | None:
        """The virtual address of what it has at a physical one."""
        for virtual, start, size in self.loaded.segments:
            if 0 <= physical - start < size:
                return physical - start + virtual
        return None

    @cached_property
    def _spans(self) -> tuple[range, ...]:
        loads = (one for one in self.original.segments if one.kind == PT_LOAD and one.size)
        return tuple(range(one.address, one.address + one.size) for one in loads)


class PlacedImages:
    """All of them."""

    def __init__(self, images: Sequence[PlacedImage], observe: Observe) -> None:
        """The first is the one that the machine began with."""
        self._images, self._observe = images, observe

    @property
    def arrived(self) -> list[PlacedImage]:
        """Those that are, or were, in memory."""
        return [one for one in self._images if one.loaded.has_arrived]

    @property
    def is_single(self) -> bool:
        """Whether there is one only."""
        return len(self._images) == 1

    @property
    def locators(self) -> dict[str, Callable[[int, int], int]]:
        """Where what was linked at an address is now, for the code at another: of all but the first, by module."""
        return {one.original.module: one.locate for one in self._images[1:]}

    def of(self, address: int) -> "tuple[PlacedImage, int] | None":
        """The only image that has, or had, an address, and the address in it; None if there is none, or if there were
        several, one after the other."""
        here = [one for one in self.arrived if one.has(address)]
        if len(here) > 1:
            return None
        if here and not here[0].loaded.has_lost(address):
            return here[0], address
        copied = None if here else next((one for one in self.arrived if one.has_copied(address)), None)
        if copied is not None:
            return copied, address
        alias = self._alias(address)
        if here:
            return (here[0], address) if alias is None else None
        return alias

    def _alias(self, address: int) -> "tuple[PlacedImage, int] | None":
        """The image that was loaded at the physical address, and the address to which it maps itself."""
        physical = self._observe(address)
        if physical is None:
            return None
        found = ((one, one.at_physical(physical)) for one in self.arrived)
        return next(((one, at) for one, at in found if at is not None and at != address), None)


class PlacedSymbols:
    """The names of addresses in any of the images; implements `kinst.runtime.clauses.environment.Symbols`."""

    def __init__(self, images: PlacedImages) -> None:
        self._images = images

    def object_start(self, address: int, kind: str) -> int:
        """See `Symbols`."""
        found = self._images.of(address)
        return address if found is None else found[0].symbols.object_start(found[1], kind)

    def describe(self, address: int, kind: str) -> str:
        """See `Symbols`. An address that two images had, one after the other, is shown as it is."""
        found = self._images.of(address)
        return f"{address:#x}" if found is None else found[0].symbols.describe(found[1], kind)


class PlacedRules:
    """How to unwind code of any of the images; implements `kinst.runtime.unwinding.frame_rules.Rules`."""

    def __init__(self, images: PlacedImages) -> None:
        self._images = images

    def _at(self, address: int) -> "list[FrameRules]":
        return [one.rules for one in self._images.arrived if not one.loaded.has_lost(address)]

    def here(self, address: int) -> "Rule | None":
        """See `Rules`."""
        return next(filter(None, (rules.here(address) for rules in self._at(address))), None)

    def caller(self, address: int) -> "CallerRule | None":
        """See `Rules`."""
        return next(filter(None, (rules.caller(address) for rules in self._at(address))), None)

    def is_start(self, address: int) -> bool:
        """See `Rules`."""
        return any(rules.is_start(address) for rules in self._at(address))
