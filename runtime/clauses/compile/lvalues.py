"""Lvalues as Python: variables, elements of associative arrays, memory. How they are read and stored.

A scalar variable has 64 bits whatever its type (docs/facts/dlang.md, Numbers): a store into it wraps to 64 bits and
never truncates, and a read has the full 64-bit range. Memory has the size of its type, and a bit-field its width.

D evaluates the right side of an assignment first, then the keys of an associative array on the left. In an update the
keys come first, since the old value is needed. Each is evaluated once, which matters for x[i++] += 1.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from kinst.runtime.clauses.compile.arithmetic import Operation, combine, fit, twice
from kinst.runtime.clauses.compile.code import (
    SIGNED,
    UNSIGNED,
    Code,
    Generator,
    Scalar,
    is_reference,
    is_string,
    scalar_of,
    word_of,
)
from kinst.runtime.clauses.variables import is_block, set_cell
from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import Scope, Variable
from kinst.runtime.dlang.types.types import DType, bare
from kinst.runtime.trap.trap import Firing
from kinst.targets.c_types import Aggregate, Array, size_of
from kinst.targets.values import dataclass


class Lvalue(Protocol):
    """Something that can be read and assigned. One that was made for an update must be read before it is stored: `read`
    evaluates its address or key, and `store` reuses that."""

    def read(self) -> str:
        """The text of the value."""
        ...

    def store(self, value: str) -> str:
        """Text that stores `value` and whose own value is `value`."""
        ...

    def statement(self, value: str) -> str:
        """A statement that stores `value`."""
        ...


@dataclass(frozen=True, slots=True)
class _Global:
    """A global variable: the attribute of a cell."""

    cell: str
    setter: str

    def read(self) -> str:
        return f"{self.cell}.value"

    def store(self, value: str) -> str:
        return f"{self.setter}({self.cell}, {value})"

    def statement(self, value: str) -> str:
        return f"{self.cell}.value = {value}"


@dataclass(frozen=True, slots=True)
class _Local:
    """A clause-local variable: an item in the CPU's list."""

    frame: str
    slot: int
    setter: str

    def read(self) -> str:
        return f"{self.frame}[{self.slot}]"

    def store(self, value: str) -> str:
        return f"{self.setter}({self.frame}, {self.slot}, {value})"

    def statement(self, value: str) -> str:
        return f"{self.frame}[{self.slot}] = {value}"


@dataclass(frozen=True, slots=True)
class _Dynamic:
    """An element of an array, or a thread-local variable: an item of a dictionary. `first` is the key's text where it
    is evaluated, `key` its text afterwards."""

    getter: str
    storer: str
    cpu: str
    first: str
    key: str

    def read(self) -> str:
        return f"{self.getter}({self.first}, 0)"

    def store(self, value: str) -> str:
        return f"{self.storer}({value}, {self.key}, {self.cpu})"

    statement = store


@dataclass(frozen=True, slots=True)
class _Register:
    """A register of the CPU: an item of regs[]."""

    value: str
    setter: str
    index: int

    def read(self) -> str:
        return self.value

    def store(self, value: str) -> str:
        return f"{self.setter}(firing, {self.index}, {value})"

    statement = store


@dataclass(frozen=True, slots=True)
class _Memory:
    """A scalar or bit-field in memory."""

    load: Callable[[str], str]  # text of an address -> text of the value
    storer: str
    size: int
    bits: tuple[int, int] | None
    first: str
    address: str

    def read(self) -> str:
        return self.load(self.first)

    def store(self, value: str) -> str:
        return f"{self.storer}({value}, {self.address}, {self.size}, {self.bits})"

    statement = store


@dataclass(frozen=True, slots=True)
class _Block:
    """The bytes of a struct, union or array, copied from an address. An array of characters may be copied from a
    string."""

    copier: str
    address: str
    size: int

    def read(self) -> str:
        return self.address

    def store(self, value: str) -> str:
        return f"{self.copier}({value}, {self.address}, {self.size})"

    statement = store


