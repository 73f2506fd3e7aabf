"""The types of an image, and those of other images in the same machine."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kinst.targets.c_types import CType, EnumType, Function, ImageTypes, Symbol


class BesideTypes:
    """`ImageTypes` of several images. Without a module the first one's count, then those of the others in turn."""

    def __init__(self, first: "ImageTypes", others: "Mapping[str, ImageTypes]") -> None:
        """`others` by module."""
        self._first = first
        # What D can write without quotes, too.
        self._others = {spelt: one for name, one in others.items() for spelt in (name, name.replace("-", "_"))}

    def _of(self, module: str) -> "list[ImageTypes]":
        if module in self._others:
            return [self._others[module]]
        return [self._first] if module else [self._first, *dict.fromkeys(self._others.values())]

    def type_named(self, name: str, module: str = "") -> "CType | None":
        """See `ImageTypes`, as for all that follows."""
        found = (
            one.type_named(name) if one is not self._first else one.type_named(name, module) for one in self._of(module)
        )
        return next((one for one in found if one is not None), None)

    def enumerator(self, name: str) -> "tuple[EnumType, int] | None":
        """See `ImageTypes`."""
        return next(filter(None, (one.enumerator(name) for one in self._of(""))), None)

    def symbol(self, name: str, module: str = "") -> "Symbol | None":
        """See `ImageTypes`."""
        found = (one.symbol(name, module if one is self._first else "") for one in self._of(module))
        return next(filter(None, found), None)

    def function(self, name: str, module: str = "") -> "Function | None":
        """See `ImageTypes`."""
        found = (one.function(name, module if one is self._first else "") for one in self._of(module))
        return next(filter(None, found), None)

    def symbols(self) -> "Iterator[Symbol]":
        """See `ImageTypes`."""
        return chain.from_iterable(one.symbols() for one in self._of(""))

    def obstacle(self) -> str:
        """See `ImageTypes`."""
        return next(filter(None, (one.obstacle() for one in self._of(""))), "")

    def sources(self) -> "Iterator[str]":
        """See `ImageTypes`."""
        return chain.from_iterable(one.sources() for one in self._of(""))
