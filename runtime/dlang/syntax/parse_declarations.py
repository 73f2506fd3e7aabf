"""Tokens -> types, declarators and declarations: C's, with D's scopes and keys."""

from typing import Final

from kinst.runtime.dlang.syntax import tokens, tree
from kinst.runtime.dlang.syntax.cursor import NESTING_LIMIT, Cursor, join
from kinst.runtime.dlang.syntax.errors import DError, Span
from kinst.runtime.dlang.syntax.parse_expressions import Expressions
from kinst.runtime.dlang.syntax.tokens import syntax_error
from kinst.runtime.dlang.syntax.words import (
    AGGREGATES,
    ATTRIBUTES,
    BASIC_TYPES,
    QUALIFIERS,
    STORAGE,
    VARIABLE_STORAGE,
)

_NO_STORAGE: Final[frozenset[str]] = frozenset()
_Parts = tuple[tree.PointerPart | tree.ArrayPart | tree.KeysPart | tree.FunctionPart, ...]
_TypeNode = tree.NamedType | tree.BasicType | tree.AggregateType | tree.EnumSpecifier


def _combination(words: list[str], span: Span) -> DError:
    """The error for words that cannot be combined with a named type, struct, union or enum."""
    if not ATTRIBUTES.issuperset(words):
        return DError("D_DECL_COMBO", "invalid type combination", span)
    if not {"signed", "unsigned"}.isdisjoint(words):
        return DError("D_DECL_SIGNINT", "signed and unsigned may only be used with integer types", span)
    if "long" in words:
        return DError("D_DECL_LONGINT", "long may only be used with integer and floating-point types", span)
    return DError("D_UNKNOWN", "failed to resolve a short type that is not an integer: no such type", span)


