"""Types as messages and print() show them: in C's spelling, with the names of typedefs."""

from kinst.runtime.dlang.types.types import DType, Dynamic, String
from kinst.targets.c_types import (
    Aggregate,
    Array,
    CType,
    EnumType,
    Float,
    Function,
    Integer,
    Pointer,
    Qualified,
    Typedef,
    Void,
)


def describe(kind: DType, *, has_parameters: bool = True) -> str:
    """The spelling of a type: "char *", "int [3]", "int (*)(int, char)", "struct foo *", "string", "<DYN>".
    `has_parameters`: whether functions show theirs; libctf's never do ("int (*)()")."""
    if isinstance(kind, String):
        return "string"
    if isinstance(kind, Dynamic):
        return "<DYN>"
    return declare(kind, "", has_parameters=has_parameters)


def declare(kind: CType, name: str, *, has_parameters: bool = True) -> str:
    """The declaration of `name` with this type: "int (*name)[3]"; without a name the type itself."""
    inner, before = name, ""
    while True:
        match kind:
            case Pointer(target=target):
                inner = f"(*{inner})" if isinstance(target, Array | Function) else f"*{inner}"
                kind = target
            case Array(element=element, length=length):
                inner = f"{inner}[{'' if length is None else length}]"
                kind = element
            case Function(result=result):
                inner = f"{inner}({_parameters(kind) if has_parameters else ''})"
                kind = result
            case Qualified(target=Pointer() as target):
                inner = f"{_qualifiers(kind)} {inner}".rstrip()
                kind = target
            case Qualified(target=target):
                before += _qualifiers(kind) + " "
                kind = target
            case _:
                return f"{before}{_base(kind)} {inner}".rstrip()


def _parameters(kind: Function) -> str:
    if kind.parameters is None:
        return ""
    names = [describe(parameter) for parameter in kind.parameters] + ["..."] * kind.is_variadic
    return ", ".join(names) or "void"


def _qualifiers(kind: Qualified) -> str:
    return " ".join(["const"] * kind.is_const + ["volatile"] * kind.is_volatile)


def _base(kind: CType) -> str:
    match kind:
        case Typedef(name=name) | Integer(name=name) | Float(name=name):
            return name
        case EnumType(tag=tag):
            return f"enum {tag or '(anon)'}"
        case Aggregate(kind=which, tag=tag):
            return f"{which.value} {tag or '(anon)'}"
        case _:
            return "void" if isinstance(kind, Void) else "<none>"
