"""Calls: subroutines in expressions, and calls such as stack() that can only be keys of aggregations or arguments of
actions."""

from collections.abc import Iterable
from typing import Final

from kinst.runtime.dlang import program
from kinst.runtime.dlang.check import prototypes
from kinst.runtime.dlang.check.action_order import note_destructive
from kinst.runtime.dlang.check.checking import Checking
from kinst.runtime.dlang.check.converting import cast
from kinst.runtime.dlang.check.prototypes import STRUCTURE, TEXT, Prototype
from kinst.runtime.dlang.check.signatures import ACTIONS, AGGREGATING
from kinst.runtime.dlang.check.stacks import is_key_call, key_call
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.types.conversions import (
    is_aggregate,
    is_dynamic,
    is_pointer,
    is_scalar,
    is_string_like,
    is_void,
    is_whole,
)
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import (
    CHAR,
    CHAR_POINTER,
    INT,
    INT64,
    SIZE,
    STRING,
    UINT,
    UINT16,
    UINT32,
    UINT64,
    UINTPTR,
    ULONG,
    VOID,
    VOID_POINTER,
    DType,
    Dynamic,
    bare,
)
from kinst.runtime.dlang.versions import is_later
from kinst.targets.c_types import Array, Pointer, Typedef
from kinst.targets.nearest import nearest

DESTRUCTIVE: Final = frozenset({"copyout", "copyoutstr"})
_POSITIONS: Final = frozenset({"index", "rindex", "substr"})  # their int parameters get all 64 bits
DYNAMIC: Final = Dynamic("dynamic")  # an aggregation, a translation: nothing takes a value of this type

_LOCK: Final = Prototype((STRUCTURE,), INT)  # kmutex_t, krwlock_t, sx
_PATH: Final = Prototype((TEXT,), STRING)
_PAIR: Final = Prototype((TEXT, TEXT), STRING)
_FIND: Final = Prototype((TEXT, TEXT, INT), INT, required=2)
_CHARACTER: Final = Prototype((TEXT, CHAR), STRING)
_DEVICE: Final = Typedef("dev_t", ULONG)
SUBROUTINES: Final[dict[str, Prototype]] = {
    "alloca": Prototype((SIZE,), VOID_POINTER),
    "basename": _PATH,
    "bcopy": Prototype((VOID_POINTER, VOID_POINTER, SIZE)),
    "cleanpath": _PATH,
    "copyin": Prototype((UINTPTR, SIZE), VOID_POINTER),
    "copyinstr": Prototype((UINTPTR, SIZE), STRING, required=1),
    "copyinto": Prototype((UINTPTR, SIZE, VOID_POINTER)),
    "copyout": Prototype((VOID_POINTER, UINTPTR, SIZE)),
    "copyoutstr": Prototype((CHAR_POINTER, UINTPTR, SIZE)),
    "ddi_pathname": Prototype((VOID_POINTER, INT64), STRING),
    "dirname": _PATH,
    "getf": Prototype((INT,), VOID_POINTER),
    "getmajor": Prototype((_DEVICE,), Typedef("major_t", UINT)),
    "getminor": Prototype((_DEVICE,), Typedef("minor_t", UINT)),
    "htonl": Prototype((UINT32,), UINT32),
    "htonll": Prototype((UINT64,), UINT64),
    "htons": Prototype((UINT16,), UINT16),
    "index": _FIND,
    "inet_ntoa": Prototype((Pointer(Typedef("ipaddr_t", UINT)),), STRING),
    "inet_ntoa6": Prototype((VOID_POINTER,), STRING),
    "inet_ntop": Prototype((INT, VOID_POINTER), STRING),
    "json": _PAIR,
    "lltostr": Prototype((INT64, INT), STRING, required=1),
    "memref": Prototype((VOID_POINTER, SIZE), Pointer(UINTPTR)),
    "memstr": Prototype((VOID_POINTER, CHAR, SIZE), STRING),
    "msgdsize": Prototype((STRUCTURE,), SIZE),
    "msgsize": Prototype((STRUCTURE,), SIZE),
    "mutex_owned": _LOCK,
    "mutex_owner": Prototype((STRUCTURE,), VOID_POINTER),
    "mutex_type_adaptive": _LOCK,
    "mutex_type_spin": _LOCK,
    "ntohl": Prototype((UINT32,), UINT32),
    "ntohll": Prototype((UINT64,), UINT64),
    "ntohs": Prototype((UINT16,), UINT16),
    "progenyof": Prototype((Typedef("pid_t", INT),), INT),
    "rand": Prototype((), INT),
    "rindex": _FIND,
    "rw_iswriter": _LOCK,
    "rw_read_held": _LOCK,
    "rw_write_held": _LOCK,
    "speculation": Prototype((), INT),
    "strchr": _CHARACTER,
    "strjoin": _PAIR,
    "strlen": Prototype((TEXT,), SIZE),
    "strrchr": _CHARACTER,
    "strstr": _PAIR,
    "strtok": _PAIR,
    "strtoll": Prototype((TEXT, INT), INT64, required=1),
    "substr": Prototype((TEXT, INT, INT), STRING, required=2),
    "sx_exclusive_held": _LOCK,
    "sx_isexclusive": _LOCK,
    "sx_shared_held": _LOCK,
    "tolower": _PATH,
    "toupper": _PATH,
}


