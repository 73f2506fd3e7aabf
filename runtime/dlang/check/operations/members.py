"""Things in memory: members of structs, the targets of pointers, addresses and sizes."""

from dataclasses import replace

from kinst.runtime.dlang import program
from kinst.runtime.dlang.check.compatibility import target_of
from kinst.runtime.dlang.check.converting import converted, retyped
from kinst.runtime.dlang.check.declarations.translators import translated_member
from kinst.runtime.dlang.check.memory import c_type, in_memory
from kinst.runtime.dlang.check.operands import Operand, address_of, constant_operand, shifted
from kinst.runtime.dlang.check.reader import Reader
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError, Span
from kinst.runtime.dlang.types.conversions import is_dynamic, is_string, is_void, size_of
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import CHAR_POINTER, INT, SIZE, DType, bare, embedded_string
from kinst.targets.c_types import Aggregate, Function, Pointer
from kinst.targets.c_types import size_of as bytes_of
from kinst.targets.nearest import nearest

# -- pointers ---------------------------------------------------------------------------------------------------------


def dereferenced(node: tree.Expression, operand: Operand) -> Operand:
    """`*operand`. Raises DError: D_DEREF_NONPTR, D_DEREF_VOID, D_DEREF_FUNC."""
    if operand.translation is not None and operand.translation.is_pointer:
        return operand.translation.dereferenced(operand)
    target = target_of(operand.type)
    if target is None:
        raise DError("D_DEREF_NONPTR", f"cannot dereference non-pointer type {describe(operand.type)}", node.span)
    if is_void(target):
        raise DError("D_DEREF_VOID", "cannot dereference pointer to void", node.span)
    if isinstance(bare(target), Function):
        raise DError("D_DEREF_FUNC", "cannot dereference pointer to function", node.span)
    is_text = is_string(operand.type)
    address = converted(operand.value, CHAR_POINTER) if is_text else address_of(operand)
    through_pointer = isinstance(bare(operand.type), Pointer)
    if through_pointer:
        address = operand.value
    is_writable = operand.is_writable or (through_pointer and _may_lead_to_scratch(address))
    return replace(in_memory(target, address), is_writable=is_writable)


def _may_lead_to_scratch(address: program.Expression) -> bool:
    """Whether an address may be in scratch memory, to which alone a program may store. Addresses that come from the
    probe's arguments and other builtin variables are the guest's: assigning there is D_OP_WRITE. Others are known only
    when the program runs: a store outside scratch memory is a fault."""
    match address:
        case program.Builtin():
            return False
        case program.Load(address=inner) | program.Convert(operand=inner) | program.Comma(right=inner):
            return _may_lead_to_scratch(inner)
        case program.Binary(left=left, right=right):
            return _may_lead_to_scratch(left) and _may_lead_to_scratch(right)
        case program.Conditional(then=then, otherwise=otherwise):
            return _may_lead_to_scratch(then) or _may_lead_to_scratch(otherwise)
        case _:
            return True


def address_operand(node: tree.Unary, operand: Operand) -> Operand:
    """`&operand`. Things in memory have an address, D's variables have none. Raises DError: D_ADDROF_VAR,
    D_ADDROF_LVAL, D_ADDROF_BITFIELD."""
    if operand.is_variable or is_dynamic(operand.type):
        raise DError("D_ADDROF_VAR", "cannot take address of dynamic variable", node.span)
    if not operand.is_lvalue:
        raise DError("D_ADDROF_LVAL", "unacceptable operand for unary & operator", node.span)
    target = operand.target
    if isinstance(target, program.Load) and target.bits is not None:
        raise DError("D_ADDROF_BITFIELD", "cannot take address of bit-field", node.span)
    size = None if operand.memory is None else bytes_of(c_type(operand.memory.type))
    kind = Pointer(c_type(target.type) if size is None else embedded_string(size))
    address = target.address if isinstance(target, program.Load) else target
    return Operand(kind, retyped(address, kind))


# -- members ----------------------------------------------------------------------------------------------------------


