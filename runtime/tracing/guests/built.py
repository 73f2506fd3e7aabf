"""The interface of what builds a guest: from an image and its probes to something that can be traced."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from kinst.runtime.tracing.images.plug_ins import PlugIns
from kinst.runtime.tracing.images.preparing import Prepared
from kinst.runtime.tracing.running import Traced
from kinst.targets.c_types import ImageTypes

if TYPE_CHECKING:
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


Build = Callable[[Prepared, ImageTypes, PlugIns, Callable[[str], None]], Built]  # the last argument takes warnings
