"""Specifiers and declarators -> types: C's rules for declarations, with libdtrace's errors.

`TypeNames` resolves names; `kinst.runtime.dlang.types.scope.TypeScope` implements it and uses the reader. The body of a
struct, union or enum is evaluated once for its place in the text, and shared by the declarators that follow: otherwise
each of them would have a type of its own, and enumerators would be declared twice.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError, Span
from kinst.runtime.dlang.types import types
from kinst.runtime.dlang.types.conversions import is_aggregate, is_void, size_of
from kinst.runtime.dlang.types.intrinsics import basic_type
from kinst.runtime.dlang.types.layout import Layout
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import DType, Dynamic, String, bare
from kinst.targets.c_types import (
    Aggregate,
    AggregateKind,
    Array,
    CType,
    EnumType,
    Function,
    Integer,
    Pointer,
    Qualified,
    Typedef,
)
from kinst.targets.values import dataclass

Constant = Callable[[tree.Expression], int | None]  # the value of a constant integer expression; None if it is not one
Part = tree.PointerPart | tree.ArrayPart | tree.KeysPart | tree.FunctionPart
MOST_ELEMENTS: Final = 0xFFFF_FFFF
INT_MAX: Final = 0x7FFF_FFFF
DEEPEST: Final = 100  # parts of one type, and structs inside structs: readers of types may recurse
LARGEST: Final = 10_000  # parts of a type, with those of all its parameters
NAMELESS: Final = "(anonymous)"


class TypeNames(Protocol):
    """The names of types, as the reader needs them."""

    def lookup(self, name: str, module: str = "") -> DType | None:
        """A type by name."""
        ...

    def add_tag(self, name: str, kind: CType) -> None:
        """Define what "struct x", "union x" or "enum x" is from now on."""
        ...

    def own_tag(self, name: str) -> CType | None:
        """The type of a tag that the program itself declared or named; None if it did not."""
        ...

    def add_enumerator(self, span: Span, name: str, kind: EnumType, value: int) -> None:
        """Add an enumeration constant. Raises DError D_DECL_IDRED."""
        ...

    def measure(self, kind: CType) -> tuple[int, int]:
        """How deep a type is, and how many parts it has."""
        ...


@dataclass(frozen=True, slots=True)
class Prototype:
    """The rules for a list of parameters."""

    what: str  # for messages
    allows_void: bool = False
    allows_anonymous: bool = False
    allows_dynamic: bool = False


KEYS: Final = Prototype("array", allows_anonymous=True)
FUNCTION: Final = Prototype("function", allows_void=True, allows_anonymous=True)
INLINE: Final = Prototype("inline", allows_void=True, allows_dynamic=True)
PROBE_INPUT: Final = Prototype("probe input", allows_void=True, allows_anonymous=True)
PROBE_OUTPUT: Final = Prototype("probe output", allows_void=True)


def check_class(specifiers: tree.Specifiers) -> str:
    """The storage class of a declaration, "" if it has none. `inline` does not count. Raises DError D_DECL_CLASS."""
    classes = [word for word in specifiers.storage if word != "inline"]
    if len(classes) > 1:
        raise DError("D_DECL_CLASS", "only one storage class is allowed in a declaration", specifiers.span)
    return classes[0] if classes else ""


def check_name(declarator: tree.Declarator, what: str) -> None:
    """Refuse to declare a name with a module. Raises DError D_DECL_SCOPE."""
    if "`" in declarator.name:
        raise DError("D_DECL_SCOPE", f"a {what} may not contain a backquote: {declarator.name}", declarator.span)


def check_complete(kind: DType, what: str, name: str, span: Span) -> None:
    """Refuse a type of which there can be no object. Raises DError: D_DECL_INCOMPLETE, D_DECL_VOIDOBJ."""
    plain = bare(kind)
    innermost = plain
    while isinstance(innermost, Array):
        innermost = bare(innermost.element)
    is_forward_enum = isinstance(innermost, EnumType) and not innermost.enumerators
    if is_forward_enum or (isinstance(innermost, Aggregate) and not innermost.size):
        raise DError("D_DECL_INCOMPLETE", f"incomplete type {describe(kind)}: {name}", span)
    if not isinstance(plain, Dynamic) and size_of(plain, 1) == 0:
        raise DError("D_DECL_VOIDOBJ", f"cannot have a void {what}: {name}", span)


class TypeReader:
    """Makes types from syntax trees."""

    def __init__(self, names: TypeNames, string_size: int) -> None:
        self._names = names
        self._string = types.embedded_string(string_size)
        self._bodies: dict[int, tuple[tree.AggregateType | tree.EnumSpecifier, CType]] = {}
        self._open: list[Aggregate] = []  # those whose bodies are being read

    # -- specifiers ---------------------------------------------------------------------------------------------------

    def base(self, specifiers: tree.Specifiers, constant: Constant) -> DType:
        """The type that comes before the declarators."""
        kind = self._named(specifiers, constant)
        if isinstance(kind, String | Dynamic):
            return kind  # strings are values: const means nothing for them
        return _qualify(kind, specifiers.qualifiers)

    def _named(self, specifiers: tree.Specifiers, constant: Constant) -> DType:
        match specifiers.type:
            case None:
                return types.INT
            case tree.BasicType() as words:
                return basic_type(words)
            case tree.NamedType(module=module, name=name, span=span):
                kind = self._names.lookup(name, module)
                if kind is None:
                    shown = f"{module}`{name}" if module else name
                    raise DError("D_UNKNOWN", f"failed to resolve type {shown}: no such type", span)
                return kind
            case tree.AggregateType() as node:
                return self._aggregate(node, constant)
            case node:
                return self._enumeration(node, constant)

    # -- structs and unions -------------------------------------------------------------------------------------------

    def _aggregate(self, node: tree.AggregateType, constant: Constant) -> CType:
        kind = AggregateKind(node.keyword)
        if node.members is None:
            return self._tagged(f"{node.keyword} {node.tag}", node, Aggregate(kind, node.tag))
        known = self._bodies.get(id(node))
        if known is not None:
            return known[1]
        aggregate = self._begin(f"{node.keyword} {node.tag}", node, Aggregate(kind, node.tag, module="D"))
        assert isinstance(aggregate, Aggregate)
        self._bodies[id(node)] = node, aggregate
        if len(self._open) >= DEEPEST:
            raise DError("D_UNKNOWN", "structs are nested too deeply", node.span)
        self._open.append(aggregate)
        try:
            layout = self._laid_out(Layout(kind), node.members, constant)
        finally:
            self._open.pop()
        aggregate.complete(tuple(layout.members), layout.size, layout.alignment)
        return aggregate

    def _laid_out(self, layout: Layout, members: Sequence[tree.MemberDeclaration], constant: Constant) -> Layout:
        names: set[str] = set()
        for member in members:
            self._member(member, layout, names, constant)
        return layout

    def _tagged(self, name: str, node: tree.AggregateType | tree.EnumSpecifier, forward: CType) -> CType:
        """The type of a tag without a body: what it names, or a new type that is not complete yet."""
        found = self._names.lookup(name, node.module)
        if found is not None and not isinstance(found, String | Dynamic):
            return found
        if node.module:
            raise DError("D_UNKNOWN", f"failed to resolve type {node.module}`{name}: no such type", node.span)
        self._names.add_tag(name, forward)
        return forward

    def _begin(self, name: str, node: tree.AggregateType | tree.EnumSpecifier, new: CType) -> CType:
        """The type of a tag with a body: the one that was named before, or `new`."""
        if not node.tag:
            return new
        if node.module:
            raise DError("D_DECL_SCOPE", f"a tag that is declared has no module: {node.module}`{name}", node.span)
        old = self._names.own_tag(name)
        if isinstance(old, Aggregate) and old.members is None:
            if old in self._open:
                raise DError("D_DECL_TYPERED", f"type redeclared: {name}", node.span)
            return old
        if old is not None and not (isinstance(old, EnumType) and not old.enumerators):
            raise DError("D_DECL_TYPERED", f"type redeclared: {name}", node.span)
        self._names.add_tag(name, new)
        return new

    def _member(self, node: tree.MemberDeclaration, layout: Layout, names: set[str], constant: Constant) -> None:
        name = node.declarator.name
        is_inner = isinstance(node.specifiers.type, tree.AggregateType) and node.specifiers.type.members is not None
        if not name and node.bits is None and not is_inner:
            raise DError("D_DECL_MNAME", "a member needs a name", node.declarator.span)
        kind = self._in_c(self.declared(node.specifiers, node.declarator, constant))
        check_name(node.declarator, "member's name")
        if any(isinstance(part, tree.KeysPart) for part in node.declarator.parts):
            raise DError("D_DECL_DYNOBJ", f"an associative array cannot be a member: {name}", node.declarator.span)
        check_complete(kind, "member", name or NAMELESS, node.declarator.span)
        if node.bits is None:
            layout.place(name, kind)
        else:
            self._bit_field(node, kind, layout, constant)
        if name in names:
            raise DError("D_UNKNOWN", f"failed to define member {name}: there already is one", node.declarator.span)
        names.update([name] if name else [])

    def _bit_field(self, node: tree.MemberDeclaration, kind: CType, layout: Layout, constant: Constant) -> None:
        name, span = node.declarator.name, node.declarator.span
        assert node.bits is not None
        width = constant(node.bits)
        if width is None or width < 0 or (width == 0 and name):
            raise DError("D_DECL_BFCONST", "the size of a bit-field is a positive integer constant", node.bits.span)
        plain = bare(kind)
        if not isinstance(plain, Integer):
            raise DError("D_DECL_BFTYPE", f"invalid type of a bit-field: {name or NAMELESS}", span)
        if width > plain.size * 8:
            raise DError("D_DECL_BFSIZE", f"the bit-field is too big for its type: {name or NAMELESS}", span)
        layout.place_bits(name, kind, width)

    # -- enumerations -------------------------------------------------------------------------------------------------

    def _enumeration(self, node: tree.EnumSpecifier, constant: Constant) -> CType:
        name = f"enum {node.tag}"
        if node.enumerators is None:
            return self._tagged(name, node, EnumType(node.tag, types.INT, ()))
        known = self._bodies.get(id(node))
        if known is not None:
            return known[1]
        unfinished = EnumType(node.tag, types.INT, ())
        self._begin(name, node, unfinished)
        values: dict[str, int] = {}
        for span, enumerator, expression in node.enumerators:
            value = self._enumerator_value(span, enumerator, expression, values, constant)
            if enumerator in values:
                raise DError("D_UNKNOWN", f"failed to define enumerator {enumerator}: it is already defined", span)
            self._names.add_enumerator(span, enumerator, unfinished, value)
            values[enumerator] = value
        finished = EnumType(node.tag, types.INT, tuple(values.items()))
        if node.tag:
            self._names.add_tag(name, finished)
        for span, enumerator, _ in node.enumerators:
            self._names.add_enumerator(span, enumerator, finished, values[enumerator])
        self._bodies[id(node)] = node, finished
        return finished

    def _enumerator_value(
        self, span: Span, name: str, expression: tree.Expression | None, before: dict[str, int], constant: Constant
    ) -> int:
        if "`" in name:
            raise DError("D_DECL_SCOPE", f"an enumerator's name may not contain a backquote: {name}", span)
        if expression is None:
            value: int | None = next(reversed(before.values()), -1) + 1
        elif isinstance(expression, tree.Name) and expression.name in before:
            value = before[expression.name]
        else:
            value = constant(expression)
        if value is None:
            raise DError("D_DECL_ENCONST", f"enumerator {name} needs an integer constant", span)
        if not -INT_MAX - 1 <= value <= INT_MAX:
            raise DError("D_DECL_ENOFLOW", f"the value of enumerator {name} does not fit an int: {value}", span)
        return value

    # -- declarators --------------------------------------------------------------------------------------------------

    def declared(self, specifiers: tree.Specifiers, declarator: tree.Declarator, constant: Constant) -> DType:
        """The type of what is declared; for an associative array the type of its values."""
        kind = self.base(specifiers, constant)
        parts = declarator.parts
        _check_keys(declarator)
        if len(parts) > DEEPEST:
            raise DError("D_UNKNOWN", "the type has too many parts", declarator.span)
        for part in reversed(parts):
            kind = self._apply(part, kind, declarator.span, constant)
        if parts and not isinstance(kind, String | Dynamic):
            depth, size = self._names.measure(kind)
            if depth > DEEPEST or size > LARGEST:
                raise DError("D_UNKNOWN", "the type has too many parts", declarator.span)
        return kind

    def _apply(self, part: Part, kind: DType, span: Span, constant: Constant) -> DType:
        match part:
            case tree.PointerPart(qualifiers=qualifiers):
                return _qualify(Pointer(self._in_c(kind)), qualifiers)
            case tree.ArrayPart():
                return self._array(part, kind, constant)
            case tree.KeysPart():
                if is_void(kind):
                    raise DError("D_DECL_VOIDOBJ", "cannot have an array of void", part.span)
                return kind
            case tree.FunctionPart(parameters=None):
                return Function(self._in_c(kind), None)
            case tree.FunctionPart(parameters=parameters, is_variadic=is_variadic):
                kinds = self.parameters(parameters or (), FUNCTION, constant)
                return Function(self._in_c(kind), tuple(map(self._decayed, kinds)), is_variadic)

    def _array(self, part: tree.ArrayPart, kind: DType, constant: Constant) -> CType:
        if is_void(kind):
            raise DError("D_DECL_VOIDOBJ", "cannot have an array of void", part.span)
        element = self._in_c(kind)
        if part.size is None:
            return Array(element, None)
        length = constant(part.size)
        if length is None or length <= 0:
            message = "the size of an array is a positive integer constant, or types for an associative array"
            raise DError("D_DECL_ARRSUB", message, part.span)
        if length > MOST_ELEMENTS or length * size_of(element, 1) > MOST_ELEMENTS:
            raise DError("D_DECL_ARRBIG", "the array is too big", part.span)
        return Array(element, length)

    def _in_c(self, kind: DType) -> CType:
        """The type as a part of another type."""
        if isinstance(kind, String):
            return self._string
        return types.VOID if isinstance(kind, Dynamic) else kind

    def _decayed(self, kind: DType) -> CType:
        match bare(kind):
            case Array(element=element):
                return Pointer(element)
            case Function():
                return Pointer(self._in_c(kind))
            case _:
                return self._in_c(kind)

    # -- parameters and keys ------------------------------------------------------------------------------------------

    def type_of(self, node: tree.TypeName, constant: Constant) -> DType:
        """The type of a type name. Raises DError D_DECL_DYNOBJ for an associative array."""
        if check_class(node.specifiers) not in ("", "register"):
            message = "inappropriate storage class of a parameter: " + " ".join(node.specifiers.storage)
            raise DError("D_DECL_PARMCLASS", message, node.span)
        if _has_keys(node):
            raise DError("D_DECL_DYNOBJ", "an associative array is not a type", node.span)
        return self.declared(node.specifiers, node.declarator, constant)

    def parameters(
        self,
        parameters: Sequence[tree.Parameter],
        prototype: Prototype,
        constant: Constant,
        formal: Sequence[tree.Parameter] | None = None,
    ) -> tuple[DType, ...]:
        """The types of parameters; none for a sole void. Names must be unique; with `formal` they must be its names.
        Raises DError: D_DECL_PROTO_TYPE, _NAME, _FORM, _VOID and those of types."""
        kinds: list[DType] = []
        known = {parameter.name for parameter in formal or () if parameter.name}
        for number, parameter in enumerate(parameters, 1):
            kind = self._parameter(parameter, number, prototype, constant)
            _check_parameter_name(parameter, number, prototype, is_void=is_void(kind))
            if parameter.name and (parameter.name in known) == (formal is None):
                state = "already" if formal is None else "not"
                message = f"the parameter is {state} declared in this {prototype.what} prototype: {parameter.name}"
                raise DError("D_DECL_PROTO_FORM", message, parameter.type.span)
            if formal is None:
                known.add(parameter.name)
            kinds.append(kind)
        has_void = any(map(is_void, kinds))
        if has_void and len(kinds) > 1:
            raise DError("D_DECL_PROTO_VOID", "void must be the sole parameter", parameters[0].type.span)
        return () if has_void else tuple(kinds)

    def _parameter(self, node: tree.Parameter, number: int, prototype: Prototype, constant: Constant) -> DType:
        if not _has_keys(node.type):
            kind = self.type_of(node.type, constant)
            if not is_void(kind) or prototype.allows_void:
                return kind
        elif prototype.allows_dynamic:
            return Dynamic("associative array")
        else:
            kind = Dynamic("associative array")
        shown = f"{describe(kind)}: {node.name or NAMELESS}, parameter #{number}"
        message = f"{prototype.what} prototype may not use a parameter of type {shown}"
        raise DError("D_DECL_PROTO_TYPE", message, node.type.span)

    def keys(self, declarator: tree.Declarator, constant: Constant) -> tuple[DType, ...] | None:
        """The types of an associative array's keys; None if the declarator is not one's."""
        if not declarator.parts or not isinstance(declarator.parts[0], tree.KeysPart):
            return None
        return self.parameters([tree.Parameter(kind, "") for kind in declarator.parts[0].types], KEYS, constant)


def _qualify(kind: CType, qualifiers: Sequence[str]) -> CType:
    """The type with const and volatile; restrict and userland do not change it."""
    is_const, is_volatile = "const" in qualifiers, "volatile" in qualifiers
    return Qualified(kind, is_const, is_volatile) if is_const or is_volatile else kind


def _check_keys(declarator: tree.Declarator) -> None:
    """Refuse an associative array as a part of a type: as an element of an array or what a pointer points to."""
    for part in declarator.parts[1:]:
        if isinstance(part, tree.KeysPart):
            raise DError("D_DECL_DYNOBJ", "an associative array cannot be a part of another type", part.span)


def _has_keys(node: tree.TypeName) -> bool:
    return bool(node.declarator.parts) and isinstance(node.declarator.parts[0], tree.KeysPart)


def _check_parameter_name(node: tree.Parameter, number: int, prototype: Prototype, *, is_void: bool) -> None:
    if is_void and node.name:
        raise DError("D_DECL_PROTO_NAME", f"a void parameter may not have a name: {node.name}", node.type.span)
    if not is_void and not node.name and not prototype.allows_anonymous:
        raise DError("D_DECL_PROTO_NAME", f"the parameter needs a name: parameter #{number}", node.type.span)


def measure(kind: CType, known: Callable[[str], tuple[int, int]]) -> tuple[int, int]:
    """How deep a type is, and how many parts it has. `known` has the answers for typedefs, so that a chain of them
    costs nothing."""
    match kind:
        case Typedef(name=name):
            depth, size = known(name)
            return depth + 1, size + 1
        case Pointer(target=inner) | Qualified(target=inner) | Array(element=inner):
            depth, size = measure(inner, known)
            return depth + 1, size + 1
        case Function(result=result, parameters=parameters):
            parts = [measure(part, known) for part in (result, *(parameters or ()))]
            return 1 + max(depth for depth, _ in parts), 1 + sum(size for _, size in parts)
        case _:
            return 1, 1


def is_tag_alone(specifiers: tree.Specifiers) -> bool:
    """Whether it is a struct, union or enum, which may be declared without a declarator."""
    return isinstance(specifiers.type, tree.AggregateType | tree.EnumSpecifier)


def is_defined(kind: CType) -> bool:
    """Whether it is a struct or union with members, or an enumeration with enumerators."""
    if is_aggregate(kind):
        plain = bare(kind)
        return isinstance(plain, Aggregate) and plain.members is not None
    return not isinstance(kind, EnumType) or bool(kind.enumerators)
