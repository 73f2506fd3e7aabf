"""The interface of what builds a guest: from an image and its probes to something that can be traced."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from kinst.runtime.providers.host import ImageHost
from kinst.runtime.providers.provider import Provider
from kinst.runtime.tracing.images.plug_ins import PlugIns
from kinst.runtime.tracing.images.preparing import Prepared
from kinst.runtime.tracing.running import Traced
from kinst.targets.c_types import ImageTypes
from kinst.targets.image import Image

if TYPE_CHECKING:
    from kinst.runtime.coverage.document import Coverage
    from kinst.runtime.tracing.programs.inline_clauses import InlineClauses


class Built(Traced, Protocol):
    """An image with probes in a machine: ours, or a Qiling object of the caller."""

    @property
    def prepared(self) -> Prepared:
        """What was decided before it was built."""
        ...

    @property
    def inlines(self) -> "InlineClauses | None":
        """What descriptions of inlined copies mean; None: they mean nothing in this machine."""
        ...


@runtime_checkable
class MakesProviders(Protocol):
    """What builds a guest in which the installed providers cannot work."""

    def providers(
        self, host: ImageHost, is_wanted: Callable[[str], bool], descriptions: Sequence[str]
    ) -> Iterable[Provider]:
        """Those of its own that are wanted by descriptions of four fields, or identifiers."""
        ...


class Counting(Protocol):
    """What counts what runs."""

    def coverage(self) -> "Coverage":
        """What ran so far. Raises KinstError: an image cannot be read any more."""
        ...


@runtime_checkable
class CountsCode(Protocol):
    """A guest of which it may be counted what runs."""

    @property
    def covering(self) -> Counting | None:
        """What does; None: nothing."""
        ...

    @property
    def prepared(self) -> Prepared:
        """See `Built`."""
        ...


Covered = tuple[Counting, Image]  # and the image, without patches

Build = Callable[[Prepared, ImageTypes, PlugIns, Callable[[str], None]], Built]  # the last argument takes warnings
