"""Functions on typed values: casts, the struct around a member, lists. Names and arguments are those of drgn's."""

from collections.abc import Callable, Container, Iterator
from typing import Final

from kinst.runtime.typed.arithmetic import wrapped
from kinst.runtime.typed.errors import NoNameError, OperandError, RangeError
from kinst.runtime.typed.objects import Object
from kinst.runtime.typed.scalars import Place
from kinst.runtime.typed.types import Type, place_of
from kinst.runtime.typed.view import ADDRESSES, View, is_integral
from kinst.targets.c_types import Array, CType, Float, Function, Pointer, strip

_MOST: Final = 1 << 20  # steps of a walk: memory that is damaged may have no end of them
AnyType = Type | str


def kind_of(view: View, given: AnyType) -> CType:
    """The type of a C text: "struct file *", "unsigned int", "char [16]". Raises NoNameError: there is none."""
    if isinstance(given, Type):
        return given.kind
    found = view.type_of(given)
    if found is None:
        obstacle = view.types.obstacle()
        raise NoNameError(f"{given}: the image has no such type{f': {obstacle}' if obstacle else ''}")
    return found


def cast(to: AnyType, value: Object) -> Object:
    """C's (to)value, of numbers and addresses. What has no type, or is a struct, union or array in memory, is taken for
    a value of another type at the same address.

    Raises:
        NoNameError: the image has no such type.
        OperandError: C has no such cast.
    """
    view, place = value._view_, value._place_
    kind, path = kind_of(view, to), f"({to}){place.path}"
    plain, source = strip(kind), strip(value._kind_)
    if isinstance(plain, Pointer) and isinstance(source, Array | Function):
        return value._made_(kind, value._decayed_()[1], path)
    if not is_integral(source) and not isinstance(source, Float):
        if place.address is None or isinstance(source, Function):
            raise OperandError(f"{path}: {value.type_} cannot be cast")
        return Object(view, kind, Place(path, place.address))
    if not is_integral(plain) and not isinstance(plain, Float):
        raise OperandError(f"{path}: {value.type_} cannot be cast to that")
    found = value._number_()
    if isinstance(found, complex):
        raise OperandError(f"{path}: complex numbers are shown, and not computed with")
    return value._made_(kind, wrapped(found, kind), path)


def container_of(pointer: Object, to: AnyType, member: str) -> Object:
    """A pointer to the struct that has `member`, at which `pointer` points: Linux' macro. The member may be one of a
    member: "se.run_node".

    Raises:
        NoMemberError: the struct has no such member.
    """
    view = pointer._view_
    kind = kind_of(view, to)
    offset = Type(view, kind).offset(member)
    path = f"container_of({pointer._place_.path}, {to}, {member})"
    return pointer._made_(Pointer(kind), (pointer._decayed_()[1] - offset) % ADDRESSES, path)


def sizeof(value: Object | Type) -> int:
    """The size in bytes of a value, or of the values of a type. Raises OperandError: it has none."""
    return (value.type_ if isinstance(value, Object) else value).size


def offsetof(kind: Type, member: str) -> int:
    """The offset of a member in bytes; members of members with dots."""
    return kind.offset(member)


def follow(first: Object, member: str, *, limit: int = _MOST) -> Iterator[Object]:
    """A pointer to a struct, and those that follow by one of its members: `follow(first, "next")`. They end with NULL,
    or where the first comes again; members of members with dots.

    Raises:
        RangeError: there are more than `limit`, or they go round without coming back to the first.
        MemoryFaultError: one points to no memory.
    """
    view, (kind, start), path = first._view_, first._decayed_(), first._place_.path
    place, name = place_of(view, kind.target, member), f'follow({path}, "{member}")'
    if not start:
        return

    def following(address: int, at: str) -> int:
        return _loaded(view, address + place.offset, f"{at}->{member}")

    yield first._made_(kind, start, path)
    for count, address in enumerate(_chain(following(start, path), following, name, limit, (0, start)), 1):
        yield first._made_(kind, address, f"{name}[{count}]")


def list_for_each_entry(of: AnyType, head: Object, member: str, *, limit: int = _MOST) -> Iterator[Object]:
    """Pointers to the structs in a list of Linux': `list_for_each_entry("struct task_struct", init_task.tasks,
    "tasks")`. `head` is the struct list_head that the list begins with, or a pointer to it.

    Raises:
        RangeError: there are more than `limit`, or the list does not come back to its head.
        MemoryFaultError: a link points to no memory.
    """
    view, start, path = head._view_, _pointed(head), head._place_.path
    kind = kind_of(view, of)
    offset = Type(view, kind).offset(member)
    name = f"list_for_each_entry({of}, {path}, {member})"
    first = _loaded(view, start, f"{path}.next")
    links = _chain(first, lambda link, at: _loaded(view, link, f"{at}->next"), name, limit, (start,))
    for count, link in enumerate(links):
        yield head._made_(Pointer(kind), (link - offset) % ADDRESSES, f"{name}[{count}]")


def hlist_for_each_entry(of: AnyType, head: Object, member: str, *, limit: int = _MOST) -> Iterator[Object]:
    """Pointers to the structs in a list of Linux' hash tables, which ends with NULL, or with an odd number where it
    is a struct hlist_nulls_head. `head` is the struct hlist_head, or a pointer to it.

    Raises:
        RangeError: there are more than `limit`, or the list goes round.
        MemoryFaultError: a link points to no memory.
    """
    view, start, path = head._view_, _pointed(head), head._place_.path
    kind = kind_of(view, of)
    offset = Type(view, kind).offset(member)
    name = f"hlist_for_each_entry({of}, {path}, {member})"
    first = _loaded(view, start, f"{path}.first")
    links = _chain(first, lambda link, at: _loaded(view, link, f"{at}->next"), name, limit, (0,))
    for count, link in enumerate(links):
        if link & 1:
            return
        yield head._made_(Pointer(kind), (link - offset) % ADDRESSES, f"{name}[{count}]")


def _pointed(head: Object) -> int:
    """The address of a head, or of that to which a pointer points."""
    if isinstance(strip(head._kind_), Pointer):
        return int(head)
    if head.address_ is None:
        raise OperandError(f"{head._place_.path}: was read, and is in no memory: a list begins at its head's address")
    return head.address_


def _loaded(view: View, address: int, path: str) -> int:
    return int.from_bytes(view.read(address, 8, path), "little")


def _chain(
    first: int, following: Callable[[int, str], int], name: str, limit: int, ends: Container[int]
) -> Iterator[int]:
    """Addresses, each of which leads to the next. One that comes a second time would lead round for ever."""
    address, seen = first, set[int]()
    while address not in ends:
        if address in seen:
            raise RangeError(f"{name}: comes to {address:#x} again, and not to its end")
        if len(seen) >= limit:
            raise RangeError(f"{name}: has more than {limit:,} elements")
        seen.add(address)
        yield address
        address = following(address, f"{name}[{len(seen) - 1}]")
