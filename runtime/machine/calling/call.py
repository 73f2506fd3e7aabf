"""One function of an image, called without booting: a call as text -> memory and registers, and the returned value.

This works with any image, also with kernels linked at high addresses: a map that the guest does not see makes its
segments reachable at their link addresses, and stack and text arguments have memory of their own. There are no devices,
and nothing handles exceptions: a function that needs either ends with an error that says what it did and where.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.physical.frames import PAGE
from kinst.runtime.paging.walker import Access, PageFault
from kinst.targets.elf.header import PT_LOAD
from kinst.targets.errors import MachineError, UsageError
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.machine.exception_model import Event
    from kinst.runtime.machine.system import System
    from kinst.targets.image import Image

Argument = int | bytes

# Where the image, texts and the stack are; and the address that the function returns to, where nothing is mapped, so
# that the return faults. No image is linked at these addresses, and no machine has RAM there.
_ARENA: Final = 1 << 42
_TEXTS: Final = 1 << 43
_TEXT_SIZE: Final = 1 << 16
_STACK_SIZE: Final = 1 << 20
_STACK_TOP = CALL_RETURNS_TO = _TEXTS + _TEXT_SIZE + _STACK_SIZE
_STACK_ALIGNMENT: Final = 16  # all three ABIs, at the call

_CALL: Final = re.compile(r"\s*([A-Za-z_.$][\w.$]*|0[xX][0-9a-fA-F]+)\s*\((.*)\)\s*", re.DOTALL)
_PLAIN: Final = frozenset(range(ord(" "), 0x7F)) - set(b'"\\')  # bytes of a text that are shown as they are
_ARGUMENT: Final = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^'\\]|\\.)'|(-?\w+))\s*(,|$)""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Call:
    """A function, by name or 0x address, and its arguments; `text` is the call as it was written."""

    function: str
    arguments: tuple[Argument, ...]
    text: str


def parse_call(text: str) -> Call:
    """Read ``f(1, -2, 0x10, 'c', "text")``. Raises UsageError."""
    found = _CALL.fullmatch(text)
    if found is None:
        raise UsageError(f"--call {text}: not a call such as 'f(1, 0x10, \"text\")'")
    arguments: list[Argument] = []
    rest, position = found[2], 0
    while rest.strip() and position < len(rest):
        part = _ARGUMENT.match(rest, position)
        if part is None:
            raise UsageError(f"--call {text}: argument {len(arguments) + 1} is neither a number nor a text")
        arguments.append(_argument(text, part))
        position = part.end()
    return Call(found[1], tuple(arguments), text.strip())


def call_of(function: str, arguments: Iterable[int | str | bytes]) -> Call:
    """A call whose arguments are values. Its text is one that `parse_call` reads. Raises UsageError."""
    values = tuple(_value(function, number, one) for number, one in enumerate(arguments, 1))
    return Call(function, values, f"{function}({', '.join(map(_shown, values))})")


def _value(function: str, number: int, argument: int | str | bytes) -> Argument:
    match argument:
        case int() | bytes():
            return argument
        case str():
            return argument.encode()
        case _:
            raise UsageError(f"{function}: argument {number} is neither a number nor a text: {argument!r}")


def _shown(argument: Argument) -> str:
    if isinstance(argument, int):
        return str(int(argument))
    return '"' + "".join(chr(one) if one in _PLAIN else f"\\x{one:02x}" for one in argument) + '"'


def _argument(text: str, part: re.Match[str]) -> Argument:
    if part[1] is not None:
        return _unescaped(part[1])
    if part[2] is not None:
        return _unescaped(part[2])[0]
    try:
        return int(part[3], 0)
    except ValueError:
        raise UsageError(f"--call {text}: {part[3]} is neither a number nor a text in quotes") from None


def _unescaped(text: str) -> bytes:
    if "\\" not in text:
        return text.encode(errors="surrogateescape")
    try:
        return text.encode(errors="surrogateescape").decode("unicode_escape").encode("latin-1")
    except UnicodeError as error:
        raise UsageError(f"--call: {text!r}: {error}") from None


def _address(text: str) -> int:
    try:
        address = int(text, 16)
    except ValueError:
        raise UsageError(f"--call {text}: not an address") from None
    if address >> 64:
        raise UsageError(f"--call {text}: an address has 64 bits")
    return address


def find_function(image: "Image", name: str, functions: Callable[[], Mapping[str, int]]) -> int:
    """The link address of a function: by address, by symbol, or by the names `functions` discovers."""
    if name[:2] in ("0x", "0X"):
        return _address(name)
    address = image.symbols.address_of(name)
    if address is not None:
        return address
    known = functions()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, 3)
    hint = f"; the nearest are {', '.join(near)}" if near else ""
    raise UsageError(f"--call {name}: no such function{hint}")


def load_for_call(image: "Image", system: "System", *, skip: int | None = None) -> Loaded:
    """Put the segments into memory of their own, where their link addresses reach them."""
    segments = [s for s in image.segments if s.kind == PT_LOAD and s.size and s.address != skip]
    if not segments:
        raise MachineError(f"{image.path}: nothing to load: it has no PT_LOAD segment")
    placed: list[tuple[int, int, int]] = []
    end = _ARENA
    for segment in segments:
        physical = end + segment.address % PAGE
        placed.append((segment.address, physical, segment.size))
        end = -(-(physical + segment.size) // PAGE) * PAGE
    system.memory.add_ram(_ARENA, end - _ARENA)
    system.memory.add_ram(_TEXTS, _STACK_TOP - _TEXTS)
    for segment, (_, physical, _) in zip(segments, placed, strict=True):
        content = image.data[segment.offset : segment.offset + segment.file_size]
        system.memory.write(physical, content.data)
    loaded = Loaded(image, 0, image.entry, tuple(placed))
    _relocate(loaded, system)
    pages = [(virtual & -PAGE, physical & -PAGE, size + virtual % PAGE) for virtual, physical, size in placed]
    system.space.alias([*pages, (_TEXTS, _TEXTS, _STACK_TOP - _TEXTS)], is_all=True)
    return loaded


def _relocate(loaded: Loaded, system: "System") -> None:
    """Apply relative relocations, as the image does itself when it starts."""
    table = loaded.image.relocations
    rows = np.flatnonzero(table.relative & (table.addend != 0) & (table.size == 8))
    for address, addend in zip(table.address[rows].tolist(), table.addend[rows].tolist(), strict=True):
        physical = loaded.physical(address)
        if physical is not None:
            system.memory.store(physical, 8, addend)


class FunctionCall:
    """A call that is prepared in a machine; `System.run` makes it, with `handle` as the hook for events."""

    def __init__(self, system: "System", loaded: Loaded, call: Call, address: int) -> None:
        """Set registers and stack."""
        self._system = system
        self._call = call
        self._texts = _TEXTS
        registers = system.current.registers
        for name, value in system.arch.c_registers.items():
            registers.set(name, value)
        for name, symbol in system.arch.c_symbols.items():
            registers.set(name, loaded.image.symbols.address_of(symbol) or 0)
        self._pass_arguments([self._word(argument) for argument in call.arguments])
        registers.set(system.arch.registers[system.arch.pc], address)

    def _word(self, argument: Argument) -> int:
        """An argument as it is passed: the number, or the address of the text."""
        if isinstance(argument, int):
            return argument & (1 << 64) - 1
        address, content = self._texts, argument + b"\0"
        if address + len(content) > _TEXTS + _TEXT_SIZE:
            raise UsageError(f"--call {self._call.text}: the texts are longer than {_TEXT_SIZE} bytes")
        self._put(address, content)
        self._texts += -(-len(content) // 8) * 8
        return address

    def _put(self, address: int, content: bytes) -> None:
        """Write to the guest's memory. Each page is translated first, as for the guest's own stores: `CallMemory`
        notices it by that, and restores it."""
        for page in range(address & -PAGE, address + len(content), PAGE):
            self._system.space.physical(page, Access.WRITE)
        self._system.memory.write(address, content)

    def _pass_arguments(self, words: list[int]) -> None:
        arch, registers = self._system.arch, self._system.current.registers
        in_registers, on_stack = words[: len(arch.arguments)], words[len(arch.arguments) :]
        for index, word in zip(arch.arguments, in_registers, strict=False):
            registers.set(arch.registers[index], word)
        stack = _STACK_TOP - _STACK_ALIGNMENT - 8 * len(on_stack) & -_STACK_ALIGNMENT
        self._put(stack, b"".join(word.to_bytes(8, "little") for word in on_stack))
        if arch.link_register is None:
            stack -= arch.pushed_return
            self._put(stack, CALL_RETURNS_TO.to_bytes(8, "little"))
        else:
            registers.set(arch.registers[arch.link_register], CALL_RETURNS_TO)
        registers.set(arch.registers[arch.stack_pointer], stack)

    def handle(self, event: "Event | PageFault", pc: int) -> None:
        """An event at a PC: the end of the call, or of the machine. Raises MachineError: nothing handles it."""
        if isinstance(event, PageFault):
            if event.address == CALL_RETURNS_TO:
                self._system.engine.look_at(event.address)
                self._system.finish(End.RETURNED)
                return
            what = f"{event.access.name.lower()} of {event.address:#x}"
            raise MachineError(f"{self._call.text}: at {pc:#x}: {what}, where nothing is")
        what = f"{event.source.name.lower()} {event.number}"
        raise MachineError(f"{self._call.text}: at {pc:#x}: exception ({what}), which nothing handles")

    @property
    def result(self) -> int:
        """The 64 bits that the function returned."""
        arch = self._system.arch
        return self._system.current.registers.get(arch.registers[arch.return_value])
