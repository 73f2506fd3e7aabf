"""An image, and perhaps its debug file -> what debug information says about inlined functions, for `inline_probes`."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from kinst.targets.c_types import ImageTypes
from kinst.targets.debuginfo.debugfile import find_debug
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.debuginfo.inlined import InlineFunction, Matching
from kinst.targets.image import Image
from kinst.targets.manifest.inlined_names import InlinedName

if TYPE_CHECKING:
    from kinst.targets.debuginfo.call_sites import CallSites
    from kinst.targets.debuginfo.inline_search import InlineSearch


class DebugInlines:
    """`inline_probes.Inlines` from debug information, which is opened when a name is first looked up. Answers are
    kept."""

    def __init__(
        self,
        image: Image,
        debug_file: Path | None = None,
        *,
        with_parameters: bool = False,
        types: ImageTypes | None = None,
        remembered: Sequence[InlinedName] = (),
    ) -> None:
        """Nothing is read until a name is looked up.

        Args:
            image: the unpatched image.
            debug_file: where its debug information is, if the user says so.
            with_parameters: whether the locations of arguments are needed as well.
            types: where the types of arguments come from; by default the image.
            remembered: names that the image was patched with.
        """
        self._image = image
        self._debug_file = debug_file
        self._with_parameters = with_parameters
        self._types = types
        self.remembered = remembered
        self._found: dict[str, tuple[InlineFunction, ...]] = {}

    def find(self, name: str) -> tuple[InlineFunction, ...]:
        """Every definition of an inline function of that name. Raises ImageError if there is no debug information."""
        if name not in self._found:
            self._found[name] = self._search.find(name, with_parameters=self._with_parameters)
        return self._found[name]

    def find_matching(self, pattern: str) -> Matching:
        """Every definition of inline functions whose names match a glob."""
        return self._search.find_matching(pattern, with_parameters=self._with_parameters)

    def names(self, pattern: str) -> list[str]:
        """Names of inline functions that match a glob."""
        return self._search.names(pattern)

    @cached_property
    def call_sites(self) -> "CallSites":
        """The calls of the image. Raises ImageError if there is no debug information."""
        from kinst.targets.debuginfo.call_sites import CallSites  # here and below: pyelftools takes 30 ms

        return CallSites(self._debug)

    @cached_property
    def _search(self) -> "InlineSearch":
        from kinst.targets.debuginfo.inline_search import InlineSearch

        return InlineSearch(self._image, self._debug, types=self._types)

    @cached_property
    def _debug(self) -> DebugSections:
        return find_debug(self._image, self._debug_file)