def call(node: tree.Call, checking: Checking) -> program.Expression:
    """A call in an expression. Raises DError: D_FUNC_UNDEF or D_FUNC_IDKIND for something that is not a function,
    D_CG_EXPR for actions and aggregating functions, which have no value, D_PROTO_LEN and D_PROTO_ARG, and D_ACT_SPEC
    for copyout() after speculate()."""
    prototype = SUBROUTINES.get(node.function)
    if prototype is None or not is_function(node.function, checking):
        raise _no_subroutine(node, checking)
    values = [checking.expression(argument) for argument in node.arguments]
    prototypes.check(f"{node.function}( )", prototype, values, node.span)
    if node.function in DESTRUCTIVE:
        note_destructive(checking.state, node.function, node.span)
    parameters = (parameter for parameter in prototype.parameters if parameter is not None)
    passed = [_passed(node.function, value, to, checking) for value, to in zip(values, parameters, strict=False)]
    return program.Call(prototype.result, node.function, tuple(passed))


def _passed(function: str, value: program.Expression, to: DType, checking: Checking) -> program.Expression:
    """An argument as it is passed. Text is passed by value, except for NULL, which strtok() distinguishes from the
    empty string."""
    if not is_string_like(to):
        return checking.convert(value, INT64) if to == INT and function in _POSITIONS else cast(value, to)
    return value if prototypes.is_zero(value) else checking.convert(value, STRING)


def check_valueless(node: tree.Call, checking: Checking) -> None:
    """Check the arguments of an action or aggregating function that is used as a value: errors in them are reported
    before that one. Raises DError: D_PROTO_LEN, D_PROTO_ARG."""
    prototype = ACTIONS.get(node.function) or AGGREGATING[node.function]
    values = [value(argument, checking) for argument in node.arguments]
    prototypes.check(f"{node.function}( )", prototype, values, node.span)


def undefined_aggregation(node: tree.AggregationName, known: Iterable[str]) -> DError:
    """The error for an aggregation that nothing was aggregated into."""
    hint = nearest(f"@{node.name}", (f"@{name}" for name in known))
    return DError("D_IDENT_UNDEF", f"failed to resolve @{node.name}: Unknown aggregation name{hint}", node.span)


def _no_subroutine(node: tree.Call, checking: Checking) -> DError:
    name = node.function
    for kind, known in (("action", ACTIONS), ("aggregating function", AGGREGATING)):
        if name in known and is_function(name, checking):
            text = f"{kind} {name}( ) may not be called from a D expression (D program context required)"
            return DError("D_CG_EXPR", text, node.span)
    check_is_function(node, checking)
    return _undefined(node, checking)


def is_function(name: str, checking: Checking) -> bool:
    """Whether the program knows the name as a subroutine, an action or an aggregating function."""
    is_known = name in SUBROUTINES or name in ACTIONS or name in AGGREGATING
    return is_known and not is_later(name, checking.context.options)


def check_is_function(node: tree.Call, checking: Checking) -> None:
    """Raises DError for a call of something else: D_FUNC_IDKIND of a variable or constant, else D_FUNC_UNDEF."""
    name = node.function
    if is_function(name, checking):
        return
    if name.startswith("@") or checking.reaches(tree.Name(node.span, name)):
        raise DError("D_FUNC_IDKIND", f"'{name}' may not be referenced as a function", node.span)
    raise _undefined(node, checking)


def _undefined(node: tree.Call, checking: Checking) -> DError:
    known = (name for name in (*SUBROUTINES, *ACTIONS, *AGGREGATING) if is_function(name, checking))
    hint = nearest(node.function, known)
    return DError("D_FUNC_UNDEF", f"undefined function name: {node.function}{hint}", node.span)


# -- arguments of actions, keys ---------------------------------------------------------------------------------------


def value(node: tree.Expression, checking: Checking) -> program.Expression:
    """An argument of an action. Something without a value keeps its type, so that the action can raise the error with
    its own tag: `VOID` for actions and casts to void, a `Dynamic` for aggregations and translations. stack(), sym() and
    the like become a `StackKey` or `SymbolKey`."""
    match node:
        case tree.AggregationName():
            return program.Builtin(DYNAMIC, f"@{node.name}")
        case tree.Call(function=name) if not is_function(name, checking):
            return checking.expression(node)
        case tree.Call(function=name) if is_key_call(name):
            return key_call(node, checking)
        case tree.Call(function=name) if name in ACTIONS or name in AGGREGATING:
            check_valueless(node, checking)
            return program.Call(VOID, name, ())
        case tree.Cast() if is_void(checking.type(node.type)):
            checking.expression(node)
            return program.Call(VOID, "", ())
        case _:
            return _expression(node, checking)


def _expression(node: tree.Expression, checking: Checking) -> program.Expression:
    try:
        return checking.expression(node)
    except DError as error:
        if error.tag == "D_CG_DYN" and error.span == node.span:
            return program.Builtin(DYNAMIC, "")
        raise


def key(node: tree.Expression, number: int, checking: Checking) -> program.Expression:
    """A key of an aggregation. Raises DError: D_KEY_TYPE for a type that no key can have."""
    found = value(node, checking)
    is_incomplete = is_aggregate(found.type) and not is_whole(found.type)
    if is_void(found.type) or found.type == DYNAMIC or is_incomplete or _is_other_array(found.type):
        text = f"{describe(found.type)} expression may not be used as aggregation index: key #{number}"
        raise DError("D_KEY_TYPE", text, node.span)
    return checking.convert(found, STRING) if isinstance(bare(found.type), Array) else found


def _is_other_array(kind: DType) -> bool:
    return isinstance(bare(kind), Array) and not is_string_like(kind)


def is_number(kind: DType) -> bool:
    """Whether it is an integer or a pointer: neither text nor something without a C type."""
    return is_scalar(kind) and not is_dynamic(kind)


def is_address(kind: DType) -> bool:
    """Whether it is a pointer and not an array: besides integers, only pointers may be passed as addresses."""
    return is_pointer(kind) and not isinstance(bare(kind), Array)
