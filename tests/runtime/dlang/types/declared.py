"""Declarations as text -> what the scope makes of them, through the real parser."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.cursor import Names
from kinst.runtime.dlang.syntax.macros import Macros
from kinst.runtime.dlang.syntax.parser import parse
from kinst.runtime.dlang.types.scope import TypeScope
from kinst.runtime.dlang.types.types import DType
from kinst.targets.c_types import CType, EnumType, Function, ImageTypes, NoImageTypes, Symbol

OPERATORS = {
    "-": lambda left, right: left - right,
    "+": lambda left, right: left + right,
    "*": lambda left, right: left * right,
}


@dataclass
class Image:
    """An image whose types a test makes up."""

    types: dict[str, CType] = field(default_factory=dict)
    enumerators: dict[str, tuple[EnumType, int]] = field(default_factory=dict)

    def type_named(self, name: str, module: str = "") -> CType | None:
        return self.types.get(f"{module}`{name}" if module else name)

    def enumerator(self, name: str) -> tuple[EnumType, int] | None:
        return self.enumerators.get(name)

    def symbol(self, name: str, module: str = "") -> Symbol | None:
        return None

    def function(self, name: str, module: str = "") -> Function | None:
        return None

    def symbols(self) -> Iterator[Symbol]:
        return iter(())

    def obstacle(self) -> str:
        return ""

    def sources(self) -> Iterator[str]:
        return iter(())


class Program:
    """A program of declarations."""

    def __init__(self, text: str, image: ImageTypes | None = None, variables: tuple[str, ...] = ()) -> None:
        self.scope = TypeScope(image or NoImageTypes(), is_variable=variables.__contains__)
        self.variables: dict[str, DType] = {}
        self.keys: dict[str, tuple[DType, ...] | None] = {}
        for item in parse(text, names=Names(self.scope.is_type), macros=Macros(())).items:
            assert isinstance(item, tree.Declaration)
            self._declare(item)

    def _declare(self, node: tree.Declaration) -> None:
        if "typedef" in node.specifiers.storage or not node.declarators:
            self.scope.declare(node, self.constant)
            return
        for declarator in node.declarators:
            self.variables[declarator.name] = self.scope.resolve(node.specifiers, declarator, self.constant)
            self.keys[declarator.name] = self.scope.declarator_keys(declarator, self.constant)

    def constant(self, node: tree.Expression) -> int | None:
        match node:
            case tree.IntegerLiteral(value=value):
                return value
            case tree.Name(name=name):
                found = self.scope.enumerator(name)
                return None if found is None else found[1]
            case tree.Unary(operator="-", operand=operand):
                value_of = self.constant(operand)
                return None if value_of is None else -value_of
            case tree.Binary(operator=operator, left=left, right=right) if operator in OPERATORS:
                one, other = self.constant(left), self.constant(right)
                return None if one is None or other is None else OPERATORS[operator](one, other)
            case _:
                return None


def type_of(text: str, image: ImageTypes | None = None) -> DType:
    """The type of the variable x of a program."""
    return Program(text, image).variables["x"]
