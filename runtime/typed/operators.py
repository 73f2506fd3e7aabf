"""C's operators on typed values, as Python's. Operands are typed values and Python's numbers, which are constants."""

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Self, cast

from kinst.runtime.dlang.types.conversions import are_compatible
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import INT, LONG, VOID
from kinst.runtime.typed.arithmetic import Number, compared, computed, literal, promoted, wrapped
from kinst.runtime.typed.errors import OperandError
from kinst.runtime.typed.view import ADDRESSES
from kinst.targets.c_types import Array, CType, Float, Function, Pointer, strip

if TYPE_CHECKING:
    from kinst.runtime.typed.scalars import Place
    from kinst.runtime.typed.view import View

_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Operators:
    """What `Object` computes."""

    __slots__ = ()
    if TYPE_CHECKING:
        _kind_: CType
        _place_: Place
        _view_: View

        def _number_(self) -> Number | complex: ...
        def _made_(self, kind: CType, value: Number, path: str) -> Self: ...
        def _step_(self, kind: Array | Pointer) -> int: ...

    __hash__ = None  # type: ignore[assignment]  # equal values may have different types, and a reference may change

    def __eq__(self, other: object) -> bool:
        return self._compared_("==", other)

    def __ne__(self, other: object) -> bool:
        return self._compared_("!=", other)

    def __lt__(self, other: object) -> bool:
        return self._compared_("<", other)

    def __le__(self, other: object) -> bool:
        return self._compared_("<=", other)

    def __gt__(self, other: object) -> bool:
        return self._compared_(">", other)

    def __ge__(self, other: object) -> bool:
        return self._compared_(">=", other)

    def __add__(self, other: object) -> Self:
        return self._computed_("+", other)

    def __radd__(self, other: object) -> Self:
        return self._computed_("+", other, is_right=True)

    def __sub__(self, other: object) -> Self:
        return self._computed_("-", other)

    def __rsub__(self, other: object) -> Self:
        return self._computed_("-", other, is_right=True)

    def __mul__(self, other: object) -> Self:
        return self._computed_("*", other)

    def __rmul__(self, other: object) -> Self:
        return self._computed_("*", other, is_right=True)

    def __truediv__(self, other: object) -> Self:
        return self._computed_("/", other)

    def __rtruediv__(self, other: object) -> Self:
        return self._computed_("/", other, is_right=True)

    def __mod__(self, other: object) -> Self:
        return self._computed_("%", other)

    def __rmod__(self, other: object) -> Self:
        return self._computed_("%", other, is_right=True)

    def __and__(self, other: object) -> Self:
        return self._computed_("&", other)

    def __rand__(self, other: object) -> Self:
        return self._computed_("&", other, is_right=True)

    def __or__(self, other: object) -> Self:
        return self._computed_("|", other)

    def __ror__(self, other: object) -> Self:
        return self._computed_("|", other, is_right=True)

    def __xor__(self, other: object) -> Self:
        return self._computed_("^", other)

    def __rxor__(self, other: object) -> Self:
        return self._computed_("^", other, is_right=True)

    def __lshift__(self, other: object) -> Self:
        return self._computed_("<<", other)

    def __rlshift__(self, other: object) -> Self:
        return self._computed_("<<", other, is_right=True)

    def __rshift__(self, other: object) -> Self:
        return self._computed_(">>", other)

    def __rrshift__(self, other: object) -> Self:
        return self._computed_(">>", other, is_right=True)

    def __neg__(self) -> Self:
        kind, value = self._operand_()
        return self._made_(kind, wrapped(-value, kind), f"-{self._place_.path}")

    def __pos__(self) -> Self:
        """The promoted value; of an array a pointer to its first element."""
        kind, value = self._decayed_() if self._is_address_() else self._operand_()
        return self._made_(kind, value, f"+{self._place_.path}")

    def __invert__(self) -> Self:
        kind, value = self._operand_()
        if isinstance(kind, Float) or not isinstance(value, int):
            raise OperandError(f"~{self._place_.path}: {describe(kind)} is no integer")
        return self._made_(kind, wrapped(~value, kind), f"~{self._place_.path}")

    # -- how ----------------------------------------------------------------------------------------------------------

    def _is_address_(self) -> bool:
        return isinstance(strip(self._kind_), Pointer | Array | Function)

    def _decayed_(self) -> tuple[Pointer, int]:
        """A pointer; an array or a function as one (C11 6.3.2.1). Raises OperandError: it is something else."""
        plain, place = strip(self._kind_), self._place_
        match plain:
            case Pointer():
                value = self._number_()
                assert isinstance(value, int), "it is a pointer"
                return plain, value
            case Array(element=element) if place.address is not None:
                return Pointer(element), place.address
            case Function() if place.address is not None:
                return Pointer(plain), place.address
            case _:
                raise OperandError(f"{place.path}: {describe(self._kind_)} is no address")

    def _operand_(self) -> tuple[CType, Number]:
        """Its promoted type, and its value. Raises OperandError: it is no number."""
        value, bits = self._number_(), self._place_.bits
        if isinstance(value, complex) or isinstance(strip(self._kind_), Pointer):
            raise OperandError(f"{self._place_.path}: cannot compute that with {describe(self._kind_)}")
        kind = promoted(self._kind_, None if bits is None else bits[1])
        return kind, wrapped(value, kind)

    def _computed_(self, sign: str, other: object, *, is_right: bool = False) -> Self:
        if not isinstance(other, Operators | int | float):
            return cast("Self", NotImplemented)  # the interpreter asks the other operand, and raises TypeError
        path = f"({self._place_.path} {sign} {_shown(other)})"
        if self._is_address_() or (isinstance(other, Operators) and other._is_address_()):
            kind, value = self._moved_(sign, other, is_right=is_right)
            return self._made_(kind, value, path)
        pair = self._operand_(), _operand(other)
        left, right = reversed(pair) if is_right else pair
        return self._made_(*computed(sign, left, right), path)

    def _moved_(self, sign: str, other: "Operators | Number", *, is_right: bool) -> tuple[CType, int]:
        """Pointers: moved by a number of elements, or their distance in elements (C11 6.5.6)."""
        if not self._is_address_():  # then the other one is
            assert isinstance(other, Operators)
            return other._moved_(sign, self, is_right=not is_right)
        kind, address = self._decayed_()
        step = 1 if strip(kind.target) == VOID else self._step_(kind)  # as GNU C does
        if isinstance(other, Operators) and other._is_address_():
            theirs, there = other._decayed_()
            if sign != "-" or not are_compatible(kind, theirs):
                raise OperandError(f"{describe(kind)} {sign} {describe(theirs)}: cannot be computed")
            distance = wrapped(address - there, LONG)
            assert isinstance(distance, int)
            return LONG, distance // step
        by = _operand(other)[1]
        if sign not in "+-" or (sign == "-" and is_right) or not isinstance(by, int):
            raise OperandError(f"{describe(kind)}: pointers are moved by + and - an integer")
        return kind, (address + (by if sign == "+" else -by) * step) % ADDRESSES

    def _compared_(self, sign: str, other: object) -> bool:
        if not isinstance(other, Operators | int | float):
            return cast("bool", NotImplemented)
        if self._is_address_() or (isinstance(other, Operators) and other._is_address_()):
            return _COMPARISONS[sign](_address(self), _address(other))
        return _COMPARISONS[sign](*compared(self._operand_(), _operand(other)))


def _operand(value: "Operators | Number") -> tuple[CType, Number]:
    if isinstance(value, Operators):
        return value._operand_()
    return (INT, int(value)) if isinstance(value, bool) else (literal(value), value)


def _address(value: "Operators | Number") -> int:
    """A value beside an address, as one."""
    if isinstance(value, Operators):
        found = value._decayed_()[1] if value._is_address_() else value._operand_()[1]
    else:
        found = value
    if not isinstance(found, int):
        raise OperandError(f"{found}: is no address")
    return found % ADDRESSES


def _shown(value: "Operators | Number") -> str:
    return value._place_.path if isinstance(value, Operators) else str(value)
