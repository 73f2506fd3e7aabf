"""A position in the tokens of one item, and which names are types there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from kinst.runtime.dlang.syntax.errors import DError, Span
from kinst.runtime.dlang.syntax.tokens import END, ERROR, NAME, TYPE_NAME, Token, syntax_error
from kinst.runtime.dlang.syntax.words import GLOBALS, TYPE_WORDS

# The greatest height of a tree, and the greatest depth of the parser's calls: every later pass recurses over the tree
# as well, and Python gives up at a thousand calls. Real programs stay below twenty.
NESTING_LIMIT: Final = 128

# A name before one of these is a variable, even if the image has a type of that name: a program that assigns a variable
# must not fail to parse because of what the traced kernel calls its types.
_AFTER_VARIABLE: Final = frozenset(("++", "--", "=", "["))
_ELABORATED: Final = ("`struct", "`union", "`enum")


class Names:
    """Which words are types: those of the image, D's own, and those that the text has declared so far."""

    def __init__(self, is_type: Callable[[str], bool]) -> None:
        self._is_type = is_type
        self._known: dict[str, bool] = {}
        self._bodies: set[str] = set()  # "struct s", "enum e": tags that the text has given a body

    def is_type(self, name: str) -> bool:
        """Whether a name is a type. The session is asked once for each name."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = name not in GLOBALS and self._is_type(name)
        return known

    def declare_type(self, name: str) -> None:
        """A typedef: its name is a type from here on."""
        self._known[name] = True

    def declare_variable(self, name: str) -> None:
        """A variable or inline, which hides a type of that name from here on."""
        self._known[name] = False

    def declare_body(self, name: str, span: Span) -> None:
        """The body of a struct, union or enum begins. Raises D_DECL_TYPERED if it already has one. libdtrace reports
        that at the `{`, before any error in the body."""
        if name in self._bodies:
            raise DError("D_DECL_TYPERED", f"type redeclared: {name}", span)
        self._bodies.add(name)


class Cursor:
    """Reads tokens one after another; `kind` is the kind of the current one."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.kind = END
        self.token = Token(END, "", Span("", 1, 1, 0, ""))
        self._tokens: list[Token] = [self.token]
        self._index = 0
        self._depth = 0

    def begin(self, tokens: list[Token]) -> None:
        """Read another item."""
        self._tokens, self._index, self._depth = tokens, 0, 0
        self.token = tokens[0]
        self.kind = self.token.kind

    def advance(self) -> Token:
        """The current token; the next one becomes current. The last one, END, stays."""
        token = self.token
        if self._index < len(self._tokens) - 1:
            self._index += 1
            self.token = self._tokens[self._index]
            self.kind = self.token.kind
        return token

    @property
    def following(self) -> Token:
        """The token after the current one."""
        return self._tokens[min(self._index + 1, len(self._tokens) - 1)]

    @property
    def previous(self) -> Token:
        """The token before the current one."""
        return self._tokens[max(self._index - 1, 0)]

    def accept(self, kind: str) -> bool:
        """Skip the current token if it is of this kind."""
        if self.kind != kind:
            return False
        self.advance()
        return True

    def expect(self, kind: str) -> Token:
        """The current token, which must be of this kind. Raises D_SYNTAX."""
        if self.kind != kind:
            raise syntax_error(self.token)
        return self.advance()

    def expect_word(self) -> Token:
        """A name, whether or not it is a type's. Raises D_SYNTAX."""
        if self.kind not in (NAME, TYPE_NAME):
            raise syntax_error(self.token)
        return self.advance()

    def expect_end(self) -> None:
        """Check that nothing is left of the item. Raises D_SYNTAX."""
        if self.kind != END:
            raise syntax_error(self.token)

    def fail(self, message: str) -> DError:
        """The error D_SYNTAX at the current token, unless the lexer found a more precise one."""
        if self.kind == ERROR:
            return syntax_error(self.token)
        return DError("D_SYNTAX", message, self.token.span)

    def is_type(self) -> bool:
        """Whether a type begins here."""
        kind = self.kind
        if kind == NAME:
            return self._is_type_name(self.token.text)
        return kind in TYPE_WORDS or kind == TYPE_NAME

    def _is_type_name(self, name: str) -> bool:
        if name.endswith(_ELABORATED):
            return True
        if not self.names.is_type(name):
            return False
        if self.following.kind in _AFTER_VARIABLE:
            self.names.declare_variable(name)
            return False
        return True

    @contextmanager
    def nested(self) -> Iterator[None]:
        """A context for parsing a construct that may contain itself. Raises D_SYNTAX if a program nests too deeply."""
        self.enter()
        try:
            yield
        finally:
            self._depth -= 1

    def enter(self) -> None:
        """Go one level deeper; for callers for whom `nested` is too slow. `leave` ends it."""
        self._depth += 1
        self.check_height(self._depth)

    def leave(self) -> None:
        """Go one level up. It need not be called after an error."""
        self._depth -= 1

    def check_height(self, height: int) -> None:
        """Raise D_SYNTAX for a tree that is too high for later passes."""
        if height > NESTING_LIMIT:
            raise self.fail("expression is nested too deeply")


def join(first: Span, last: Span) -> Span:
    """The span from `first` to `last`. If they are on several lines, only the part on the last: libdtrace reports the
    line that its lexer has reached, which is where an expression ends."""
    if first.line != last.line or first.text is not last.text or first.column > last.column:
        return last
    return Span(first.file, first.line, first.column, last.column + last.length - first.column, first.text)
