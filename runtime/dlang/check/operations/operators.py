"""Operators without a side effect: the types of their operands and results (K&R A7 with D's additions)."""

from typing import Final

from kinst.runtime.dlang import program
from kinst.runtime.dlang.check.compatibility import are_comparable, pointer_type, target_of
from kinst.runtime.dlang.check.converting import as_string, as_word_of_sign, cast, converted
from kinst.runtime.dlang.check.operands import Operand, Use, address_of, computed, shifted, value_operand
from kinst.runtime.dlang.check.operations.folding import fold_binary, fold_cast, fold_unary
from kinst.runtime.dlang.check.operations.members import address_operand, dereferenced, sizeof_operand, sizeof_type
from kinst.runtime.dlang.check.reader import Reader
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.types.conversions import (
    are_compatible,
    arithmetic_type,
    is_arithmetic,
    is_castable,
    is_dynamic,
    is_integer,
    is_pointer,
    is_scalar,
    is_signed,
    is_string,
    is_string_like,
    is_void,
)
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import (
    CHAR_POINTER,
    INT,
    PTRDIFF,
    STRING,
    UINTPTR,
    ULONG,
    DType,
    Dynamic,
    String,
    bare,
)
from kinst.targets.c_types import Array, Function
from kinst.targets.c_types import size_of as bytes_of

_COMPARISONS: Final = frozenset({"<", "<=", ">", ">=", "==", "!="})
_LOGICAL: Final = frozenset({"&&", "||", "^^"})
_INTEGRAL: Final = frozenset({"&", "|", "^", "%"})


def incompatible(node: tree.Expression, symbol: str, left: Operand, right: Operand) -> DError:
    """The error for two operands of incompatible types."""
    text = f'operands have incompatible types: "{describe(left.type)}" {symbol} "{describe(right.type)}"'
    return DError("D_OP_INCOMPAT", text, node.span)


def require(fits: object, tag: str, node: tree.Expression, symbol: str, wanted: str) -> None:
    """Raise DError `tag` unless `fits`."""
    if not fits:
        raise DError(tag, f"operator {symbol} requires {wanted}", node.span)


# -- one operand ------------------------------------------------------------------------------------------------------


def unary(reader: Reader, node: tree.Unary) -> Operand:
    """`+ - ~ ! * &`. If the operand is a new self-> or this-> variable, it becomes an int64_t of value 0."""
    operand = reader.operand(node.operand, Use.ADDRESS if node.operator == "&" else Use.TOUCH)
    if operand.entry is not None:
        operand = reader.variables.assume_integer(operand)
    if operand.constant is not None and node.operator in ("-", "+", "~", "!"):
        return fold_unary(node.operator, operand)
    match node.operator:
        case "*":
            return dereferenced(node, operand)
        case "&":
            return address_operand(node, operand)
        case "!":
            require(is_scalar(operand.type), "D_OP_SCALAR", node, "!", "an operand of scalar type")
            return value_operand(program.Unary(INT, "!", operand.value))
        case "~":
            require(is_integer(operand.type), "D_OP_INT", node, "~", "an operand of integral type")
        case _:
            require(is_arithmetic(operand.type), "D_OP_ARITH", node, node.operator, "an operand of arithmetic type")
    if node.operator == "+":
        return value_operand(operand.value)
    return value_operand(program.Unary(operand.type, node.operator, operand.value))


def size_of_operand(reader: Reader, node: tree.SizeOf) -> Operand:
    """`sizeof (type)` and `sizeof expression`."""
    if isinstance(node.operand, tree.TypeName):
        return sizeof_type(reader, reader.type(node.operand), node.span)
    operand = reader.operand(node.operand, Use.TOUCH)
    if operand.entry is not None:
        operand = reader.variables.assume_integer(operand)
    return sizeof_operand(reader, operand, node.span)