def set_item(frame: list[Any], slot: int, value: Any) -> Any:
    """Assign to a clause-local variable, in an expression; the result is `value`."""
    frame[slot] = value
    return value


# -- reading ----------------------------------------------------------------------------------------------------------


def read(generator: Generator, node: program.Read) -> Code:
    """The value of a variable. A struct or array is allocated when the variable is first used."""
    variable = node.variable
    if is_block(variable.type):
        return Code(*_block_address(generator, node), UNSIGNED.high, 1)
    place, depth = _variable(generator, node, is_update=False)
    return _ranged(place.read(), variable.type, depth)


def _block_address(generator: Generator, node: program.Read) -> tuple[str, int]:
    variable, variables = node.variable, generator.state.variables
    if not _is_dynamic(variable):
        place, _ = _variable(generator, node, is_update=False)
        return place.read(), 0
    block = generator.bind(f"block_{variable.name}", variables.dynamic(variable).block)
    cpu = generator.local("cpu")
    return f"{block}({_key(generator, variable, node.keys).text}, {cpu})", 0


def _ranged(text: str, kind: DType, depth: int) -> Code:
    """The value of a variable: any 64 bits, whatever its type."""
    if scalar_of(kind) is None:
        return Code(text, depth=depth, is_nullable=is_string(kind))
    word = word_of(kind)
    return Code(text, word.low, word.high, depth)


def load(generator: Generator, node: program.Load) -> Code:
    """The value at an address; for a struct, union or array the address itself."""
    address = fit(generator, generator.value(node.address), UNSIGNED)
    if is_reference(node.type):
        return address
    if is_string(node.type):
        return string_at(generator, address, generator.strsize)
    scalar = scalar_of(node.type) or UNSIGNED
    word = generator.bind("load", generator.environment.memory.load)
    return _loaded(generator, f"{word}({address.text}, {scalar.size})", scalar, node.bits, address.depth + 1)


def string_at(generator: Generator, address: Code, limit: int) -> Code:
    """The string at an address, at most `limit` bytes of it; NULL for address 0."""
    string = generator.bind("string", generator.environment.memory.string)
    name, first = twice(generator, address)
    return Code(f"({string}({name}, {limit}) if {first} else 0)", depth=address.depth + 1, is_nullable=True)


def _loaded(generator: Generator, text: str, scalar: Scalar, bits: tuple[int, int] | None, depth: int) -> Code:
    """A loaded unsigned word as a value: the bits of a bit-field, sign-extended if the type is signed."""
    if bits is None:
        return _extended(generator, Code(text, 0, (1 << 8 * scalar.size) - 1, depth), 8 * scalar.size, scalar)
    shift, width = bits
    shifted = f"({text} >> {shift} & {(1 << width) - 1})"
    return _extended(generator, Code(shifted, 0, (1 << width) - 1, depth + 1), width, scalar)


def _extended(generator: Generator, code: Code, width: int, scalar: Scalar) -> Code:
    if not scalar.is_signed:
        return code
    if width == 64:
        return fit(generator, code, SIGNED)
    half = 1 << width - 1
    return Code(f"(({code.text} ^ {half}) - {half})", -half, half - 1, code.depth + 2)


# -- lvalues ----------------------------------------------------------------------------------------------------------


def _is_dynamic(variable: Variable) -> bool:
    return variable.keys is not None or variable.scope is Scope.THREAD


def _variable(generator: Generator, node: program.Read, *, is_update: bool) -> tuple[Lvalue, int]:
    """The lvalue of a variable, and the depth of its key's text."""
    variable, variables = node.variable, generator.state.variables
    if _is_dynamic(variable):
        return _element(generator, node, is_update=is_update)
    if variable.scope is Scope.CLAUSE:
        slot = variables.slot(variable)
        return _Local(generator.local("this"), slot, generator.bind("set_item", set_item)), 0
    cell = generator.bind(f"global_{variable.name}", variables.cell(variable))
    return _Global(cell, generator.bind("set_cell", set_cell)), 0