def member(reader: Reader, node: tree.MemberAccess) -> Operand:
    """`base.name` and `base->name`. Raises DError: D_TYPE_MEMBER, D_OP_PTR, D_OP_SOU, and those of a translation."""
    base = reader.operand(node.base)
    if base.translation is not None:
        return translated_member(reader, node, base.translation)
    aggregate = _complete(reader, node, _aggregate(node, base.type))
    found = aggregate.find(node.name)
    if found is None:
        hint = nearest(node.name, aggregate.names())
        raise DError("D_TYPE_MEMBER", f"{node.name} is not a member of {describe(aggregate)}{hint}", node.span)
    start = base.value if node.through_pointer else address_of(base)
    bits = None if found.bit_size is None else (found.bit_offset, found.bit_size)
    result = in_memory(found.type, shifted(start, found.offset, node.span), bits)
    return replace(
        result,
        is_lvalue=result.is_lvalue and (node.through_pointer or base.is_lvalue),
        is_writable=base.is_writable or (node.through_pointer and _may_lead_to_scratch(start)),
    )


def _aggregate(node: tree.MemberAccess, kind: DType) -> Aggregate:
    plain = bare(kind)
    if node.through_pointer:
        if not isinstance(plain, Pointer):
            raise DError("D_OP_PTR", "operator -> must be applied to a pointer", node.span)
        plain = bare(plain.target)
    if isinstance(plain, Aggregate):
        return plain
    text = f'pointer to type "{describe(plain)}"' if node.through_pointer else f'type "{describe(plain)}"'
    symbol = "->" if node.through_pointer else "."
    raise DError("D_OP_SOU", f"operator {symbol} cannot be applied to {text}: it is not a struct or union", node.span)


def _complete(reader: Reader, node: tree.MemberAccess, aggregate: Aggregate) -> Aggregate:
    """The definition of a struct. One that is only declared, in this unit of the debug information, may be defined in
    another."""
    if aggregate.members is not None:
        return aggregate
    name = f"{aggregate.kind.value} {aggregate.tag}"
    found = bare(reader.scope.lookup(name) or aggregate) if aggregate.tag else aggregate
    if isinstance(found, Aggregate) and found.members is not None:
        return found
    symbol = "->" if node.through_pointer else "."
    text = f"operator {symbol} cannot be applied to a forward declaration: no {name} definition is available"
    raise DError("D_OP_INCOMPLETE", text, node.span)


# -- sizes ------------------------------------------------------------------------------------------------------------


def sizeof_type(reader: Reader, kind: DType, span: Span) -> Operand:
    """`sizeof (type)`, a size_t. Raises DError D_SIZEOF_TYPE for a type of unknown size."""
    return _size(size_of(kind, reader.context.options.number("strsize")), span)


def sizeof_operand(reader: Reader, operand: Operand, span: Span) -> Operand:
    """`sizeof expression`: for a symbol its size in the image, for a string literal its size with the NUL."""
    if isinstance(operand.target, program.Load) and operand.target.bits is not None:
        raise DError("D_SIZEOF_BITFIELD", "cannot apply sizeof to a bit-field", span)
    if operand.size is not None:
        return _size(operand.size, span)
    kind = operand.target.type if operand.memory is not None else operand.type
    return sizeof_type(reader, kind, span)


def _size(size: int, span: Span) -> Operand:
    if size == 0:
        raise DError("D_SIZEOF_TYPE", "cannot apply sizeof to an operand of unknown size", span)
    return constant_operand(SIZE, size)


def offset_of(reader: Reader, node: tree.OffsetOf) -> Operand:
    """`offsetof(type, member)`: bytes, a size_t. Raises DError: D_OFFSETOF_TYPE, D_OFFSETOF_BITFIELD."""
    plain = bare(reader.type(node.type))
    if not isinstance(plain, Aggregate) or plain.members is None:
        raise DError("D_OFFSETOF_TYPE", "offsetof operand must be a struct or union type", node.span)
    found = plain.find(node.member)
    if found is None:
        hint = nearest(node.member, plain.names())
        text = f"failed to determine offset of {node.member}: it is not a member of {describe(plain)}{hint}"
        raise DError("D_UNKNOWN", text, node.span)
    if found.bit_size is not None:
        raise DError("D_OFFSETOF_BITFIELD", f"cannot take offset of a bit-field: {node.member}", node.span)
    return constant_operand(INT, found.offset)