def string_of(reader: Reader, node: tree.StringOf) -> Operand:
    """`stringof expression`. Raises DError D_STRINGOF_TYPE for a type that cannot be text."""
    operand = reader.operand(node.operand, Use.TOUCH)
    if operand.entry is not None:
        operand = reader.variables.assume_integer(operand)
    if not (is_scalar(operand.type) or is_pointer(operand.type) or is_string_like(operand.type)):
        text = f"cannot apply stringof to a value of type {describe(operand.type)}"
        raise DError("D_STRINGOF_TYPE", text, node.span)
    return value_operand(as_string(operand.value))


def cast_operand(reader: Reader, node: tree.Cast) -> Operand:
    """`(type)expression`. Raises DError D_CAST_INVAL for types that no cast connects."""
    kind = reader.type(node.type)
    operand = reader.operand(node.operand)
    if operand.constant is not None and is_integer(kind):
        return fold_cast(kind, operand)
    if not is_castable(kind, operand.type):
        text = f'invalid cast expression: "{describe(operand.type)}" to "{describe(kind)}"'
        raise DError("D_CAST_INVAL", text, node.span)
    if is_void(kind):
        return Operand(kind, operand.value, action=operand.action)
    return Operand(kind, cast(operand.value, kind))


# -- two operands -----------------------------------------------------------------------------------------------------


def binary(reader: Reader, node: tree.Binary) -> Operand:
    """Any binary operator. The tree of a long chain such as a + b + c is deep on its left, so that side is a loop and
    not a recursion."""
    chain: list[tree.Binary] = []
    first: tree.Expression = node
    while isinstance(first, tree.Binary):
        chain.append(first)
        first = first.left
    result = reader.operand(first)
    for link in reversed(chain):
        result = _joined(reader, link, result)
    return result


def _joined(reader: Reader, node: tree.Binary, left: Operand) -> Operand:
    symbol = node.operator
    right = _tag_of(reader, node, left) if symbol in _COMPARISONS else None
    if right is None:
        right = reader.operand(node.right)
    refuse_zero_divisor(node, symbol, right)
    if left.constant is not None and right.constant is not None:
        folded = fold_binary(symbol, left, right)
        if folded is not None:
            return folded
    if symbol in _COMPARISONS:
        return _compared(node, left, right)
    if symbol in ("+", "-"):
        return additive(node, symbol, left, right)
    return _others(node, symbol, left, right)


def _others(node: tree.Binary, symbol: str, left: Operand, right: Operand) -> Operand:
    if symbol == ",":
        return _comma(node, left, right)
    if symbol in _LOGICAL:
        fits = is_scalar(left.type) and is_scalar(right.type)
        require(fits, "D_OP_SCALAR", node, symbol, "operands of scalar type")
        return value_operand(program.Logical(INT, symbol, left.value, right.value))
    check_arithmetic(node, symbol, left, right)
    return arithmetic(node, symbol, left, right)


def check_arithmetic(node: tree.Expression, symbol: str, left: Operand, right: Operand) -> None:
    """Refuse operands that * / % & | ^ << >> do not take. Raises DError: D_OP_ARITH, D_OP_INT."""
    if symbol in ("*", "/"):
        fits = is_arithmetic(left.type) and is_arithmetic(right.type)
        require(fits, "D_OP_ARITH", node, symbol, "operands of arithmetic type")
    else:
        fits = is_integer(left.type) and is_integer(right.type)
        require(fits, "D_OP_INT", node, symbol, "operands of integral type")


def refuse_zero_divisor(node: tree.Expression, symbol: str, right: Operand) -> None:
    """Refuse a division by the constant 0, also of a value that is not constant. Raises DError D_DIV_ZERO."""
    if right.constant == 0 and symbol in ("/", "%", "/=", "%="):
        raise DError("D_DIV_ZERO", "expression contains division by zero", node.span)