def _element(generator: Generator, node: program.Read, *, is_update: bool) -> tuple[Lvalue, int]:
    variable = node.variable
    dynamic = generator.state.variables.dynamic(variable)
    key = _key(generator, variable, node.keys)
    first, later = _once(generator, key, is_update=is_update)
    getter = generator.bind(f"get_{variable.name}", dynamic.cells.get)
    storer = generator.bind(f"store_{variable.name}", dynamic.store)
    return _Dynamic(getter, storer, generator.local("cpu"), first, later), key.depth + 1


def _once(generator: Generator, code: Code, *, is_update: bool) -> tuple[str, str]:
    """The text that evaluates a key or an address, and the text for its second use in an update."""
    if not is_update or code.text.isidentifier() or code.constant is not None:
        return code.text, code.text
    name = generator.temporary()
    return f"({name} := {code.text})", name


def _key(generator: Generator, variable: Variable, keys: tuple[program.Expression, ...]) -> Code:
    """The key of a dynamic variable: the thread, if it is thread-local, and the array's keys. A single one is not made
    a tuple, which would cost more than the access."""
    parts = [Code(generator.local("thread"))] if variable.scope is Scope.THREAD else []
    for kind, key in zip(variable.keys or (), keys, strict=True):
        parts.append(_key_part(generator, kind, key))
    if len(parts) == 1:
        return parts[0]
    return Code("(" + ", ".join(part.text for part in parts) + ")", 0, 0, max(part.depth for part in parts) + 1)


def _key_part(generator: Generator, kind: DType, key: program.Expression) -> Code:
    if is_string(kind):
        return generator.present(key)
    if is_reference(kind):
        return content(generator, key)
    return fit(generator, generator.value(key), word_of(kind))


def content(generator: Generator, node: program.Expression) -> Code:
    """The bytes of a struct, union or array."""
    address = generator.value(node)
    read = generator.bind("read", generator.environment.memory.read)
    return Code(f"{read}({address.text}, {size_of_reference(node.type)})", 0, 0, address.depth + 1)


def _memory(generator: Generator, node: program.Load, *, is_update: bool) -> tuple[Lvalue, int]:
    address = fit(generator, generator.value(node.address), UNSIGNED)
    first, later = _once(generator, address, is_update=is_update)
    scalar = scalar_of(node.type)
    if scalar is None or is_reference(node.type):
        return _Block(_copier(generator), address.text, size_of_reference(node.type)), address.depth + 1
    word = generator.bind("load", generator.environment.memory.load)
    size = scalar.size

    def loaded(text: str) -> str:
        return _loaded(generator, f"{word}({text}, {size})", scalar, node.bits, 1).text

    storer = generator.bind("store_word", _word_storer(generator))
    return _Memory(loaded, storer, size, node.bits, first, later), address.depth + 3


def size_of_reference(kind: DType) -> int:
    """The size in bytes of a struct, union or array; 0 if it is unknown."""
    stripped = bare(kind)
    return size_of(stripped) or 0 if isinstance(stripped, Array | Aggregate) else 0


def _word_storer(generator: Generator) -> Callable[[int, int, int, tuple[int, int] | None], int]:
    memory = generator.environment.memory

    def store(value: int, address: int, size: int, bits: tuple[int, int] | None) -> int:
        if bits is None:
            memory.store(address, size, value)
        else:
            mask = (1 << bits[1]) - 1 << bits[0]
            memory.store(address, size, memory.load(address, size) & ~mask | value << bits[0] & mask)
        return value

    return store


def _copier(generator: Generator) -> str:
    memory = generator.environment.memory

    def copy(value: int | bytes, address: int, size: int) -> int:
        if isinstance(value, bytes):
            memory.write(address, (value + b"\0")[:size])
        else:
            memory.write(address, memory.read(value, size))
        return address

    return generator.bind("copy_block", copy)


Target = program.Read | program.Load | program.Builtin


def _register(generator: Generator, target: program.Builtin) -> tuple[Lvalue, int]:
    """An item of regs[], whose index is a constant."""
    assert isinstance(target.index, program.Integer), "the checker refuses any other index"
    index = target.index.value
    return _Register(generator.value(target).text, generator.bind("write_register", write_register), index), 1


