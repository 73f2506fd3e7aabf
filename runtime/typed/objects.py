"""Typed values of a guest: `init_task.comm`, `file.f_path.dentry.d_name.name`. Names are those of drgn's objects.

A value is a type with an address (a reference, which is read whenever it is asked) or with bytes or a number (which
stay as they are). What is ours ends in an underscore, so that all other names are the members of C's structs and
unions.
"""

from collections.abc import Iterator
from typing import Any, Final, NoReturn

from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.typed.arithmetic import Number
from kinst.runtime.typed.errors import MemoryFaultError, NoMemberError, OperandError, RangeError
from kinst.runtime.typed.formatting import formatted
from kinst.runtime.typed.operators import Operators
from kinst.runtime.typed.scalars import Bits, Place, bytes_for, number
from kinst.runtime.typed.types import Type, aggregate_of, member_of
from kinst.runtime.typed.view import ADDRESSES, View, is_integral, is_text, onward
from kinst.targets.c_types import (
    Aggregate,
    Array,
    CType,
    EnumType,
    Float,
    Function,
    Integer,
    IntegerKind,
    Pointer,
    Void,
    strip,
)
from kinst.targets.errors import UsageError

_STRING: Final = 4096  # bytes of a text that are read, if nobody says how many


class Object(Operators):
    """A C value in a guest: a type, and an address or bytes. An attribute is a member of the struct or union, or of the
    one that a pointer points to; names of ours end in an underscore. Memory is read when a value is asked for.

    `int(x)`, `x + 1`, `x == 3`, `x & y`, `p[2]`, `p - q`, `len(array)` and `for x in array` do as C does: operands are
    promoted, results wrap, pointers move by the size of what they point to. `print(x)` shows it as gdb does.

    Raises:
        MemoryFaultError: there is no memory at its address; with the way that led there.
        NoMemberError: the struct has no such member; also an AttributeError.
        OperandError: the type does not allow that; also a TypeError.
        RangeError: an index is outside of an array; also an IndexError.
    """

    __slots__ = ("_kind_", "_place_", "_view_")
    _kind_: CType
    _place_: Place
    _view_: View

    def __init__(self, view: View, kind: CType, place: Place) -> None:
        """Made by `Objects`."""
        for name, value in (("_view_", view), ("_kind_", kind), ("_place_", place)):
            object.__setattr__(self, name, value)

    # -- what it is ---------------------------------------------------------------------------------------------------

    @property
    def address_(self) -> int | None:
        """The address that it is read from; None: it is a value that stays as it is."""
        return self._place_.address

    @property
    def type_(self) -> Type:
        """Its type."""
        return Type(self._view_, self._kind_)

    def value_(self) -> Any:
        """As a value of Python's: int (also of pointers and enumerations), bool, float (the nearest, of a long double),
        a list of an array's elements, a dict of a struct's or union's members."""
        match strip(self._kind_):
            case Integer(kind=IntegerKind.BOOLEAN):
                found = self._number_()
                return bool(found) if found in (0, 1) else found
            case Array():
                return [one.value_() for one in self.read_()]
            case Aggregate():
                whole = self.read_()
                return {name: whole.member_(name).value_() for name in aggregate_of(self._view_, self._kind_).names()}
            case Function():
                return self._place_.address
            case _:
                return self._number_()

    def bytes_(self) -> bytes:
        """Its bytes in memory."""
        place, size = self._place_, self.type_.size
        if place.bits is not None:
            raise OperandError(f"{place.path}: a bit-field is less than a byte")
        if place.address is not None:
            return self._view_.read(place.address, size, place.path)
        if isinstance(place.data, bytes):
            return place.data
        if isinstance(place.data, float):
            raise OperandError(f"{place.path}: was computed, and has no bytes")
        return (place.data % (1 << 8 * size)).to_bytes(size, "little")

    def read_(self) -> "Object":
        """The same value as it is now, which stays so: a reference's memory is read once."""
        place = self._place_
        if place.address is None:
            return self
        data = self._number_() if place.bits is not None else self.bytes_()
        return Object(self._view_, self._kind_, Place(place.path, data=_real(data)))

    def address_of_(self) -> "Object":
        """A pointer to it: C's &x. Raises OperandError: it is a bit-field, or in no memory."""
        place = self._place_
        if place.address is None or place.bits is not None:
            raise OperandError(f"{place.path}: has no address")
        return Object(self._view_, Pointer(self._kind_), Place(f"&{place.path}", data=place.address))

    def string_(self, limit: int = _STRING) -> str:
        r"""The text of an array of characters, or that a pointer to characters points to, up to its NUL and at most
        `limit` bytes. Bytes that are not UTF-8 become \xNN. Where there are no members, `string` is the same."""
        return self._text_(limit).decode("utf-8", "backslashreplace")

    @property
    def enumerator_(self) -> str | None:
        """The name of an enumeration's value; None: the value has none."""
        plain = strip(self._kind_)
        if not isinstance(plain, EnumType):
            raise OperandError(f"{self._place_.path}: is {describe(self._kind_)}, no enumeration")
        value = self._number_()
        return next((name for name, one in plain.enumerators if one == value), None)

    @property
    def symbol_(self) -> str:
        """What is at a pointer's address, or at a function's, as dtrace shows it: module`function+0x1c."""
        return self._view_.describe(self._decayed_()[1])

    def member_(self, name: str) -> "Object":
        """A member, also one whose name Python or this class has for something else: `x.member_("class")`."""
        target = strip(self._kind_)
        if isinstance(target, Pointer):
            member = member_of(self._view_, target.target, name)
            step, address = f"->{name}", (self._address_() + member.offset) % ADDRESSES
            place = Place(onward(self._place_.path, step), address, bits=_bits(member.bit_offset, member.bit_size))
            return Object(self._view_, member.type, place)
        if not isinstance(target, Aggregate):
            raise NoMemberError(f"{self._place_.path}: {describe(self._kind_)} has no members, and no {name}")
        member = member_of(self._view_, self._kind_, name)
        return self._part_(member.type, member.offset, f".{name}", _bits(member.bit_offset, member.bit_size))

    def format_(self, elements: int = 200) -> str:
        """As gdb's print shows it, with at most so many elements of an array or characters of a text."""
        return formatted(self, elements)

    # -- Python's words for it ----------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        """A member; `string` of what has no members."""
        if name[:1] == name[-1:] == "_":  # what the interpreter asks for, and IPython
            raise AttributeError(name)
        plain = strip(self._kind_)
        if name == "string" and isinstance(plain, Array | Pointer) and is_text(_element(plain)):
            return self.string_
        return self.member_(name)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise UsageError(f"{self._place_.path}.{name}: typed values are for reading: `memory.write` writes bytes")

    def __setitem__(self, index: object, value: object) -> NoReturn:
        raise UsageError(f"{self._place_.path}[{index}]: typed values are for reading: `memory.write` writes bytes")

    def __dir__(self) -> list[str]:
        kind = strip(self._kind_)
        kind = kind.target if isinstance(kind, Pointer) else kind
        own = [name for name in super().__dir__() if not name.startswith("_")]
        try:
            return [*aggregate_of(self._view_, kind).names(), *own]
        except UsageError:
            return own

    def __str__(self) -> str:
        return self.format_()

    def __repr__(self) -> str:
        place, kind = self._place_, describe(self._kind_)
        plain = strip(self._kind_)
        is_text_array = isinstance(plain, Array) and plain.length is not None and is_text(plain.element)
        if is_text_array or isinstance(plain, Integer | Float | EnumType | Pointer):
            try:
                text = self.format_()
            except MemoryFaultError as error:
                return f"<{error}>"
            return text if text.startswith("(") else f"({kind}) {text}"
        return f"<{kind}>" if place.address is None else f"<{kind} at {place.address:#x}>"

    def __format__(self, form: str) -> str:
        return format(self.value_(), form) if form else str(self)

    def __bool__(self) -> bool:
        match strip(self._kind_):
            case Array() | Function():
                return True
            case _:
                return bool(self._number_())

    def __index__(self) -> int:
        if not is_integral(self._kind_):
            raise OperandError(f"{self._place_.path}: {describe(self._kind_)} is no integer")
        found = self._number_()
        assert isinstance(found, int), "its type is integral"
        return found

    def __int__(self) -> int:
        found = self._number_()
        return int(found.real if isinstance(found, complex) else found)

    def __float__(self) -> float:
        return float(_real(self._number_()))

    def __len__(self) -> int:
        plain = strip(self._kind_)
        if not isinstance(plain, Array) or plain.length is None:
            raise OperandError(f"{self._place_.path}: {describe(self._kind_)} has no length")
        return plain.length

    def __iter__(self) -> Iterator["Object"]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: "int | slice | Object") -> "Object":
        """An element of an array, or of what a pointer points to; with a slice a shorter array."""
        kind = strip(self._kind_)
        if not isinstance(kind, Array | Pointer):
            raise OperandError(f"{self._place_.path}: {describe(self._kind_)} has no elements")
        size, path = self._step_(kind), self._place_.path
        start, length = _range(index, kind, path)
        step = f"[{start}]" if length is None else f"[{start}:{start + length}]"
        part = _element(kind) if length is None else Array(_element(kind), length)
        if isinstance(kind, Pointer):
            return Object(self._view_, part, Place(onward(path, step), (self._address_() + start * size) % ADDRESSES))
        return self._part_(part, start * size, step)

    # -- for what is beside it ----------------------------------------------------------------------------------------

    def _number_(self) -> Number | complex:
        """The number that it is. Raises OperandError: it is none."""
        place, kind = self._place_, strip(self._kind_)
        if not isinstance(kind, Integer | Float | EnumType | Pointer):
            raise OperandError(f"{place.path}: {describe(self._kind_)} is no number{_hint(kind)}")
        if not isinstance(place.data, bytes):
            return place.data
        start, size = bytes_for(kind, place.bits)
        if place.address is not None:
            data = self._view_.read(place.address + start, size, place.path)
        else:
            data = place.data[start : start + size]
        return number(data, kind, place.bits, is_x87=self._view_.is_x87)

    def _made_(self, kind: CType, value: Number, path: str) -> "Object":
        """A number beside it."""
        return Object(self._view_, kind, Place(path, data=value))

    def _address_(self) -> int:
        """What a pointer holds."""
        found = self._number_()
        assert isinstance(found, int), "it is a pointer"
        return found

    def _text_(self, limit: int) -> bytes:
        """The bytes of a text. Raises OperandError: it is none."""
        plain, place = strip(self._kind_), self._place_
        if not isinstance(plain, Array | Pointer) or not is_text(_element(plain)):
            raise OperandError(f"{place.path}: {describe(self._kind_)} is no text: cast it to char *")
        if isinstance(plain, Pointer):
            return self._view_.string(self._address_(), limit, f"*{place.path}")
        limit = limit if plain.length is None else min(limit, plain.length)
        if place.address is not None:
            return self._view_.string(place.address, limit, place.path)
        assert isinstance(place.data, bytes), "an array is no number"
        return place.data[:limit].partition(b"\0")[0]

    def _part_(self, kind: CType, offset: int, step: str, bits: Bits | None = None) -> "Object":
        """A part of it."""
        place = self._place_
        path = onward(place.path, step)
        if place.address is not None:
            return Object(self._view_, kind, Place(path, (place.address + offset) % ADDRESSES, bits=bits))
        assert isinstance(place.data, bytes), "what has parts is no number"
        size = self._view_.size_of(kind)
        data = place.data[offset:] if size is None else place.data[offset : offset + size]
        if size is not None and len(data) < size:
            raise RangeError(f"{path}: is not in the bytes that were read: a flexible array is read where it is")
        return Object(self._view_, kind, Place(path, data=data, bits=bits))

    def _step_(self, kind: Array | Pointer) -> int:
        """How far its elements are apart. Raises OperandError: it is not known."""
        size = self._view_.size_of(_element(kind))
        if not size:
            raise OperandError(f"{self._place_.path}: {describe(_element(kind))} has no size: cast it")
        return size


