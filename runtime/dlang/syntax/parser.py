"""The text of a D program -> its tree."""

from collections.abc import Callable

from kinst.runtime.dlang.syntax import tokens, tree
from kinst.runtime.dlang.syntax.cursor import NESTING_LIMIT, Cursor, Names, join
from kinst.runtime.dlang.syntax.errors import DError, Span
from kinst.runtime.dlang.syntax.lexer import Lexer
from kinst.runtime.dlang.syntax.macros import Macros
from kinst.runtime.dlang.syntax.parse_declarations import Declarations

_LARGEST_PROBE_ID = 2**32 - 1


class _Parser:
    """Parses clauses itself; declarations and expressions have parsers of their own."""

    def __init__(self, cursor: Cursor, *, is_description: bool) -> None:
        self._cursor = cursor
        self._declarations = Declarations(cursor)
        self._expressions = self._declarations.expressions
        self._is_description = is_description

    def item(self) -> tree.TopLevel:
        """The one declaration or clause that the cursor has. Raises D_SYNTAX if anything follows it."""
        item: tree.TopLevel
        match self._cursor.kind:
            case tokens.DESCRIPTION | tokens.LITERAL:
                item = self._clause()
            case "inline":
                item = self._declarations.inline()
            case "translator":
                item = self._declarations.translator()
            case "provider":
                item = self._declarations.provider()
            case _:
                item = self._declarations.declaration()
        self._cursor.expect_end()
        return item

    def _clause(self) -> tree.Clause:
        cursor = self._cursor
        descriptions = [self._description()]
        while cursor.accept(","):
            descriptions.append(self._description())
        predicate = None
        if cursor.accept("/"):
            predicate = self._expressions.expression()
            cursor.expect(tokens.END_OF_PREDICATE)
        statements: tuple[tree.Statement, ...] | None = None
        if cursor.accept("{"):
            statements = self._body()
        elif cursor.kind != tokens.END or not self._is_description:
            raise self._no_body(descriptions[0].span, predicate)
        span = join(descriptions[0].span, descriptions[-1].span)
        return tree.Clause(span, tuple(descriptions), predicate, statements)

    def _no_body(self, start: Span, predicate: tree.Expression | None) -> DError:
        if predicate is not None:
            message = "expected actions { } following probe description and predicate"
            return DError("D_SYNTAX", message, predicate.span)
        if self._cursor.kind != tokens.END:
            return tokens.syntax_error(self._cursor.token)
        return DError("D_SYNTAX", "expected predicate and/or actions following probe description", start)

    def _description(self) -> tree.ProbeDescription:
        token = self._cursor.token
        if isinstance(token.value, tree.IntegerLiteral):
            if token.value.value > _LARGEST_PROBE_ID:
                message = f"identifier {token.text} exceeds the largest probe id"
                raise DError("D_ID_OFLOW", message, token.span)
            self._cursor.advance()
            return tree.ProbeDescription(token.span, str(token.value.value))
        self._cursor.expect(tokens.DESCRIPTION)
        return tree.ProbeDescription(token.span, token.text)

    def _body(self) -> tuple[tree.Statement, ...]:
        """Statements up to the closing brace. The last one may omit its semicolon."""
        cursor = self._cursor
        statements: list[tree.Statement] = []
        while not cursor.accept("}"):
            if cursor.kind == "if":
                statements.append(self._if())
            elif not cursor.accept(";"):
                statements.append(self._expression_statement())
                if cursor.kind != "}":
                    cursor.expect(";")
        return tuple(statements)

    def _expression_statement(self) -> tree.ExpressionStatement:
        expression = self._expressions.expression()
        return tree.ExpressionStatement(expression.span, expression)

    def _if(self) -> tree.If:
        """An `if` with all its `else if`. The chain is parsed in a loop, but the tree of it must not be too high."""
        conditions: list[tuple[Span, tree.Expression, tuple[tree.Statement, ...]]] = []
        otherwise: tuple[tree.Statement, ...] = ()
        while True:
            conditions.append(self._condition())
            if not self._cursor.accept("else"):
                break
            if self._cursor.kind != "if":
                otherwise = self._branch()
                break
            if len(conditions) > NESTING_LIMIT:
                raise self._cursor.fail("if is nested too deeply")
        while conditions:
            span, condition, then = conditions.pop()
            statement = tree.If(span, condition, then, otherwise)
            otherwise = (statement,)
        return statement

    def _condition(self) -> tuple[Span, tree.Expression, tuple[tree.Statement, ...]]:
        start = self._cursor.expect("if").span
        self._cursor.expect("(")
        condition = self._expressions.expression()
        end = self._cursor.expect(")").span
        return join(start, end), condition, self._branch()

    def _branch(self) -> tuple[tree.Statement, ...]:
        """Statements in braces, or a single one with its semicolon."""
        cursor = self._cursor
        with cursor.nested():
            if cursor.accept("{"):
                return self._body()
            if cursor.kind == "if":
                return (self._if(),)
            if cursor.accept(";"):
                return ()
            statement = self._expression_statement()
            cursor.expect(";")
            return (statement,)


def parse(
    text: str,
    *,
    names: Names,
    macros: Macros,
    file: str = "",
    is_description: bool = False,
    allows_empty: Callable[[], bool] = lambda: False,
    on_pragma: Callable[[tree.Pragma], None] = lambda _pragma: None,
    items: list[tree.TopLevel] | None = None,
) -> tree.Unit:
    """The tree of a program. `names` know the types that the text does not declare itself, D's own and those of earlier
    programs included; names may have a module: "module`type". This program's names are added. `file` is the file of
    spans until the text names another. `is_description`: as with -n, the text begins with a probe description, even if
    its first word is a type, and needs no actions. `on_pragma` is called for each pragma before the text after it is
    read; `allows_empty` is called at the end. `items` receives the items as they are read, also before an error.

    Raises DError: D_SYNTAX, D_EMPTY, the D_INT_, D_CHR_, D_STR_, D_MACRO_ and D_PRAG tags, and those tags of
    declarations that follow from the text alone.
    """
    lexer = Lexer(text, macros=macros, file=file, is_description=is_description, on_pragma=on_pragma)
    cursor = Cursor(names)
    parser = _Parser(cursor, is_description=is_description)
    items = [] if items is None else items
    is_empty = True
    while True:
        cursor.begin(lexer.item(names.is_type))
        is_last = cursor.kind == tokens.END
        # A pragma inside an item is in force from there on; nothing of the item has been checked yet.
        items.extend(lexer.pragmas)
        lexer.pragmas.clear()
        if is_last:
            break
        items.append(parser.item())
        is_empty = False
    if is_empty and not allows_empty():
        raise DError("D_EMPTY", "empty D program translation unit", cursor.token.span)
    return tree.Unit(tuple(items))