def write_register(firing: Firing, index: int, value: int) -> int:
    """Write a register; returns the value. Raises Fault: ILLOP where it cannot be written."""
    firing.intervene().write(index, value)
    return value


def _place(generator: Generator, target: Target, *, is_update: bool) -> tuple[Lvalue, int]:
    if isinstance(target, program.Builtin):
        return _register(generator, target)
    if isinstance(target, program.Load):
        return _memory(generator, target, is_update=is_update)
    if is_block(target.variable.type):
        address, _ = _block_address(generator, target)
        return _Block(_copier(generator), address, size_of_reference(target.variable.type)), 1
    return _variable(generator, target, is_update=is_update)


# -- assignments ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Assignment:
    """An lvalue and the value to store in it."""

    place: Lvalue
    value: Code
    depth: int


def _assignment(generator: Generator, node: program.Assign) -> _Assignment:
    value = _stored(generator, node)
    place, depth = _place(generator, node.target, is_update=False)
    return _Assignment(place, value, max(depth, value.depth) + 1)


def _stored(generator: Generator, node: program.Assign) -> Code:
    kind = node.target.variable.type if isinstance(node.target, program.Read) else node.target.type
    if is_string(kind):
        return generator.text(node.value)
    return _truncated(generator, generator.value(node.value), node.target)


def _truncated(generator: Generator, value: Code, target: Target) -> Code:
    """A value truncated to what memory or a bit-field can hold. A variable holds 64 bits, whatever its type."""
    kind = target.variable.type if isinstance(target, program.Read) else target.type
    scalar = scalar_of(kind)
    if scalar is None or is_reference(kind):
        return value
    if isinstance(target, program.Read):
        return fit(generator, value, word_of(kind))
    if isinstance(target, program.Load) and target.bits is not None:
        width = target.bits[1]
        mask = (1 << width) - 1
        return _extended(generator, Code(f"({value.text} & {mask})", 0, mask, value.depth + 1), width, scalar)
    return fit(generator, value, scalar)


def assign(generator: Generator, node: program.Assign) -> Code:
    """An assignment whose value is used."""
    made = _assignment(generator, node)
    return replace(made.value, text=made.place.store(made.value.text), depth=made.depth, constant=None)


def assign_statement(generator: Generator, node: program.Assign) -> str:
    """An assignment as a statement."""
    made = _assignment(generator, node)
    return made.place.statement(made.value.text)


def update(generator: Generator, node: program.Update) -> Code:
    """`target = target operator value` as an expression: the new value, or the old one for x++ and x--."""
    place, old, new = _updated(generator, node)
    depth = max(old.depth, new.depth) + 2
    if not node.gives_old:
        return replace(new, text=place.store(new.text), depth=depth, constant=None)
    return replace(old, depth=depth, text=f"({old.text}, {place.store(new.text)})[0]")


def update_statement(generator: Generator, node: program.Update) -> str:
    """`target = target operator value` as a statement."""
    place, _, new = _updated(generator, replace(node, gives_old=False))
    return place.statement(new.text)


def _old(text: str, target: Target, depth: int) -> Code:
    """The value before an update: of a variable, or of memory, where it has the range of its type."""
    scalar = scalar_of(target.type)
    if isinstance(target, program.Read) or scalar is None:
        return _ranged(text, target.type, depth)
    return Code(text, scalar.low, scalar.high, depth)


def _updated(generator: Generator, node: program.Update) -> tuple[Lvalue, Code, Code]:
    """The lvalue, its old value and its new one. The old value is assigned to a variable if it is used twice."""
    place, depth = _place(generator, node.target, is_update=True)
    old = _old(place.read(), node.target, depth)
    again = old
    if node.gives_old:
        name = generator.temporary()
        old, again = replace(old, text=f"({name} := {old.text})"), replace(old, text=name)
    operation = Operation(node.operator, SIGNED if node.is_signed else UNSIGNED, node.is_signed)
    result = combine(generator, operation, again, generator.value(node.value))
    return place, old, _truncated(generator, result, node.target)
