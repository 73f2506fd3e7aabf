"""The syntax tree of a D program: the parser builds it and the checker reads it. Every node has its place in the
text."""

from typing import Final

from kinst.runtime.dlang.syntax.errors import Span
from kinst.targets.values import dataclass

UNNAMED: Final = "_"  # what a bare `@` is named

# -- expressions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IntegerLiteral:
    """A number or character constant; `text` is as written, with macro arguments replaced. The parser decides its type
    by C's rules: `type_name` is int, unsigned int, long, unsigned long, long long or unsigned long long."""

    span: Span
    value: int
    type_name: str
    text: str


@dataclass(frozen=True, slots=True)
class StringLiteral:
    """A string with its escapes replaced, without the NUL."""

    span: Span
    value: bytes


@dataclass(frozen=True, slots=True)
class Name:
    """A word: a variable, an inline, an enumerator."""

    span: Span
    name: str


@dataclass(frozen=True, slots=True)
class ScopedName:
    """`self->name` or `this->name`."""

    span: Span
    scope: str  # "self" or "this"
    name: str


@dataclass(frozen=True, slots=True)
class ExternalName:
    """`` `name`` or ``module`name``: a symbol of the traced image."""

    span: Span
    module: str
    name: str


@dataclass(frozen=True, slots=True)
class AggregationName:
    """`@name` or `@name[keys]`; a bare `@` is named `UNNAMED`. `keys` is None without brackets."""

    span: Span
    name: str
    keys: "tuple[Expression, ...] | None"


@dataclass(frozen=True, slots=True)
class Unary:
    """A unary operation. `operator` is one of + - ! ~ * & ++x --x x++ x--; the last four are spelled with the x."""

    span: Span
    operator: str
    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Binary:
    """A binary operation. `operator` is one of * / % + - << >> < <= > >= == != & ^ | && ^^ || and the comma."""

    span: Span
    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Conditional:
    """condition ? then : otherwise."""

    span: Span
    condition: "Expression"
    then: "Expression"
    otherwise: "Expression"


@dataclass(frozen=True, slots=True)
class Assignment:
    """An assignment. `operator` is = or one of += -= *= /= %= &= ^= |= <<= >>=."""

    span: Span
    operator: str
    target: "Expression"
    value: "Expression"


@dataclass(frozen=True, slots=True)
class Call:
    """function(arguments): subroutine, action or aggregating function."""

    span: Span
    function: str
    arguments: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class Index:
    """base[indexes]: element of an array, of an associative array (several indexes) or of args, regs, fds."""

    span: Span
    base: "Expression"
    indexes: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class MemberAccess:
    """base.name or base->name."""

    span: Span
    base: "Expression"
    name: str
    through_pointer: bool


@dataclass(frozen=True, slots=True)
class Cast:
    """A cast: `(type)operand`."""

    span: Span
    type: "TypeName"
    operand: "Expression"


@dataclass(frozen=True, slots=True)
class SizeOf:
    """sizeof (type) or sizeof expression."""

    span: Span
    operand: "TypeName | Expression"


@dataclass(frozen=True, slots=True)
class OffsetOf:
    """`offsetof(type, member)`, a constant."""

    span: Span
    type: "TypeName"
    member: str


@dataclass(frozen=True, slots=True)
class StringOf:
    """`stringof operand`: the operand as a string."""

    span: Span
    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Translate:
    """`xlate <type>(operand)`: the operand translated to a struct."""

    span: Span
    type: "TypeName"
    operand: "Expression"


Expression = (
    IntegerLiteral
    | StringLiteral
    | Name
    | ScopedName
    | ExternalName
    | AggregationName
    | Unary
    | Binary
    | Conditional
    | Assignment
    | Call
    | Index
    | MemberAccess
    | Cast
    | SizeOf
    | OffsetOf
    | StringOf
    | Translate
)

# -- declarations -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NamedType:
    """A typedef, or `string`; `module` is the part before a backquote."""

    span: Span
    module: str
    name: str


@dataclass(frozen=True, slots=True)
class BasicType:
    """One of C's basic types: its words in the order written, as ("unsigned", "long", "int")."""

    span: Span
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemberDeclaration:
    """One declarator of a member; `bits` is a bit-field's width. An anonymous struct's declarator has no name."""

    specifiers: "Specifiers"
    declarator: "Declarator"
    bits: Expression | None


@dataclass(frozen=True, slots=True)
class AggregateType:
    """A struct or union; `members` is None if it is only named."""

    span: Span
    keyword: str
    module: str
    tag: str
    members: tuple[MemberDeclaration, ...] | None


