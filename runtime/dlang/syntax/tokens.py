"""Tokens: the lexer's output and the parser's input."""

from typing import Final, NamedTuple

from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError, Span

# Kinds of tokens; a keyword's or an operator's kind is its text.
NAME: Final = "name"
TYPE_NAME: Final = "type name"  # a name that can only be a type
LITERAL: Final = "literal"
AGGREGATION: Final = "aggregation"
DESCRIPTION: Final = "description"
END_OF_PREDICATE: Final = "end of predicate"
END: Final = "end"
ERROR: Final = "error"

_LOOPS: Final = ("do", "for", "while")
_NO_LOOPS: Final = (
    ": D has no loops, so that each clause ends; what is to happen again is a clause at a probe, such as tick-1ms"
)
_LONGEST: Final = 80  # characters of a token that messages repeat


class Token(NamedTuple):
    """One token. `value` is a constant's node, or the lexer's error, which is raised when the parser gets there: an
    earlier token may be wrong as well."""

    kind: str
    text: str
    span: Span
    value: tree.Expression | DError | None = None


def syntax_error(token: Token) -> DError:
    """The error for a token that does not fit. If the lexer found an error in it, that one is returned: it is more
    precise."""
    if isinstance(token.value, DError):
        return token.value
    span = token.span
    written = span.text[span.column - 1 : span.column - 1 + span.length] or token.text
    if len(written) > _LONGEST:
        written = f"{written[:_LONGEST]}..."
    near = "end of input" if token.kind == END else f'"{written}"'
    why = _NO_LOOPS if token.kind != END and token.text in _LOOPS else ""
    return DError("D_SYNTAX", f"syntax error near {near}{why}", span)
