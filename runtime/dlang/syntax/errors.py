"""An error of a D program: one of libdtrace's tags, a message, and a place."""

from kinst.targets.errors import KinstError
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a program: 1-based line and column of its first character, and how many characters it has.

    `file` is what `#line` or the preprocessor said, empty for the program's own text; `text` is the source line as
    written, empty where it is not known.
    """

    file: str
    line: int
    column: int
    length: int
    text: str


class DError(KinstError):
    """An error of a D program. `tag` is one of libdtrace's D_ tags (docs/facts/dlang.md, Error tags)."""

    def __init__(self, tag: str, message: str, span: Span | None = None) -> None:
        super().__init__(message)
        self.tag = tag
        self.message = message
        self.span = span