@dataclass(frozen=True, slots=True)
class EnumSpecifier:
    """An enum; `enumerators` is None if it is only named."""

    span: Span
    module: str
    tag: str
    enumerators: tuple[tuple[Span, str, Expression | None], ...] | None


@dataclass(frozen=True, slots=True)
class Specifiers:
    """What comes before a declarator. `storage`: words among auto extern register static typedef inline self this, in
    the order written. `type` is None if no type is named, which means int."""

    span: Span
    storage: tuple[str, ...]
    qualifiers: tuple[str, ...]
    type: NamedType | BasicType | AggregateType | EnumSpecifier | None


@dataclass(frozen=True, slots=True)
class PointerPart:
    """`*`, with its qualifiers."""

    qualifiers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArrayPart:
    """`[size]`; `size` is None for `[]`."""

    span: Span
    size: Expression | None


@dataclass(frozen=True, slots=True)
class KeysPart:
    """`[type, type]`: an associative array. The parser reads `[name]` as a key if `name` is a type."""

    span: Span
    types: "tuple[TypeName, ...]"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function, an inline or a probe."""

    type: "TypeName"
    name: str


@dataclass(frozen=True, slots=True)
class FunctionPart:
    """`(parameters)`; None for empty parentheses."""

    span: Span
    parameters: tuple[Parameter, ...] | None
    is_variadic: bool


@dataclass(frozen=True, slots=True)
class Declarator:
    """`parts` in the order in which they apply to the name: `*a[3]` is (ArrayPart, PointerPart)."""

    span: Span
    name: str  # empty in a type name
    parts: tuple[PointerPart | ArrayPart | KeysPart | FunctionPart, ...]


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type without a declared name: in casts, sizeof, keys and parameters."""

    span: Span
    specifiers: Specifiers
    declarator: Declarator


@dataclass(frozen=True, slots=True)
class Declaration:
    """Variables, a typedef, or a struct, union or enum alone (no declarators). Ends with a semicolon."""

    span: Span
    specifiers: Specifiers
    declarators: tuple[Declarator, ...]


@dataclass(frozen=True, slots=True)
class Inline:
    """inline type name = expression; with parameters where the name has brackets."""

    span: Span
    specifiers: Specifiers
    declarator: Declarator  # without the brackets
    parameters: tuple[Parameter, ...] | None
    value: Expression


@dataclass(frozen=True, slots=True)
class TranslatorMember:
    """One member of a translator: `name = value;`."""

    span: Span
    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Translator:
    """`translator output < input name > { members };`"""

    span: Span
    output: TypeName
    input: TypeName
    name: str
    members: tuple[TranslatorMember, ...]


@dataclass(frozen=True, slots=True)
class ProviderProbe:
    """`probe name(arguments) : (translated arguments);` in a provider's declaration."""

    span: Span
    name: str
    arguments: tuple[Parameter, ...]
    translated: tuple[Parameter, ...] | None


@dataclass(frozen=True, slots=True)
class ProviderDeclaration:
    """`provider name { probes };`"""

    span: Span
    name: str
    probes: tuple[ProviderProbe, ...]


@dataclass(frozen=True, slots=True)
class Pragma:
    """`#pragma D kind words`, which takes effect from its place in the text on. Other control lines that have an effect
    (#error) are kinds as well: ("error", words)."""

    span: Span
    kind: str
    words: tuple[str, ...]


# -- clauses ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExpressionStatement:
    """A statement that is an expression: an action, an aggregation or an assignment."""

    span: Span
    expression: Expression


@dataclass(frozen=True, slots=True)
class If:
    """`if (condition) then else otherwise`. `otherwise` is empty without an else."""

    span: Span
    condition: Expression
    then: "tuple[Statement, ...]"
    otherwise: "tuple[Statement, ...]"


Statement = ExpressionStatement | If


@dataclass(frozen=True, slots=True)
class ProbeDescription:
    """One description before a clause, with macros replaced. A number stands for a probe's id."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Clause:
    """`descriptions / predicate / { statements }`. `statements` is None without braces, which `-n` allows: like an
    empty body it means the default action."""

    span: Span
    descriptions: tuple[ProbeDescription, ...]
    predicate: Expression | None
    statements: tuple[Statement, ...] | None


TopLevel = Clause | Declaration | Inline | Translator | ProviderDeclaration | Pragma


@dataclass(frozen=True, slots=True)
class Unit:
    """A whole program text: its items and pragmas in order."""

    items: tuple[TopLevel, ...]
