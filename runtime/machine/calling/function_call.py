"""A call -> registers and memory of a CPU that is about to make it, and what it returns, or where it faults."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kinst.runtime.machine.calling.arguments import Argument, Buffer, Structure
from kinst.runtime.machine.calling.places import BUFFER_COUNT, BUFFER_SIZE, OWN_STACK, CallPlace
from kinst.runtime.machine.calling.template import Call, made
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.physical.frames import PAGE
from kinst.runtime.paging.walker import PageFault
from kinst.targets.errors import MachineError, UsageError

if TYPE_CHECKING:
    from kinst.runtime.machine.exception_model import Event
    from kinst.runtime.machine.loading.loaded import Loaded
    from kinst.runtime.machine.system import System

_STACK_ALIGNMENT: Final = 16  # all three ABIs, at the call
_POINTER: Final = 8
_WORD: Final = (1 << 64) - 1
Handler = Callable[["Event | PageFault", int], str]


class CallFault(MachineError):
    """A call did what nothing handles: at `pc`, `what`."""

    def __init__(self, message: str, pc: int = 0, what: str = "") -> None:
        super().__init__(message)
        self.pc, self.what = pc, what


def nothing_handles(event: "Event | PageFault", _pc: int) -> str:
    """What an event is called in a machine in which nothing handles any."""
    if isinstance(event, PageFault):
        return f"{event.access.name.lower()} of {event.address:#x}, where nothing is"
    return f"exception ({event.source.name.lower()} {event.number}), which nothing handles"


class FunctionCall:
    """A call that is prepared in a machine; `System.run` makes it, with `handle` as the hook for events."""

    def __init__(
        self,
        system: "System",
        call: Call,
        address: int,
        place: CallPlace = OWN_STACK,
        handler: Handler = nothing_handles,
    ) -> None:
        """Set registers and stack. `handler` says what an event is that ends the call; "": it goes on. Raises
        UsageError: there is no space for the arguments."""
        self._system, self._call, self._place, self._handler = system, call, place, handler
        self._texts, self._buffers = place.texts, 0
        self._pass_arguments([self._word(argument) for argument in call.arguments])
        system.current.registers.set(system.arch.registers[system.arch.pc], address)

    # -- arguments ----------------------------------------------------------------------------------------------------

    def _word(self, argument: Argument) -> int:
        """An argument as it is passed: the number, or the address of what is in memory."""
        match argument:
            case int():
                return argument & _WORD
            case bytes():
                return self._text(argument + b"\0")
            case Buffer():
                return self._buffer(argument)
            case Structure():
                return self._buffer(Buffer(self._laid_out(argument), _POINTER))

    def _text(self, content: bytes) -> int:
        address = self._texts
        if address + len(content) > self._place.texts + self._place.texts_size:
            raise UsageError(f"--call {self._shown()}: the texts are longer than {self._place.texts_size} bytes")
        self._put(address, content)
        self._texts += -(-len(content) // 8) * 8
        return address

    def _buffer(self, buffer: Buffer) -> int:
        """The address of bytes that end where their memory ends, as far as their alignment lets them."""
        size = len(buffer.content)
        if size > BUFFER_SIZE or self._buffers == BUFFER_COUNT:
            most = f"{BUFFER_COUNT} of them" if size <= BUFFER_SIZE else f"{BUFFER_SIZE:,} bytes"
            raise UsageError(f"--call {self._shown()}: bytes and structures: at most {most}")
        address = self._place.buffer_end(self._buffers) - size & -buffer.alignment
        self._buffers += 1
        self._put(address, buffer.content)
        return address

    def _laid_out(self, structure: Structure) -> bytes:
        """The bytes of a structure as a C compiler lays it out, little-endian."""
        content, widest = bytearray(), 1
        for size, field in structure.fields:
            content += bytes(-len(content) % size)
            content += (self._word(field) & (1 << 8 * size) - 1).to_bytes(size, "little")
            widest = max(widest, size)
        return bytes(content + bytes(-len(content) % widest))

    def _put(self, address: int, content: bytes) -> None:
        """Write to the guest's memory, as its own stores would: `CallMemory` notices it, and restores it."""
        at = 0
        while at < len(content):
            size = min(PAGE - (address + at) % PAGE, len(content) - at)
            physical = self._system.space.observe_write(address + at)
            if physical is None:
                raise MachineError(f"{self._shown()}: the stack is at {address:#x}, where nothing is")
            self._system.memory.view(physical, size, is_written=True)[:] = content[at : at + size]
            at += size

    def _pass_arguments(self, words: list[int]) -> None:
        arch, registers = self._system.arch, self._system.current.registers
        in_registers, on_stack = words[: len(arch.arguments)], words[len(arch.arguments) :]
        for index, word in zip(arch.arguments, in_registers, strict=False):
            registers.set(arch.registers[index], word)
        stack = self._place.stack - _STACK_ALIGNMENT - 8 * len(on_stack) & -_STACK_ALIGNMENT
        self._put(stack, b"".join(word.to_bytes(8, "little") for word in on_stack))
        if arch.link_register is None:
            stack -= arch.pushed_return
            self._put(stack, self._place.returns_to.to_bytes(8, "little"))
        else:
            registers.set(arch.registers[arch.link_register], self._place.returns_to)
        registers.set(arch.registers[arch.stack_pointer], stack)

    def _shown(self) -> str:
        text = self._call.text or made(self._call.function, self._call.arguments).text
        return text if len(text) <= 200 else text[:200] + "..."

    # -- the run ------------------------------------------------------------------------------------------------------

    def handle(self, event: "Event | PageFault", pc: int) -> None:
        """An event at a PC: the end of the call, or of the machine. Raises CallFault: nothing handles it."""
        if isinstance(event, PageFault) and event.address == self._place.returns_to:
            self._system.engine.look_at(event.address)
            self._system.finish(End.RETURNED)
            return
        what = self._handler(event, pc)
        if what:
            raise CallFault(f"{self._shown()}: at {pc:#x}: {what}", pc, what)

    @property
    def result(self) -> int:
        """The 64 bits that the function returned."""
        arch = self._system.arch
        return self._system.current.registers.get(arch.registers[arch.return_value])


def set_c_registers(system: "System", loaded: "Loaded") -> None:
    """Set what a kernel's start has set before C code runs."""
    registers = system.current.registers
    for name, value in system.arch.c_registers.items():
        registers.set(name, value)
    for name, symbol in system.arch.c_symbols.items():
        registers.set(name, loaded.image.symbols.address_of(symbol) or 0)
