"""Texts of C types from providers ("struct callout *", "uint32_t") -> types, as a cast in a D program would name
them."""

from kinst.runtime.dlang.syntax import parser, tree
from kinst.runtime.dlang.syntax.cursor import Names
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.syntax.macros import Macros
from kinst.runtime.dlang.types.scope import TypeScope
from kinst.runtime.dlang.types.types import Dynamic, String
from kinst.targets.c_types import CType


class TypeTexts:
    """Resolves texts of types. Results are kept."""

    def __init__(self, scope: TypeScope) -> None:
        self._scope = scope
        self._known: dict[str, CType | None] = {}

    def resolve(self, kind: str | CType) -> CType | None:
        """The type of a text; None if it names none. A type is returned as it is."""
        if not isinstance(kind, str):
            return kind
        if kind not in self._known:
            self._known[kind] = self._parsed(kind)
        return self._known[kind]

    def _parsed(self, text: str) -> CType | None:
        try:
            unit = parser.parse(f"BEGIN {{ ({text})0 }}", names=Names(self._scope.is_type), macros=Macros(()))
            name = _cast_type(unit)
            found = None if name is None else self._scope.type_of(name, lambda _node: None)
        except DError:
            return None
        return None if isinstance(found, String | Dynamic) else found


def _cast_type(unit: tree.Unit) -> tree.TypeName | None:
    match unit.items:
        case [tree.Clause(statements=(tree.ExpressionStatement(expression=tree.Cast(type=name)),))]:
            return name
        case _:
            return None
