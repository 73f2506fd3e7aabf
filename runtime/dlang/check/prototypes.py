"""Prototypes of subroutines, actions and aggregating functions, and whether arguments fit them."""

from collections.abc import Sequence

from kinst.runtime.dlang import program
from kinst.runtime.dlang.syntax.errors import DError, Span
from kinst.runtime.dlang.types.conversions import element_of, is_aggregate, is_argument_compatible, is_string_like
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import CHAR, VOID, DType
from kinst.targets.c_types import Aggregate, AggregateKind, Pointer, Qualified
from kinst.targets.values import dataclass

TEXT = Pointer(Qualified(CHAR, is_const=True))  # the type of a parameter that takes a string
STRUCTURE = Pointer(Aggregate(AggregateKind.STRUCT, "lock"))  # any struct of this image: a lock, a message


@dataclass(frozen=True, slots=True)
class Prototype:
    """The parameters of a function; None takes anything. Those from number `required` on may be left out."""

    parameters: tuple[DType | None, ...] = ()
    result: DType = VOID
    required: int | None = None  # None: all
    is_variadic: bool = False

    @property
    def fewest(self) -> int:
        """The smallest number of arguments."""
        return len(self.parameters) if self.required is None else self.required


def is_zero(value: program.Expression) -> bool:
    """Whether it is the integer constant 0, which is also a null pointer."""
    return isinstance(value, program.Integer) and value.value == 0


def check(name: str, prototype: Prototype, arguments: Sequence[program.Expression], span: Span) -> None:
    """Compare arguments with a prototype. `name` has its brackets: "strlen( )", "@a[ ]". Raises DError: D_PROTO_LEN,
    D_PROTO_ARG."""
    count = len(arguments)
    if count < prototype.fewest or (count > len(prototype.parameters) and not prototype.is_variadic):
        raise wrong_count(name, count, prototype.fewest, span, is_open=_is_open(prototype))
    for number, (parameter, argument) in enumerate(zip(prototype.parameters, arguments, strict=False), 1):
        if parameter is not None and not _fits(parameter, argument):
            raise wrong_argument(f"{name} argument", number, describe(parameter), describe(argument.type), span)


def _is_open(prototype: Prototype) -> bool:
    return prototype.is_variadic or prototype.required is not None


def _fits(parameter: DType, argument: program.Expression) -> bool:
    if is_zero(argument) and is_string_like(parameter):
        return True
    target = element_of(argument.type)
    if parameter is STRUCTURE and target is not None and is_aggregate(target):
        return True
    return is_argument_compatible(parameter, argument.type, is_zero=is_zero(argument))


def wrong_count(name: str, count: int, expected: int, span: Span, *, is_open: bool = False) -> DError:
    """The error for too few or too many arguments or keys."""
    return DError("D_PROTO_LEN", _count_text(name, count, expected, "at least " if is_open else ""), span)


def _count_text(name: str, count: int, expected: int, least: str) -> str:
    return f"{name} prototype mismatch: {count} arg{'s' * (count != 1)} passed, {least}{expected} expected"


def count_error(tag: str, name: str, count: int, expected: int, span: Span) -> DError:
    """The same error with the tag of an action that has one of its own."""
    return DError(tag, _count_text(name, count, expected, ""), span)


def wrong_argument(
    what: str, number: int, parameter: str, argument: str, span: Span, *, tag: str = "D_PROTO_ARG"
) -> DError:
    """The error for an argument or key of the wrong type."""
    lines = f"\tprototype: {parameter}\n\t argument: {argument}"
    return DError(tag, f"{what} #{number} is incompatible with prototype:\n{lines}", span)
