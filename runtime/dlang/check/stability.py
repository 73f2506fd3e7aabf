"""-x amin=name/data/class: refuse programs that use something less stable than this."""

from typing import Final

from kinst.runtime.dlang.context import CheckContext
from kinst.runtime.dlang.syntax.errors import DError, Span

_STABILITIES: Final = ("Internal", "Private", "Obsolete", "External", "Unstable", "Evolving", "Stable", "Standard")
_CLASSES: Final = ("Unknown", "CPU", "Platform", "Group", "ISA", "Common")

SYMBOL: Final = "Private/Private/Unknown"  # symbols and types of a traced image
THREAD: Final = "Stable/Private/Common"  # curthread; all other names that D defines are stable


def _levels(attributes: str) -> tuple[int, int, int] | None:
    words = attributes.split("/")
    if len(words) != 3 or not {*words[:2]} <= {*_STABILITIES} or words[2] not in _CLASSES:
        return None
    return _STABILITIES.index(words[0]), _STABILITIES.index(words[1]), _CLASSES.index(words[2])


def require(context: CheckContext, what: str, attributes: str, span: Span) -> None:
    """Compare the attributes of `what` with the option. Raises DError D_ATTR_MIN if they are less stable."""
    wanted = context.options.text("amin")
    least, known = _levels(wanted), _levels(attributes)
    if least is None or known is None:
        return
    if any(have < need for have, need in zip(known, least, strict=True)):
        text = f"attributes for {what} ({attributes}) are less than predefined minimum"
        raise DError("D_ATTR_MIN", text, span)
