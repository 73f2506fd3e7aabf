"""Assignments, `+=` and the like, `++` and `--`: which operands they take, and how a new variable gets its type."""

from typing import Final

from kinst.runtime.dlang import program
from kinst.runtime.dlang.check.action_order import note_destructive
from kinst.runtime.dlang.check.compatibility import is_accepted, pointer_type
from kinst.runtime.dlang.check.converting import as_word_of_sign, assigned
from kinst.runtime.dlang.check.declarations.translators import copied
from kinst.runtime.dlang.check.declarations.variables import undefined
from kinst.runtime.dlang.check.operands import Operand, Use, value_operand
from kinst.runtime.dlang.check.operations.operators import (
    check_arithmetic,
    incompatible,
    refuse_zero_divisor,
    require,
    scaled,
    target_size,
)
from kinst.runtime.dlang.check.reader import Reader
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.types.conversions import (
    are_compatible,
    is_aggregate,
    is_dynamic,
    is_integer,
    is_pointer,
    is_scalar,
    is_signed,
    is_sizeless_pointer,
    is_string,
)
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import DType, bare
from kinst.targets.c_types import Array, Function

# Where an argument is depends on the probe: in a register, on the stack, or computed from several.
_IN_REGISTERS: Final = ": write the register that holds it, as regs[R_...]"
_HINTS: Final = dict.fromkeys(("args", *(f"arg{number}" for number in range(10))), _IN_REGISTERS)
_STEPS: Final = {"++x": ("+", False), "--x": ("-", False), "x++": ("+", True), "x--": ("-", True)}


def is_step(symbol: str) -> bool:
    """Whether a unary operator changes its operand."""
    return symbol in _STEPS


def step(reader: Reader, node: tree.Unary) -> Operand:
    """++ and --. A new variable is an int64_t."""
    operator, gives_old = _STEPS[node.operator]
    symbol = operator * 2
    operand = reader.variables.assume_integer(reader.operand(node.operand, Use.CREATE))
    require(is_scalar(operand.type), "D_OP_SCALAR", node, symbol, "operand of scalar type")
    require(not is_sizeless_pointer(operand.type), "D_OP_VFPTR", node, symbol, "an operand of known size")
    target = _target(reader, node, symbol, operand)
    amount = target_size(node, symbol, operand.type) if is_pointer(operand.type) else 1
    kind = operand.type
    one = program.Integer(kind, amount)
    return value_operand(program.Update(kind, target, operator, one, gives_old, is_signed(kind), node.span))


def assignment(reader: Reader, node: tree.Assignment) -> Operand:
    """An assignment: `=`, or `+=`, `-=`, `*=` and the like."""
    if node.operator != "=":
        return _compound(reader, node)
    if isinstance(node.target, tree.AggregationName):
        text = f"@{node.target.name} is assigned in a statement of its own"
        raise DError("D_AGG_FUNC", text, node.span)
    # The left side is checked first, so that in `x = x + 1` the x on the right is the new variable: without an earlier
    # assignment that is D_VAR_UNDEF, and not an unknown name.
    left = reader.operand(node.target, Use.CREATE)
    right = reader.operand(node.value)
    kind = right.type
    if right.translation is not None and not right.translation.is_pointer:
        kind = right.translation.translator.output
    if right.action or is_dynamic(kind):
        raise incompatible(node, "=", left, right)
    left = reader.variables.give(left, kind)
    _refuse_array(node, left)
    if right.translation is not None:
        return _translated(reader, node, left, right)
    if not is_accepted(left.type, right):
        raise incompatible(node, "=", left, right)
    target = _target(reader, node, "=", left)
    value = program.Assign(target.type, target, assigned(right.value, left.type))
    if left.memory is None:
        return _assigned(left, value)
    return _assigned(left, program.Comma(left.type, value, left.value))  # the result is the stored text


def _assigned(left: Operand, value: program.Expression) -> Operand:
    return Operand(left.type, value, is_writable=left.is_writable)


def _refuse_array(node: tree.Assignment, left: Operand) -> None:
    if not is_string(left.type) and isinstance(bare(left.type), Array | Function):
        text = f'operator = may not be applied to operand of type "{describe(left.type)}"'
        raise DError("D_OP_ARRFUN", text, node.span)


def _translated(reader: Reader, node: tree.Assignment, left: Operand, right: Operand) -> Operand:
    """A struct assigned from a translation has the members that the translator defines."""
    translation = right.translation
    assert translation is not None
    fits = not translation.is_pointer and are_compatible(left.type, translation.translator.aggregate)
    if not fits or not is_aggregate(left.type):
        raise incompatible(node, "=", left, right)
    target = _target(reader, node, "=", left)
    return _assigned(left, program.Assign(left.type, target, copied(reader, translation, node.span)))


def _target(
    reader: Reader, node: tree.Expression, symbol: str, operand: Operand
) -> program.Read | program.Load | program.Builtin:
    """The target of an assignment: an lvalue that is a variable of D, or is in D's own memory, or a register."""
    target = operand.target
    if isinstance(target, program.Builtin) and target.name == "regs":
        note_destructive(reader.state, "regs[]", node.span)
        return target
    if not operand.is_lvalue:
        raise DError("D_OP_LVAL", f"operator {symbol} requires modifiable lvalue as an operand", node.span)
    if not operand.is_writable or not isinstance(target, program.Read | program.Load):
        hint = _HINTS.get(target.name, "") if isinstance(target, program.Builtin) else ""
        raise DError("D_OP_WRITE", f"operator {symbol} can only be applied to a writable variable{hint}", node.span)
    return target


# -- with an operator -------------------------------------------------------------------------------------------------


def _compound(reader: Reader, node: tree.Assignment) -> Operand:
    """`x += y` and the like read x, so it must have been assigned before."""
    symbol = node.operator.removesuffix("=")
    left = _compound_target(reader, node)
    right = reader.operand(node.value)
    refuse_zero_divisor(node, symbol, right)
    if symbol in ("+", "-"):
        _check_sum(node, left, right)
    else:
        check_arithmetic(node, symbol, left, right)
    target = _target(reader, node, node.operator, left)
    value, signed = _amount(node, symbol, left, right), is_signed(left.type)
    update = program.Update(left.type, target, symbol, value, gives_old=False, is_signed=signed, span=node.span)
    return _assigned(left, update)


def _compound_target(reader: Reader, node: tree.Assignment) -> Operand:
    left = reader.operand(node.target, Use.CREATE)
    entry = left.entry
    if entry is not None and entry.type is None:
        raise undefined(reader, entry, node.target.span)
    return left


def _check_sum(node: tree.Assignment, left: Operand, right: Operand) -> None:
    if is_string(left.type) or is_string(right.type):
        raise incompatible(node, node.operator, left, right)
    if is_integer(left.type) and is_integer(right.type):
        return
    if not is_pointer(left.type) or is_sizeless_pointer(left.type):
        raise DError("D_OP_VFPTR", f"operator {node.operator} requires left-hand operand of known size", node.span)
    if not is_integer(right.type) and pointer_type(left, right) is None:
        raise incompatible(node, node.operator, left, right)


def _amount(node: tree.Assignment, symbol: str, left: Operand, right: Operand) -> program.Expression:
    kind: DType = left.type
    if is_pointer(kind):
        if not is_integer(right.type):
            return as_word_of_sign(right.value, signed=False)
        return scaled(node, right.value, target_size(node, node.operator, kind))
    if symbol in ("<<", ">>"):
        return right.value
    return as_word_of_sign(right.value, signed=is_signed(kind))