def _element(kind: Array | Pointer) -> CType:
    return kind.target if isinstance(kind, Pointer) else kind.element


def _bits(offset: int, size: int | None) -> Bits | None:
    return None if size is None else (offset, size)


def _real(value: bytes | Number | complex) -> Any:
    if isinstance(value, complex):
        raise OperandError(f"{value}: complex numbers are shown, and not computed with")
    return value


def _hint(kind: CType) -> str:
    return ": debug information does not say what it is: cast it" if isinstance(kind, Void) else ""


def _range(index: "int | slice | Object", kind: Array | Pointer, path: str) -> tuple[int, int | None]:
    """The first element that an index or a slice means, and how many of a slice. Raises RangeError: an array has not as
    many. Arrays of no known length have any, and so has [0], with which old structs end."""
    known = kind.length if isinstance(kind, Array) else None
    if not isinstance(index, slice):
        start, length, end = int(index), None, int(index) + 1
    else:
        start = 0 if index.start is None else int(index.start)
        stop = known if index.stop is None else int(index.stop)
        if stop is None or index.step not in (None, 1):
            raise RangeError(f"{path}: a slice has an end, and no step")
        length, end = max(stop - start, 0), stop
    if isinstance(kind, Array) and (start < 0 or (known and end > known)):
        shown = f"{start}" if length is None else f"{start}:{end}"
        raise RangeError(f"{path}[{shown}]: is outside of {describe(kind)}; (x + 0)[{start}] is not bounded")
    return start, length