def arithmetic(node: tree.Expression, symbol: str, left: Operand, right: Operand) -> Operand:
    """An operation on two integers. The result has the type of the larger one; a shift has the type of the left one."""
    if symbol in ("<<", ">>"):
        kind, second = left.type, right.value
    else:
        kind = arithmetic_type(left.type, right.type)
        second = as_word_of_sign(right.value, signed=is_signed(kind))
    first = as_word_of_sign(left.value, signed=is_signed(kind))
    return value_operand(computed(kind, symbol, first, second, node.span))


def _comma(node: tree.Binary, left: Operand, right: Operand) -> Operand:
    if left.action or right.action:
        raise DError("D_OP_ACT", "operator , operands cannot be actions", node.span)
    if is_dynamic(left.type) or is_dynamic(right.type):
        raise DError("D_OP_DYN", "operator , operands cannot be of dynamic type", node.span)
    return Operand(right.type, program.Comma(right.type, left.value, right.value))


# -- comparisons ------------------------------------------------------------------------------------------------------


def _tag_of(reader: Reader, node: tree.Binary, left: Operand) -> Operand | None:
    """In `enumeration == word`, the word may be one of that type's enumerators, which need not be in scope: so a
    program can compare with enumerators that the image's debug information has under no global name."""
    if not isinstance(node.right, tree.Name):
        return None
    operand = reader.inlines.tag_of(left.type, node.right.name)
    if operand is not None and reader.variables.is_known_global(node.right.name):
        text = f"{node.right.name} is both a {describe(left.type)} enum tag and a global variable"
        raise DError("D_IDENT_AMBIG", f"ambiguous use of operator {node.operator}: {text}", node.span)
    return operand


def _compared(node: tree.Binary, left: Operand, right: Operand) -> Operand:
    if left.action or right.action or not are_comparable(left, right):
        raise incompatible(node, node.operator, left, right)
    if is_string(left.type) or is_string(right.type):
        first, second, signed = as_string(left.value), as_string(right.value), False
    else:
        signed = (
            is_arithmetic(left.type) and is_arithmetic(right.type) and is_signed(arithmetic_type(left.type, right.type))
        )
        first, second = as_word_of_sign(left.value, signed=signed), as_word_of_sign(right.value, signed=signed)
    return value_operand(program.Binary(INT, node.operator, first, second, signed, node.span))


# -- sums of pointers -------------------------------------------------------------------------------------------------


def _is_countable(kind: DType) -> bool:
    """Whether it is a pointer to objects, with which one can count. A string is a pointer to char here."""
    target = target_of(kind)
    return target is not None and not is_void(target) and not isinstance(bare(target), Function)


def target_size(node: tree.Expression, symbol: str, kind: DType) -> int:
    """The size of what a pointer points to, in bytes, by which sums are scaled."""
    target = target_of(kind)
    size = None if target is None or isinstance(target, String | Dynamic) else bytes_of(target)
    if not size:
        text = f"operator {symbol} cannot be applied to a pointer to an incomplete type: {describe(kind)}"
        raise DError("D_OP_INCOMPLETE", text, node.span)
    return size


def scaled(node: tree.Expression, count: program.Expression, size: int) -> program.Expression:
    """`count` times the size of an element, in bytes."""
    if isinstance(count, program.Integer):
        return program.Integer(ULONG, (count.value * size) & ((1 << 64) - 1))
    count = as_word_of_sign(count, signed=False)
    if size == 1:
        return count
    return computed(ULONG, "*", count, program.Integer(ULONG, size), node.span)


def additive(node: tree.Expression, symbol: str, left: Operand, right: Operand) -> Operand:
    """`+` and `-`, of integers and of pointers."""
    if is_integer(left.type) and is_integer(right.type):
        return arithmetic(node, symbol, left, right)
    if _is_countable(left.type) and is_integer(right.type):
        return _moved(node, symbol, left, right)
    if symbol == "+" and is_integer(left.type) and _is_countable(right.type):
        return _moved(node, symbol, right, left)
    counts = symbol == "-" and _is_countable(left.type) and _is_countable(right.type)
    if counts and pointer_type(left, right) is not None:
        return _distance(node, left, right)
    raise incompatible(node, symbol, left, right)


