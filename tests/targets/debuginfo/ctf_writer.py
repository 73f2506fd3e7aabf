"""CTF written by the formats' documents: ctf(5) of illumos (version 2), sys/ctf.h of FreeBSD (version 3), and ctf.h of
binutils for the header with which GNU's libctf reads version 2's types."""

import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kinst.targets.c_types import (
    Aggregate,
    AggregateKind,
    Array,
    CType,
    EnumType,
    Float,
    Function,
    Integer,
    IntegerKind,
    Member,
    Pointer,
    Qualified,
    Typedef,
    Void,
    size_of,
    strip,
)

SUN2, SUN3, GNU1 = (0xCFF1, 2), (0xCFF1, 3), (0xDFF2, 1)
INTEGER, FLOAT, POINTER, ARRAY, FUNCTION, STRUCT, UNION, ENUM, FORWARD, TYPEDEF, VOLATILE, CONST = range(1, 13)


@dataclass
class Writer:
    """One dictionary. Types are numbered when they are first needed; a struct before what it has."""

    form: tuple[int, int] = SUN2
    parent: str = ""
    parent_label: str = ""
    labels: Sequence[str] = ()
    has_functions: bool = True  # else their results are in their place
    strings: bytearray = field(default_factory=lambda: bytearray(b"\0"))
    records: list[bytes] = field(default_factory=list)
    numbers: dict[object, int] = field(default_factory=dict)
    objects: bytes = b""
    functions: bytes = b""

    @property
    def is_wide(self) -> bool:
        return self.form == SUN3

    def name(self, text: str) -> int:
        if not text:
            return 0
        self.strings += text.encode() + b"\0"
        return len(self.strings) - len(text) - 1

    def id(self, number: int) -> bytes:
        return struct.pack("<I" if self.is_wide else "<H", number)

    def info(self, kind: int, count: int) -> bytes:
        return self.id(kind << 26 | 1 << 25 | count if self.is_wide else kind << 11 | 1 << 10 | count)

    def head(self, name: str, kind: int, count: int, value: int, *, is_size: bool = False) -> bytes:
        start, most = (
            struct.pack("<I", self.name(name)) + self.info(kind, count),
            0xFFFFFFFE if self.is_wide else 0xFFFE,
        )
        if is_size and value > most:
            return start + self.id(most + 1) + struct.pack("<II", value >> 32, value & 0xFFFFFFFF)
        return start + self.id(value)

    def reserve(self) -> int:
        self.records.append(b"")
        return len(self.records) | ((1 << 31 if self.is_wide else 1 << 15) if self.parent else 0)

    def put(self, number: int, record: bytes) -> int:
        self.records[(number & (0x7FFFFFFF if self.is_wide else 0x7FFF)) - 1] = record
        return number

    def type(self, kind: CType) -> int:
        if isinstance(kind, Function) and not self.has_functions:
            kind = kind.result
        key = id(kind) if isinstance(kind, Aggregate) else kind
        if key not in self.numbers:
            if isinstance(kind, Aggregate):
                self.numbers[key] = self.reserve()
                self.put(self.numbers[key], self.aggregate(kind))
            else:
                record = self.record(kind)
                self.numbers[key] = self.put(self.reserve(), record)
        return self.numbers[key]

    def record(self, kind: CType) -> bytes:
        match kind:
            case Void():
                return self.head("void", INTEGER, 0, 0) + struct.pack("<I", 1 << 24)
            case Integer(name, size):
                return self.integer(kind, name, size, 8 * size)
            case Float(name, size):
                return self.head(name, FLOAT, 0, size, is_size=True) + struct.pack("<I", 2 << 24 | 8 * size)
            case Pointer(target):
                return self.head("", POINTER, 0, self.type(target))
            case Typedef(name, target):
                return self.head(name, TYPEDEF, 0, self.type(target))
            case Qualified(target, is_const):
                return self.head("", CONST if is_const else VOLATILE, 0, self.type(target))
            case _:
                return self.compound(kind)

    def compound(self, kind: CType) -> bytes:
        match kind:
            case Array(element, length):
                index = self.type(Integer("unsigned long", 8, is_signed=False))
                numbers = self.id(self.type(element)) + self.id(index)
                return self.head("", ARRAY, 0, 0) + numbers + struct.pack("<I", length or 0)
            case EnumType(tag, base, values):
                rows = b"".join(struct.pack("<Ii", self.name(name), value) for name, value in values)
                return self.head(tag, ENUM, len(values), base.size, is_size=True) + rows
            case Function():
                words = self.prototype(kind)
                fill = b"\0\0" * (len(words) % 4 // 2)
                return self.head("", FUNCTION, len(words) // len(self.id(0)), self.type(kind.result)) + words + fill
            case _:
                raise AssertionError(kind)

    def prototype(self, kind: Function) -> bytes:
        numbers = [self.type(one) for one in kind.parameters or ()] + [0] * kind.is_variadic
        return b"".join(map(self.id, numbers))

    def integer(self, kind: Integer, name: str, size: int, bits: int) -> bytes:
        flags = {IntegerKind.CHARACTER: 2, IntegerKind.BOOLEAN: 4}.get(kind.kind, 0) | kind.is_signed
        return self.head(name, INTEGER, 0, size, is_size=True) + struct.pack("<I", flags << 24 | bits)

    def aggregate(self, kind: Aggregate) -> bytes:
        which = STRUCT if kind.kind is AggregateKind.STRUCT else UNION
        if kind.members is None:
            return self.head(kind.tag, FORWARD, 0, 0)  # as ctfconvert: it does not say which
        head = self.head(kind.tag, which, len(kind.members), kind.size, is_size=True)
        return head + b"".join(self.member(member, kind.size) for member in kind.members)

    def member(self, member: Member, size: int) -> bytes:
        number, offset = struct.pack("<I", self.name(member.name)), 8 * member.offset + member.bit_offset
        kind = self.id(self.field(member) if member.bit_size is not None else self.type(member.type))
        if size < (1 << 29 if self.is_wide else 1 << 13):
            return number + kind + struct.pack("<I" if self.is_wide else "<H", offset)
        return (
            number + kind + (b"" if self.is_wide else b"\0\0") + struct.pack("<II", offset >> 32, offset & 0xFFFFFFFF)
        )

    def field(self, member: Member) -> int:
        """An integer of the bit-field's name and of as many bits as it has."""
        plain, bits = strip(member.type), member.bit_size or 0
        whole = self.type(member.type)
        if not isinstance(plain, Integer) or bits == 8 * (size_of(plain) or 0):
            return whole
        size = next(one for one in (1, 2, 4, 8) if 8 * one >= bits)
        return self.put(self.reserve(), self.integer(plain, plain.name, size, bits))

    def describe(self, symbols: Sequence[tuple[str, str]], type_of: Callable[[str, str], CType | None]) -> None:
        """The sections of objects and functions, of (STT_, name) in the order of the symbol table."""
        for what, name in symbols:
            kind = type_of(what, name)
            if what == "STT_OBJECT":
                self.objects += self.id(0 if kind is None else self.type(kind))
            elif isinstance(kind, Function):
                words = self.prototype(kind)
                self.functions += self.info(FUNCTION, len(words) // len(self.id(0))) + self.id(self.type(kind.result))
                self.functions += words
            else:
                self.functions += self.id(0)

    def data(self, *, is_compressed: bool = False) -> bytes:
        names = [self.name(self.parent_label), self.name(self.parent)]
        labels = b"".join(struct.pack("<II", self.name(one), len(self.records)) for one in self.labels)
        functions = self.functions + b"\0" * (-(len(self.objects) + len(self.functions)) % 4)
        parts = [labels, self.objects, functions, *([b""] if self.form == GNU1 else []), b"".join(self.records)]
        starts = [sum(map(len, parts[:row])) for row in range(len(parts) + 1)]
        words = [*names, *starts, len(self.strings)]
        body = b"".join(parts) + bytes(self.strings)
        head = struct.pack(f"<HBB{len(words)}I", *self.form, is_compressed, *words)
        return head + (zlib.compress(body) if is_compressed else body)
