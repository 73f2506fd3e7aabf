"""D's variables: the first assignment creates them, with the type of the value."""

from kinst.runtime.dlang import program
from kinst.runtime.dlang.builtins import ARRAYS, VARIABLES
from kinst.runtime.dlang.check.compatibility import is_accepted
from kinst.runtime.dlang.check.converting import as_string, as_word_of_sign, converted
from kinst.runtime.dlang.check.declared import NEW, entry_operand
from kinst.runtime.dlang.check.operands import DeclaredVariable, Operand, Use
from kinst.runtime.dlang.check.reader import Reader
from kinst.runtime.dlang.program import Scope
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError, Span
from kinst.runtime.dlang.types.conversions import (
    is_integer,
    is_pointer,
    is_signed,
    is_string,
    is_string_like,
    is_void,
    is_whole,
)
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import STRING, DType, Dynamic, bare
from kinst.targets.c_types import Array
from kinst.targets.nearest import nearest

ARRAY = Dynamic("associative array")  # an array's name without an index
_MOST_KEYS = 8  # DIF_DTR_NREGS, the registers of a tuple; aggregations keep their keys elsewhere
SCOPES = {"self": Scope.THREAD, "this": Scope.CLAUSE}


def undefined(reader: Reader, entry: DeclaredVariable, span: Span) -> DError:
    """The error for reading a variable that was never assigned."""
    own = (*VARIABLES, *ARRAYS) if entry.scope is Scope.GLOBAL else ()
    hint = nearest(entry.spelling, (*own, *reader.variables.assigned()))
    return DError("D_VAR_UNDEF", f"{entry.spelling} has not yet been declared or assigned{hint}", span)


def scoped(reader: Reader, node: tree.ScopedName, use: Use) -> Operand:
    """`self->name` and `this->name`. Naming one creates it; reading it requires an earlier assignment."""
    entry = scoped_entry(reader, node)
    if entry.is_array:
        if use is Use.READ:
            raise _wrong_count(entry, 0, node.span)
        return Operand(ARRAY, entry_operand(entry).value, is_lvalue=True, is_writable=True, is_variable=True)
    if entry.type is None and use is Use.READ:
        raise undefined(reader, entry, node.span)
    return entry_operand(entry)


def scoped_entry(reader: Reader, node: tree.ScopedName) -> DeclaredVariable:
    """The variable that `self->name` or `this->name` means; a new one if there is none."""
    scope = SCOPES[node.scope]
    return reader.variables.find(scope, node.name) or reader.variables.create(scope, node.name)


# -- elements of associative arrays -----------------------------------------------------------------------------------


def element(reader: Reader, entry: DeclaredVariable, node: tree.Index, use: Use) -> Operand:
    """`array[keys]`. The first use decides how many keys there are, and their types. Raises DError D_NOREG for more
    than the kernel's virtual machine has registers for."""
    if entry.type is None and use is Use.READ:
        raise undefined(reader, entry, node.span)
    if len(node.indexes) > _MOST_KEYS:
        text = f"{entry.spelling}[ ] has {len(node.indexes)} keys, an associative array at most {_MOST_KEYS}"
        raise DError("D_NOREG", f"insufficient tuple registers to generate code: {text}", node.span)
    operands = [reader.operand(index) for index in node.indexes]
    keys = entry.keys
    if keys is None:
        keys = tuple(key_type(operand.type, number, node.span) for number, operand in enumerate(operands, 1))
        entry.become_array(keys)
    check_keys(f"{entry.spelling}[ ]", keys, operands, node.span)
    return entry_operand(entry, tuple(map(key_value, operands, keys)))


def key_type(kind: DType, number: int, span: Span) -> DType:
    """The type of a key. Text of any kind becomes a string by value. Raises DError D_KEY_TYPE."""
    is_text = is_string_like(kind) and isinstance(bare(kind), Array)
    if is_void(kind) or kind in (NEW, ARRAY):
        raise DError("D_KEY_TYPE", f"{describe(kind)} expression may not be used as an index: key #{number}", span)
    if is_text:
        return STRING
    is_word = is_integer(kind) or (is_pointer(kind) and not isinstance(bare(kind), Array))
    if is_word or is_string(kind) or is_whole(kind):
        return kind
    raise DError("D_KEY_TYPE", f"{describe(kind)} expression may not be used as an index: key #{number}", span)


def check_keys(name: str, keys: tuple[DType, ...], operands: list[Operand], span: Span) -> None:
    """Compare a use of an array (or inline) with the types of its keys. Raises DError: D_PROTO_LEN, D_PROTO_ARG."""
    if len(operands) != len(keys):
        passed = f"{len(operands)} arg{'' if len(operands) == 1 else 's'} passed, {len(keys)} expected"
        raise DError("D_PROTO_LEN", f"{name} prototype mismatch: {passed}", span)
    for number, (operand, key) in enumerate(zip(operands, keys, strict=True), 1):
        if not is_accepted(key, operand):
            text = f"{name} key #{number} is incompatible with prototype:"
            raise DError(
                "D_PROTO_ARG", f"{text}\n\tprototype: {describe(key)}\n\t      key: {describe(operand.type)}", span
            )


def _wrong_count(entry: DeclaredVariable, passed: int, span: Span) -> DError:
    expected = len(entry.keys or ())
    text = f"{entry.spelling}[ ] prototype mismatch: {passed} args passed, {expected} expected"
    return DError("D_PROTO_LEN", text, span)


def key_value(operand: Operand, kind: DType) -> program.Expression:
    """A key as it is compared: integers as 64 bits, as in a tuple register of DIF, so that the same number is the same
    key in any width."""
    if is_string(kind):
        return as_string(operand.value)
    if is_integer(kind):
        return as_word_of_sign(operand.value, signed=is_signed(kind))
    return converted(operand.value, kind)