class Declarations:
    """Parses types and declarators at a cursor. It and the parser of expressions use each other: types contain constant
    expressions, and expressions casts."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self.expressions = Expressions(cursor, self)
        self._key_parameters: list[tuple[tree.KeysPart, tuple[tree.Parameter, ...]]] = []

    # -- what comes before a declarator

    def specifiers(self, storage_words: frozenset[str]) -> tree.Specifiers:
        """Storage classes, qualifiers and one type, in any order. Raises D_SYNTAX, D_DECL_COMBO, D_DECL_SIGNINT,
        D_DECL_LONGINT."""
        cursor = self._cursor
        start = cursor.token
        storage: list[str] = []
        qualifiers: list[str] = []
        words: list[str] = []
        type_node: _TypeNode | None = None
        groups = ((storage_words, storage), (QUALIFIERS, qualifiers), (BASIC_TYPES, words))
        while True:
            group = next((found for known, found in groups if cursor.kind in known), None)
            if group is not None:
                group.append(cursor.advance().kind)
            elif self._begins_type(words, type_node):
                if type_node is not None or words:
                    raise _combination(words if type_node is None else ["int"], cursor.token.span)
                type_node = self._type()
            else:
                break
        if cursor.token is start:
            raise syntax_error(start)
        span = join(start.span, cursor.previous.span)
        if words and type_node is not None:
            raise _combination(words, span)
        return tree.Specifiers(
            span, tuple(storage), tuple(qualifiers), tree.BasicType(span, tuple(words)) if words else type_node
        )

    def _begins_type(self, words: list[str], type_node: _TypeNode | None) -> bool:
        """Whether the type, or a second one, comes next. A name after a type belongs to the declarator, even if it also
        names a type: `typedef int t; struct s { t t; };`."""
        cursor = self._cursor
        if cursor.kind in AGGREGATES or cursor.kind == "string":
            return True
        is_named = type_node is not None or any(word not in ATTRIBUTES for word in words)
        return not is_named and cursor.kind in (tokens.NAME, tokens.TYPE_NAME) and cursor.is_type()

    def _type(self) -> _TypeNode:
        cursor = self._cursor
        token = cursor.advance()
        if token.kind == "enum":
            return self._enum(token.span, "")
        if token.kind in AGGREGATES:
            return self._aggregate(token.span, token.kind, "")
        module, _, name = token.text.rpartition("`")
        if module and name == "enum":
            return self._enum(token.span, module)
        if module and name in AGGREGATES:
            return self._aggregate(token.span, name, module)
        return tree.NamedType(token.span, module, name)

    def _tag(self, module: str) -> tuple[str, str]:
        """Module and tag of a struct, union or enum: `struct module`tag` means `module`struct tag`."""
        if self._cursor.kind not in (tokens.NAME, tokens.TYPE_NAME):
            return module, ""
        before, _, tag = self._cursor.advance().text.rpartition("`")
        return before or module, tag

    def _aggregate(self, start: Span, keyword: str, module: str) -> tree.AggregateType:
        cursor = self._cursor
        module, tag = self._tag(module)
        if not tag and cursor.kind != "{":
            raise syntax_error(cursor.token)
        members: list[tree.MemberDeclaration] | None = None
        if cursor.accept("{"):
            if tag:
                cursor.names.declare_body(f"{keyword} {tag}", join(start, cursor.previous.span))
            with cursor.nested():
                members = list(self._member())
                while not cursor.accept("}"):
                    members.extend(self._member())
        span = join(start, cursor.previous.span)
        return tree.AggregateType(span, keyword, module, tag, None if members is None else tuple(members))

    def _member(self) -> list[tree.MemberDeclaration]:
        """The members of one declaration; an anonymous struct or union has no declarator."""
        cursor = self._cursor
        specifiers = self.specifiers(_NO_STORAGE)
        if cursor.accept(";"):
            return [tree.MemberDeclaration(specifiers, tree.Declarator(specifiers.span, "", ()), None)]
        members = [self._member_declarator(specifiers)]
        while cursor.accept(","):
            members.append(self._member_declarator(specifiers))
        cursor.expect(";")
        return members

    def _member_declarator(self, specifiers: tree.Specifiers) -> tree.MemberDeclaration:
        is_nameless = self._cursor.kind == ":"
        declarator = tree.Declarator(self._cursor.token.span, "", ()) if is_nameless else self.declarator()
        bits = self.expressions.constant() if self._cursor.accept(":") else None
        return tree.MemberDeclaration(specifiers, declarator, bits)

    def _enum(self, start: Span, module: str) -> tree.EnumSpecifier:
        cursor = self._cursor
        module, tag = self._tag(module)
        if not tag and cursor.kind != "{":
            raise syntax_error(cursor.token)
        enumerators: list[tuple[Span, str, tree.Expression | None]] | None = None
        if cursor.accept("{"):
            enumerators = [self._enumerator()]
            while cursor.accept(","):
                enumerators.append(self._enumerator())
            cursor.expect("}")
        span = join(start, cursor.previous.span)
        return tree.EnumSpecifier(span, module, tag, None if enumerators is None else tuple(enumerators))

    def _enumerator(self) -> tuple[Span, str, tree.Expression | None]:
        token = self._cursor.expect_word()
        value = self.expressions.constant() if self._cursor.accept("=") else None
        self._cursor.names.declare_variable(token.text)
        return token.span, token.text, value

    # -- declarators

    def declarator(self) -> tree.Declarator:
        """A declarator with a name. Raises D_DECL_IDENT for two names of which the first is a type: `int size_t x`."""
        cursor = self._cursor
        declarator = self._any_declarator()
        if not declarator.name:
            raise syntax_error(cursor.token)
        if cursor.kind in (tokens.NAME, tokens.TYPE_NAME) and cursor.names.is_type(declarator.name):
            raise DError("D_DECL_IDENT", "old-style declaration or incorrect type specified", cursor.token.span)
        return declarator

    def type_name(self) -> tree.TypeName:
        """A type as it is written in casts and sizeof."""
        specifiers = self.specifiers(_NO_STORAGE)
        declarator = self._any_declarator(has_name=False)
        return tree.TypeName(join(specifiers.span, self._cursor.previous.span), specifiers, declarator)

    def _any_declarator(self, *, has_name: bool = True) -> tree.Declarator:
        cursor = self._cursor
        start = cursor.token.span
        name, parts = self._declarator_parts(has_name=has_name)
        if len(parts) > NESTING_LIMIT:
            raise cursor.fail("type is nested too deeply")
        span = join(start, cursor.previous.span) if name or parts else start
        return tree.Declarator(span, name, parts)

    def _declarator_parts(self, *, has_name: bool) -> tuple[str, _Parts]:
        cursor = self._cursor
        pointers: list[tree.PointerPart] = []
        while cursor.accept("*"):
            qualifiers = []
            while cursor.kind in QUALIFIERS:
                qualifiers.append(cursor.advance().kind)
            pointers.append(tree.PointerPart(tuple(qualifiers)))
        name, inner = "", ()  # type: str, _Parts
        if cursor.kind == "(" and self._is_grouping():
            cursor.advance()
            with cursor.nested():
                name, inner = self._declarator_parts(has_name=has_name)
            cursor.expect(")")
        elif has_name and cursor.kind in (tokens.NAME, tokens.TYPE_NAME):
            name = cursor.advance().text
        return name, (*inner, *self._suffixes(), *reversed(pointers))

    def _is_grouping(self) -> bool:
        """Whether a parenthesis groups a declarator; else it begins a function's parameters."""
        following = self._cursor.following
        if following.kind == tokens.NAME:
            return not self._cursor.names.is_type(following.text)
        return following.kind in ("*", "(", "[")

    def _suffixes(self) -> _Parts:
        parts: list[tree.ArrayPart | tree.KeysPart | tree.FunctionPart] = []
        while self._cursor.kind in ("[", "("):
            with self._cursor.nested():
                parts.append(self._brackets() if self._cursor.kind == "[" else self._function())
        return tuple(parts)

    def _brackets(self) -> tree.ArrayPart | tree.KeysPart:
        """The content of brackets: an array's size, or the types of an associative array's keys."""
        cursor = self._cursor
        start = cursor.advance().span
        if cursor.accept("]"):
            return tree.ArrayPart(join(start, cursor.previous.span), None)
        if cursor.kind not in STORAGE and cursor.kind != "..." and not cursor.is_type():
            size = self.expressions.constant()
            cursor.expect("]")
            return tree.ArrayPart(join(start, cursor.previous.span), size)
        parameters = self.fixed_parameters("]")
        keys = tree.KeysPart(join(start, cursor.previous.span), tuple(parameter.type for parameter in parameters))
        self._key_parameters.append((keys, parameters))
        return keys

    def parameters_of(self, keys: tree.KeysPart) -> tuple[tree.Parameter, ...]:
        """The parameters of an inline, from brackets that were parsed as keys: now they must have names."""
        return next(parameters for part, parameters in reversed(self._key_parameters) if part is keys)

    def _function(self) -> tree.FunctionPart:
        start = self._cursor.advance().span
        parameters, is_variadic = self._parameters(")")
        span = join(start, self._cursor.previous.span)
        return tree.FunctionPart(span, parameters or (() if is_variadic else None), is_variadic)

    def fixed_parameters(self, close: str) -> tuple[tree.Parameter, ...]:
        """Parameters and the token that closes them. Raises D_DECL_PROTO_VARARGS."""
        start = self._cursor.token.span
        parameters, is_variadic = self._parameters(close)
        if is_variadic:
            message = "prototype may not have a variable number of arguments"
            raise DError("D_DECL_PROTO_VARARGS", message, join(start, self._cursor.previous.span))
        return parameters

    def _parameters(self, close: str) -> tuple[tuple[tree.Parameter, ...], bool]:
        cursor = self._cursor
        parameters: list[tree.Parameter] = []
        if cursor.accept(close):
            return (), False
        while cursor.kind != "...":
            parameters.append(self._parameter())
            if not cursor.accept(","):
                cursor.expect(close)
                return tuple(parameters), False
        cursor.advance()
        cursor.expect(close)
        return tuple(parameters), True

    def _parameter(self) -> tree.Parameter:
        specifiers = self.specifiers(STORAGE)
        declarator = self._any_declarator()
        span = join(specifiers.span, self._cursor.previous.span)
        nameless = tree.Declarator(declarator.span, "", declarator.parts)
        return tree.Parameter(tree.TypeName(span, specifiers, nameless), declarator.name)

    # -- declarations

    def declaration(self) -> tree.Declaration:
        """A declaration of variables, of typedefs or of a type alone, with its semicolon."""
        cursor = self._cursor
        specifiers = self.specifiers(VARIABLE_STORAGE)
        declarators: list[tree.Declarator] = []
        if not cursor.accept(";"):
            declarators.append(self._declared(specifiers))
            while cursor.accept(","):
                declarators.append(self._declared(specifiers))
            cursor.expect(";")
        span = join(specifiers.span, cursor.previous.span)
        return tree.Declaration(span, specifiers, tuple(declarators))

    def _declared(self, specifiers: tree.Specifiers) -> tree.Declarator:
        declarator = self.declarator()
        if "typedef" in specifiers.storage:
            self._cursor.names.declare_type(declarator.name)
        elif "self" not in specifiers.storage and "this" not in specifiers.storage:
            self._cursor.names.declare_variable(declarator.name)
        return declarator

    def inline(self) -> tree.Inline:
        """`inline type name = value;` or `inline type name[parameters] = value;`."""
        cursor = self._cursor
        start = cursor.expect("inline").span
        specifiers = self.specifiers(VARIABLE_STORAGE)
        declarator = self.declarator()
        parameters: tuple[tree.Parameter, ...] | None = None
        if declarator.parts and isinstance(declarator.parts[0], tree.KeysPart):
            parameters = self.parameters_of(declarator.parts[0])
            declarator = tree.Declarator(declarator.span, declarator.name, declarator.parts[1:])
        cursor.names.declare_variable(declarator.name)
        cursor.expect("=")
        value = self.expressions.assignment()
        cursor.expect(";")
        return tree.Inline(join(start, value.span), specifiers, declarator, parameters, value)

    def translator(self) -> tree.Translator:
        """`translator output < input name > { members };`."""
        cursor = self._cursor
        start = cursor.expect("translator").span
        output = self.type_name()
        cursor.expect("<")
        source = self.type_name()
        name = cursor.expect_word().text
        cursor.expect(">")
        cursor.expect("{")
        members = []
        while not cursor.accept("}"):
            member = cursor.expect_word()
            cursor.expect("=")
            value = self.expressions.assignment()
            cursor.expect(";")
            members.append(tree.TranslatorMember(join(member.span, value.span), member.text, value))
        cursor.expect(";")
        return tree.Translator(join(start, cursor.previous.span), output, source, name, tuple(members))

    def provider(self) -> tree.ProviderDeclaration:
        """`provider name { probe name(arguments) : (translated); ... };`."""
        cursor = self._cursor
        start = cursor.expect("provider").span
        name = cursor.expect_word().text
        cursor.expect("{")
        probes = []
        while not cursor.accept("}"):
            probes.append(self._probe())
        cursor.expect(";")
        return tree.ProviderDeclaration(join(start, cursor.previous.span), name, tuple(probes))

    def _probe(self) -> tree.ProviderProbe:
        cursor = self._cursor
        start = cursor.expect("probe").span
        name = cursor.expect_word().text
        cursor.expect("(")
        arguments = self.fixed_parameters(")")
        translated: tuple[tree.Parameter, ...] | None = None
        if cursor.accept(":"):
            cursor.expect("(")
            translated = self.fixed_parameters(")")
        cursor.expect(";")
        return tree.ProviderProbe(join(start, cursor.previous.span), name, arguments, translated)
