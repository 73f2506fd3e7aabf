"""C types as values that can be compared: a struct that refers to itself is not gone into twice."""

from kinst.targets.c_types import (
    Aggregate,
    Array,
    CType,
    Function,
    Member,
    Pointer,
    Qualified,
    Typedef,
    size_of,
    strip,
)


def shape(kind: CType, *, is_pointed: bool = False, by_bits: bool = False) -> object:
    """A type as tuples; a struct that something points to is its tag alone. `by_bits` is for formats that have no
    storage unit of a bit-field: then only its bits count."""
    match kind:
        case Pointer(target):
            return "*", shape(target, is_pointed=True, by_bits=by_bits)
        case Typedef(name, target) | Array(target, name):
            return name, shape(target, is_pointed=is_pointed, by_bits=by_bits)
        case Qualified(target, is_const, is_volatile):
            return is_const, is_volatile, shape(target, is_pointed=is_pointed, by_bits=by_bits)
        case Function(result, parameters, is_variadic):
            return (
                shape(result, by_bits=by_bits),
                [shape(one, by_bits=by_bits) for one in parameters or ()],
                is_variadic,
            )
        case Aggregate() as aggregate:
            return shape_of(aggregate, with_members=not (is_pointed and aggregate.tag), by_bits=by_bits)
        case plain:
            return plain


def shape_of(aggregate: Aggregate, *, with_members: bool, by_bits: bool) -> object:
    members = aggregate.members
    kind = None if by_bits and members is None else aggregate.kind  # FreeBSD's does not say what is declared
    head = (kind, aggregate.tag, members and (aggregate.size, aggregate.alignment))
    return head, with_members and [(one.name, *place(one, by_bits=by_bits)) for one in members or ()]


def place(member: Member, *, by_bits: bool) -> tuple[object, ...]:
    kind = shape(member.type, by_bits=by_bits)
    if not by_bits or isinstance(strip(member.type), Aggregate):
        return member.offset, member.bit_offset, member.bit_size, kind
    size = size_of(member.type)
    return 8 * member.offset + member.bit_offset, member.bit_size or (size and 8 * size), kind
