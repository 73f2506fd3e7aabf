"""Tokens -> expressions: C's, with D's additions."""

from typing import Final, Protocol

from kinst.runtime.dlang.syntax import tokens, tree
from kinst.runtime.dlang.syntax.cursor import NESTING_LIMIT, Cursor, join
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.syntax.tokens import Token, syntax_error
from kinst.runtime.dlang.syntax.words import KEYWORDS

# From the loosest to the tightest, as in libdtrace's dt_grammar.y: C's, with D's logical ^^ between || and &&.
_LEVELS: Final = (
    ("||",),
    ("^^",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
BINDING: Final = {operator: level for level, operators in enumerate(_LEVELS, 1) for operator in operators}
_ASSIGNMENTS: Final = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "^=", "|=", "<<=", ">>="))
_PREFIXES: Final = frozenset(("+", "-", "!", "~", "*", "&", "++", "--", "sizeof", "stringof", "("))
_POSTFIXES: Final = frozenset(("(", "[", ".", "->", "++", "--"))


class TypeNames(Protocol):
    """What reads the types in expressions: `parse_declarations.Declarations`."""

    def type_name(self) -> tree.TypeName:
        """A type as it is written in casts and sizeof."""
        ...


class Expressions:
    """Parses expressions at a cursor.

    `_height` is the height of the expression that was parsed last. Later passes recurse over the tree, and a + b + c +
    ... is as high as it is long: a height beyond `NESTING_LIMIT` is an error here, not a crash there.
    """

    def __init__(self, cursor: Cursor, types: TypeNames) -> None:
        """`types` reads the types in them."""
        self._cursor, self._types = cursor, types
        self._height = 0

    def _note(self, height: int) -> None:
        """Set the height of the expression that was parsed last. Raises D_SYNTAX if it is too high."""
        self._height = height
        if height > NESTING_LIMIT:
            self._cursor.check_height(height)

    def expression(self) -> tree.Expression:
        """An expression: assignments with commas between them."""
        left = self.assignment()
        while self._cursor.kind == ",":
            self._cursor.advance()
            height = self._height
            right = self.assignment()
            left = tree.Binary(join(left.span, right.span), ",", left, right)
            self._note(max(height, self._height) + 1)
        return left

    def assignment(self) -> tree.Expression:
        """An assignment, a conditional, or anything of higher precedence."""
        cursor = self._cursor
        cursor.enter()
        left, is_unary = self._operation()
        operator = cursor.kind
        if operator == "?":
            left = self._conditional(left)
        elif operator in _ASSIGNMENTS and is_unary:
            # As in C's grammar: `1 = 2` is parsed, and refused since 1 is not an lvalue; `1 + x = 2` is a syntax error.
            cursor.advance()
            height = self._height
            value = self.assignment()
            left = tree.Assignment(join(left.span, value.span), operator, left, value)
            self._note(max(height, self._height) + 1)
        cursor.leave()
        return left

    def constant(self) -> tree.Expression:
        """The size of an array or the like inside a type. The tree around it becomes at least as high."""
        height = self._height
        value = self.conditional()
        self._height = max(height, self._height)
        return value

    def conditional(self) -> tree.Expression:
        """A conditional or anything of higher precedence: what may follow the colon of a conditional."""
        self._cursor.enter()
        left, _ = self._operation()
        if self._cursor.kind == "?":
            left = self._conditional(left)
        self._cursor.leave()
        return left

    def _conditional(self, condition: tree.Expression) -> tree.Conditional:
        height = self._height
        self._cursor.advance()
        then = self.expression()
        height = max(height, self._height)
        self._cursor.expect(":")
        otherwise = self.conditional()
        self._note(max(height, self._height) + 1)
        return tree.Conditional(join(condition.span, otherwise.span), condition, then, otherwise)

    def _operation(self) -> tuple[tree.Expression, bool]:
        """Operands with binary operators between them, by precedence; and whether the result can be assigned to.

        This is operator-precedence parsing with an explicit stack of the operators that wait for their right side: a
        hostile program must not decide how deep Python recurses.
        """
        cursor = self._cursor
        operand, is_unary = self._unary()
        level = BINDING.get(cursor.kind)
        if level is None:
            return operand, is_unary
        waiting: list[tuple[int, str, tree.Expression, int]] = []
        while level is not None:
            operand = self._reduce(waiting, operand, level)
            waiting.append((level, cursor.kind, operand, self._height))
            cursor.advance()
            operand, _ = self._unary()
            level = BINDING.get(cursor.kind)
        return self._reduce(waiting, operand, 0), False

    def _reduce(
        self, waiting: list[tuple[int, str, tree.Expression, int]], operand: tree.Expression, level: int
    ) -> tree.Expression:
        """Combine the waiting operators whose precedence is at least `level`, that of the operator that follows: all
        binary operators are left-associative."""
        while waiting and waiting[-1][0] >= level:
            _, operator, left, height = waiting.pop()
            operand = tree.Binary(join(left.span, operand.span), operator, left, operand)
            self._note(max(height, self._height) + 1)
        return operand

    def _unary(self) -> tuple[tree.Expression, bool]:
        """An operand with its prefixes and casts; and whether it is a unary expression in C's grammar, which may be
        assigned to. A cast is not one."""
        cursor = self._cursor
        if cursor.kind not in _PREFIXES:
            return self._postfix(self._primary()), True
        prefixes: list[tuple[Token, tree.TypeName | None]] = []
        operand: tree.Expression | None = None
        types_height = 0
        while operand is None:
            if cursor.kind not in _PREFIXES:
                operand = self._postfix(self._primary())
            elif cursor.kind != "(":
                prefixes.append((cursor.advance(), None))
            else:
                operand = self._after_parenthesis(prefixes)
                types_height = max(types_height, self._height)
        self._height = max(types_height, self._height)
        is_unary = not prefixes or prefixes[0][1] is None
        while prefixes:
            operand = self._prefixed(*prefixes.pop(), operand)
        return operand, is_unary

    def _after_parenthesis(self, prefixes: list[tuple[Token, tree.TypeName | None]]) -> tree.Expression | None:
        """A cast, a sizeof of a type, or an expression in parentheses. A cast is added to `prefixes`, and None
        returned."""
        cursor = self._cursor
        start = cursor.advance()
        if not cursor.is_type():
            inner = self.expression()
            cursor.expect(")")
            return self._postfix(inner)
        self._height = 0
        kind = self._types.type_name()
        end = cursor.expect(")")
        if prefixes and prefixes[-1][0].kind == "sizeof" and prefixes[-1][1] is None:
            size_of, _ = prefixes.pop()
            return tree.SizeOf(join(size_of.span, end.span), kind)
        prefixes.append((start, kind))
        return None

    def _prefixed(self, start: Token, kind: tree.TypeName | None, operand: tree.Expression) -> tree.Expression:
        self._note(self._height + 1)
        span = join(start.span, operand.span)
        if kind is not None:
            return tree.Cast(span, kind, operand)
        if start.kind == "sizeof":
            return tree.SizeOf(span, operand)
        if start.kind == "stringof":
            return tree.StringOf(span, operand)
        operator = f"{start.kind}x" if start.kind in ("++", "--") else start.kind
        return tree.Unary(span, operator, operand)

    def _primary(self) -> tree.Expression:
        """A name, a constant or one of D's operators that look like functions."""
        token = self._cursor.token
        self._height = 1
        match token.kind:
            case tokens.NAME if not self._cursor.is_type():
                self._cursor.advance()
                return _name(token)
            case tokens.LITERAL if not isinstance(token.value, DError | None):
                self._cursor.advance()
                return token.value
            case tokens.AGGREGATION:
                return self._aggregation()
            case "self" | "this":
                self._cursor.advance()
                return tree.Name(token.span, token.kind)
            case "offsetof":
                return self._offset_of()
            case "xlate":
                return self._translate()
            case _:
                raise syntax_error(token)

    def _aggregation(self) -> tree.AggregationName:
        token = self._cursor.advance()
        name = token.text[1:] or tree.UNNAMED
        if not self._cursor.accept("["):
            return tree.AggregationName(token.span, name, None)
        keys = self._arguments("]")
        return tree.AggregationName(join(token.span, self._cursor.previous.span), name, keys)

    def _offset_of(self) -> tree.OffsetOf:
        start = self._cursor.advance()
        self._cursor.expect("(")
        kind = self._types.type_name()
        self._cursor.expect(",")
        member = self._cursor.expect_word()
        end = self._cursor.expect(")")
        return tree.OffsetOf(join(start.span, end.span), kind, member.text)

    def _translate(self) -> tree.Translate:
        start = self._cursor.advance()
        self._cursor.expect("<")
        kind = self._types.type_name()
        height = self._height
        self._cursor.expect(">")
        self._cursor.expect("(")
        operand = self.expression()
        end = self._cursor.expect(")")
        self._note(max(height, self._height) + 1)
        return tree.Translate(join(start.span, end.span), kind, operand)

    def _arguments(self, close: str) -> tuple[tree.Expression, ...]:
        """One or more arguments, and the token that closes them."""
        height = self._height
        arguments = [self.assignment()]
        height = max(height, self._height)
        while self._cursor.accept(","):
            arguments.append(self.assignment())
            height = max(height, self._height)
        self._cursor.expect(close)
        self._note(height + 1)
        return tuple(arguments)

    def _postfix(self, operand: tree.Expression) -> tree.Expression:
        """Members, indexes, calls and increments after an operand."""
        cursor = self._cursor
        while (kind := cursor.kind) in _POSTFIXES:
            if kind == "(":
                operand = self._call(operand)
                continue
            token = cursor.advance()
            if kind == "[":
                indexes = self._arguments("]")
                operand = tree.Index(join(operand.span, cursor.previous.span), operand, indexes)
                continue
            self._note(self._height + 1)
            if kind in ("++", "--"):
                operand = tree.Unary(join(operand.span, token.span), f"x{kind}", operand)
            else:
                operand = self._member(operand, kind)
        return operand

    def _call(self, operand: tree.Expression) -> tree.Call:
        function = _function_name(operand)
        self._cursor.advance()
        if self._cursor.accept(")"):
            arguments: tuple[tree.Expression, ...] = ()
        else:
            arguments = self._arguments(")")
        return tree.Call(join(operand.span, self._cursor.previous.span), function, arguments)

    def _member(self, base: tree.Expression, operator: str) -> tree.Expression:
        scope = base.name if isinstance(base, tree.Name) and base.name in ("self", "this") else ""
        is_hidden = bool(scope) and operator == "->" and self._cursor.accept("%")  # what `unparse` writes
        token = self._cursor.token
        if token.kind not in (tokens.NAME, tokens.TYPE_NAME) and token.kind not in KEYWORDS:
            raise syntax_error(token)
        self._cursor.advance()
        name = f"%{token.text}" if is_hidden else token.text
        span = join(base.span, token.span)
        if scope and operator == "->":
            return tree.ScopedName(span, scope, name)
        return tree.MemberAccess(span, base, name, operator == "->")


def _name(token: Token) -> tree.Expression:
    module, quote, name = token.text.rpartition("`")
    return tree.ExternalName(token.span, module, name) if quote else tree.Name(token.span, name)


def _function_name(operand: tree.Expression) -> str:
    """The name of the function that is called, which must be a plain word. Raises D_FUNC_IDENT."""
    match operand:
        case tree.Name(name=name):
            return name
        case tree.ExternalName(module=module, name=name):
            return f"{module}`{name}"
        case tree.AggregationName(name=name, keys=None):
            return f"@{name}"
        case _:
            raise DError("D_FUNC_IDENT", "function designator is not of function type", operand.span)
