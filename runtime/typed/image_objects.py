"""An image's variables, functions and constants by name, as typed values over a guest's memory."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final

from kinst.runtime.trap.faults import Fault
from kinst.runtime.typed.arithmetic import wrapped
from kinst.runtime.typed.errors import MemoryFaultError, NoNameError, OperandError, RangeError
from kinst.runtime.typed.objects import Object
from kinst.runtime.typed.scalars import Place
from kinst.runtime.typed.types import Type
from kinst.runtime.typed.view import ADDRESSES, View
from kinst.runtime.typed.walks import AnyType, kind_of
from kinst.targets.c_types import CType, Pointer, Symbol, Void, strip
from kinst.targets.nearest import nearest
from kinst.targets.values import dataclass

_UPPER: Final = 1 << 63  # the half of the address space in which a kernel is
_WORD: Final = 8
_ALIKE: Final = 2  # the first letters that names have in common with one that is not there
_COMPLETED: Final = 200_000  # names that an interactive session is given
Locate = Callable[[int, int], int]  # a link address, for the code at another -> where it is now


@dataclass(frozen=True, slots=True)
class Places:
    """Where what an image defines is in memory. `beside` is of other images, by module; `variables` are types of
    variables that debug information leaves out."""

    locate: Locate
    beside: Mapping[str, Locate]
    variables: Mapping[str, str]


class Objects:
    """The names of an image over a guest's memory. `objects["init_task"]` is a variable, a function, or a constant of
    an enumeration; "module`name" one of another image in the machine.

    Example:
        >>> with open_image("samples/kernel-arm64.elf") as image, image.trace(machine=Machine(clock="icount")) as trace:
        ...     _ = trace.run()
        ...     trace.objects["nodes"][3].v_attr.va_size
        (u64) 36
    """

    def __init__(self, view: View, places: Places) -> None:
        """Made by a trace, or by `ImageFile.read`."""
        self._view, self._places = view, places

    def __getitem__(self, name: str) -> Object:
        """A variable or function as a reference, or a constant as a value.

        Raises:
            NoNameError: the image has neither.
            OperandError: each CPU has a variable of its own of that name: `per_cpu` gives one of them.
        """
        return self.at(name, 0)

    def at(self, name: str, site: int) -> Object:
        """As `objects[name]`, for the code at an address: an image that moved itself has its variables twice."""
        module, _, bare = name.rpartition("`")
        symbol = self._view.types.symbol(bare, module)
        if symbol is None:
            constant = None if module else self._view.types.enumerator(bare)
            if constant is None:
                raise NoNameError(f"{name}: no function, variable or constant of the image{self._nearest(bare)}")
            return Object(self._view, constant[0], Place(name, data=constant[1]))
        if self._is_per_cpu(symbol):
            raise OperandError(f"{name}: each CPU has its own: per_cpu({name!r}, cpu) is one")
        return self._reference(symbol, self._located(symbol, module, site), name)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        module, _, bare = name.rpartition("`")
        types = self._view.types
        return types.symbol(bare, module) is not None or (not module and types.enumerator(bare) is not None)

    def __iter__(self) -> Iterator[str]:
        """The names of variables and functions."""
        return iter(dict.fromkeys(one.name for one in self._view.types.symbols()))

    def _ipython_key_completions_(self) -> list[str]:
        """What IPython offers in `objects["`."""
        return list(islice(self, _COMPLETED))

    def c_type(self, text: str | CType) -> Type:
        """The type of a C text: "struct file", "unsigned int", "char [16]", "struct list_head *".

        Raises:
            NoNameError: the image has no such type.
        """
        return Type(self._view, kind_of(self._view, text) if isinstance(text, str) else text)

    def object(self, to: AnyType, address: int) -> Object:
        """What is at an address, as a value of a type.

        Raises:
            NoNameError: the image has no such type.
        """
        return Object(self._view, kind_of(self._view, to), Place(f"{{{to} at {address:#x}}}", address % ADDRESSES))

    def converted(self, kind: Type, value: int, path: str) -> Object:
        """A register's content as a number or address of a type; `path` names it in errors."""
        return Object(self._view, kind.kind, Place(path, data=wrapped(value, kind.kind)))

    def pointer(self, to: str, address: int, path: str) -> Object | None:
        """A pointer to a type, such as the current thread's; None: the image has no such type."""
        found = self._view.type_of(to)
        return None if found is None else Object(self._view, Pointer(found), Place(path, data=address))

    def per_cpu(self, variable: "str | Object", cpu: int) -> Object:
        """The variable of one CPU of Linux': by its name, or by a pointer to one that was allocated (`alloc_percpu`).

        Raises:
            NoNameError: the image has no such variable, or is no kernel that has some.
            RangeError: there is no such CPU.
        """
        offset = self._offset(cpu)
        if isinstance(variable, Object):
            pointer, path = variable._decayed_(), variable._place_.path
            kind, address = pointer[0].target, pointer[1]
        else:
            symbol = self._view.types.symbol(variable)
            if symbol is None:
                raise NoNameError(f"{variable}: no variable of the image{self._nearest(variable)}")
            address, path, kind = self._template(symbol), variable, symbol.type or Void()
        return Object(self._view, kind, Place(f"per_cpu({path}, {cpu})", (address + offset) % ADDRESSES))

    def _offset(self, cpu: int) -> int:
        """How far the area of a CPU is from where its variables were linked: 0 in a kernel for one CPU."""
        types = self._view.types
        count = None if types.symbol("nr_cpu_ids") is None else int(self["nr_cpu_ids"])
        if cpu < 0 or (count is not None and cpu >= count):
            raise RangeError(f"CPU {cpu}: the kernel has {'no such CPU' if count is None else f'{count} at most'}")
        offsets = types.symbol("__per_cpu_offset")
        if offsets is None:
            if types.symbol("__per_cpu_start") is None or cpu:
                raise NoNameError("per_cpu: the image has no __per_cpu_offset: no kernel of Linux' with CPUs' own data")
            return 0
        at = self._located(offsets, "", 0) + _WORD * cpu
        return int.from_bytes(self._view.read(at, _WORD, f"__per_cpu_offset[{cpu}]"), "little")

    def _is_per_cpu(self, symbol: Symbol) -> bool:
        """Whether it is in the area of which each CPU has a copy: the original is never used, and freed."""
        start, end = (self._view.types.symbol(f"__per_cpu_{name}") for name in ("start", "end"))
        return start is not None and end is not None and start.address <= symbol.address < end.address

    def _template(self, symbol: Symbol) -> int:
        """Where a variable of each CPU was linked: on amd64, up to Linux 6.14, at an offset in its area."""
        return self._located(symbol, "", 0) if symbol.address & _UPPER else symbol.address

    def _located(self, symbol: Symbol, module: str, site: int) -> int:
        locate = self._places.beside.get(module or symbol.module, self._places.locate)
        try:
            return locate(symbol.address, site) % ADDRESSES
        except Fault as fault:  # its image is not there yet
            raise MemoryFaultError(symbol.name, fault.value, fault.text) from None

    def _reference(self, symbol: Symbol, address: int, name: str) -> Object:
        kind, known = symbol.type, self._places.variables.get(symbol.name)
        if (kind is None or strip(kind) == Void()) and known is not None:
            kind = self._view.type_of(known)
        return Object(self._view, kind or Void(), Place(name, address))

    def _nearest(self, name: str) -> str:
        return nearest(name, (one for one in self if one[:_ALIKE] == name[:_ALIKE]))
