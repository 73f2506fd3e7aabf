"""The types that a program need not declare: C's basic types by their words, and the typedefs that D always has."""

from typing import Final

from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.syntax.words import ATTRIBUTES
from kinst.runtime.dlang.types import types
from kinst.runtime.dlang.types.types import DType
from kinst.targets.c_types import CType, Float, Typedef

FLOAT: Final = Float("float", 4)
DOUBLE: Final = Float("double", 8)
LONG_DOUBLE: Final = Float("long double", 16)

_STANDARD: Final = (
    types.INT8, types.INT16, types.INT32, types.INT64, types.UINT8, types.UINT16, types.UINT32, types.UINT64,
    types.SIZE, types.SSIZE, types.UINTPTR, types.INTPTR, types.PTRDIFF,
)  # fmt: skip
_SOLARIS: Final[dict[str, CType]] = {
    "uchar_t": types.UCHAR,
    "ushort_t": types.USHORT,
    "uint_t": types.UINT,
    "ulong_t": types.ULONG,
    "u_longlong_t": types.ULONGLONG,
    "id_t": types.INT,
    "pid_t": types.INT,
}
# Types of illumos' and FreeBSD's headers that scripts cast to. They are looked up last, after the image's types: a
# kernel's own definition is right for it, and firmware has none. A program may declare them itself.
_FAMILIAR: Final[dict[str, CType]] = {
    "caddr_t": types.CHAR_POINTER,
    "u_char": types.UCHAR,
    "u_short": types.USHORT,
    "u_int": types.UINT,
    "u_long": types.ULONG,
    "u_int8_t": types.UCHAR,
    "u_int16_t": types.USHORT,
    "u_int32_t": types.UINT,
    "u_int64_t": types.ULONG,
    "longlong_t": types.LONGLONG,
    "quad_t": types.LONG,
    "u_quad_t": types.ULONG,
    "intmax_t": types.LONG,
    "uintmax_t": types.ULONG,
    "uid_t": types.UINT,
    "gid_t": types.UINT,
    "zoneid_t": types.INT,
    "projid_t": types.INT,
    "taskid_t": types.INT,
    "processorid_t": types.INT,
    "psetid_t": types.INT,
    "lwpid_t": types.INT,
    "dev_t": types.ULONG,
    "ino_t": types.ULONG,
    "mode_t": types.UINT,
    "off_t": types.LONG,
    "offset_t": types.LONGLONG,
    "diskaddr_t": types.LONGLONG,
    "daddr_t": types.LONG,
    "time_t": types.LONG,
    "clock_t": types.LONG,
    "hrtime_t": types.LONGLONG,
    "socklen_t": types.UINT,
    "in_addr_t": types.UINT,
    "in_port_t": types.USHORT,
    "ipaddr_t": types.UINT,
}

ALWAYS: Final[dict[str, DType]] = {
    **{kind.name: kind for kind in _STANDARD},
    **{name: Typedef(name, target) for name, target in _SOLARIS.items()},
    "_Bool": types.BOOL,
    "string": types.STRING,
}
FAMILIAR: Final[dict[str, CType]] = {name: Typedef(name, target) for name, target in _FAMILIAR.items()}

_BY_WORDS: Final[dict[tuple[str, ...], DType]] = {
    ("void",): types.VOID,
    ("char",): types.CHAR,
    ("char", "signed"): types.SCHAR,
    ("char", "unsigned"): types.UCHAR,
    ("short",): types.SHORT,
    ("short", "signed"): types.SHORT,
    ("short", "unsigned"): types.USHORT,
    (): types.INT,
    ("signed",): types.INT,
    ("unsigned",): types.UINT,
    ("long",): types.LONG,
    ("long", "signed"): types.LONG,
    ("long", "unsigned"): types.ULONG,
    ("long", "long"): types.LONGLONG,
    ("long", "long", "signed"): types.LONGLONG,
    ("long", "long", "unsigned"): types.ULONGLONG,
    ("float",): FLOAT,
    ("double",): DOUBLE,
    ("double", "long"): LONG_DOUBLE,
    ("string",): types.STRING,
    ("_Bool",): types.BOOL,
}
_INTEGERS: Final = frozenset({"int", "char", "void"})
_FLOATS: Final = frozenset({"float", "double"})


def basic_type(node: tree.BasicType) -> DType:
    """The type that these words name. Raises DError: D_DECL_COMBO, D_DECL_CHARATTR, D_DECL_VOIDATTR, D_DECL_SIGNINT,
    D_DECL_LONGINT; D_UNKNOWN for words that go together but name no type ("long float")."""
    name = ""
    attributes: list[str] = []
    for word in node.words:
        if word in ATTRIBUTES:
            if attributes.count(word) > (word == "long"):
                raise DError("D_DECL_COMBO", f"invalid combination of types: {word} is repeated too often", node.span)
            attributes.append(word)
        elif name:
            raise DError("D_DECL_COMBO", f"invalid combination of types: {name} {word}", node.span)
        else:
            name = word
        _check_attributes(node, name, attributes)
    words = attributes if name == "int" or not name else [name, *attributes]
    kind = _BY_WORDS.get(tuple(sorted(words)))
    if kind is None:
        raise DError("D_UNKNOWN", f"failed to resolve type {' '.join(node.words)}: no such type", node.span)
    return kind


def _check_attributes(node: tree.BasicType, name: str, attributes: list[str]) -> None:
    """Refuse attributes that do not fit the type. Both may be incomplete, since `long char` may also be `char long`."""
    if not name or not attributes:
        return
    has_sign = "signed" in attributes or "unsigned" in attributes
    has_size = "short" in attributes or "long" in attributes
    if name == "char" and has_size:
        raise DError("D_DECL_CHARATTR", "short and long may not be used with type char", node.span)
    if name == "void":
        raise DError("D_DECL_VOIDATTR", "attributes may not be used with type void", node.span)
    if name not in _INTEGERS and has_sign:
        raise DError(
            "D_DECL_SIGNINT", f"signed and unsigned may only be used with integer types, not {name}", node.span
        )
    if name not in _INTEGERS | _FLOATS and "long" in attributes:
        raise DError(
            "D_DECL_LONGINT", f"long may only be used with integer and floating-point types, not {name}", node.span
        )