def _moved(node: tree.Expression, symbol: str, pointer: Operand, count: Operand) -> Operand:
    """A pointer moved by a number of elements. An array stays an array, so it may be indexed again."""
    offset = scaled(node, count.value, target_size(node, symbol, pointer.type))
    kind = CHAR_POINTER if is_string(pointer.type) else pointer.type
    if isinstance(bare(kind), Array):
        moved = program.Load(kind, _offset(node, symbol, address_of(pointer), offset))
        return Operand(kind, moved, is_writable=pointer.is_writable)
    result = computed(kind, symbol, converted(pointer.value, kind), offset, node.span)
    return Operand(STRING, as_string(result)) if is_string(pointer.type) else Operand(kind, result)


def _offset(
    node: tree.Expression, symbol: str, address: program.Expression, offset: program.Expression
) -> program.Expression:
    if isinstance(offset, program.Integer):
        return shifted(address, offset.value if symbol == "+" else -offset.value, node.span)
    return computed(UINTPTR, symbol, address, offset, node.span)


def _distance(node: tree.Expression, left: Operand, right: Operand) -> Operand:
    size = target_size(node, "-", left.type)
    first, second = as_word_of_sign(left.value, signed=False), as_word_of_sign(right.value, signed=False)
    bytes_between = computed(PTRDIFF, "-", first, second, node.span)
    if size == 1:
        return value_operand(bytes_between)
    return value_operand(computed(PTRDIFF, "/", bytes_between, program.Integer(PTRDIFF, size), node.span))


# -- three operands ---------------------------------------------------------------------------------------------------


def conditional(reader: Reader, node: tree.Conditional) -> Operand:
    """`?:`. A chain a ? b : c ? d : ... is a loop and not a recursion. A constant condition selects one branch, and the
    other is not even checked."""
    links: list[tuple[tree.Conditional, Operand, Operand]] = []
    rest: tree.Expression = node
    while isinstance(rest, tree.Conditional):
        condition = reader.operand(rest.condition)
        if condition.constant is not None:
            rest = rest.then if condition.constant else rest.otherwise
            continue
        links.append((rest, condition, reader.operand(rest.then)))
        rest = rest.otherwise
    result = reader.operand(rest)
    for link, condition, then in reversed(links):
        result = _chosen(link, condition, then, result)
    return result


def _chosen(node: tree.Conditional, condition: Operand, then: Operand, otherwise: Operand) -> Operand:
    if not is_scalar(condition.type):
        raise DError("D_OP_SCALAR", "operator ?: expression must be of scalar type", node.span)
    if then.action or otherwise.action:
        raise DError("D_OP_ACT", "an action cannot be used in a conditional context", node.span)
    if is_dynamic(then.type) or is_dynamic(otherwise.type):
        raise DError("D_OP_DYN", "operator ?: operands cannot be of dynamic type", node.span)
    kind = _common_type(then, otherwise)
    if kind is None:
        raise DError("D_OP_INCOMPAT", "operator ?: operands must have compatible types", node.span)
    first, second = then.value, otherwise.value
    if is_string(kind):
        first, second = as_string(first), as_string(second)
    elif is_integer(kind):
        first = as_word_of_sign(first, signed=is_signed(kind))
        second = as_word_of_sign(second, signed=is_signed(kind))
    else:
        first, second = converted(first, kind), converted(second, kind)
    return value_operand(program.Conditional(kind, condition.value, first, second))


def _common_type(then: Operand, otherwise: Operand) -> DType | None:
    if are_compatible(then.type, otherwise.type):
        return then.type
    if is_integer(then.type) and is_integer(otherwise.type):
        return arithmetic_type(then.type, otherwise.type)
    both_text = is_string_like(then.type) and is_string_like(otherwise.type)
    if both_text and (is_string(then.type) or is_string(otherwise.type)):
        return STRING
    return pointer_type(then, otherwise)
