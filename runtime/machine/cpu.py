"""One virtual CPU: its saved state, interrupt inputs and trap state. All CPUs share one engine."""

import ctypes
from dataclasses import dataclass, field
from typing import Protocol

from kinst.runtime.engine.registers.register_file import RegisterFile
from kinst.runtime.machine.address_space import AddressSpace
from kinst.runtime.machine.device import Line
from kinst.targets.errors import MachineError


class Socket(Protocol):
    """What a CPU needs from its machine."""

    @property
    def space(self) -> AddressSpace:
        """The virtual memory of the CPU that runs."""
        ...

    @property
    def current(self) -> object:
        """The CPU that runs."""
        ...

    def pristine(self, address: int, content: bytes) -> bytes:
        """The guest's own code: `content` with what armed sites replace restored."""
        ...

    def interrupt_lines_changed(self) -> None:
        """An interrupt input went up or down."""
        ...

    def yield_cpu(self) -> None:
        """End the turn of the CPU that runs."""
        ...


@dataclass(slots=True, eq=False)
class VirtualCpu:
    """One CPU; implements `kinst.runtime.machine.machine.Cpu`. Its memory can be used only while it runs."""

    number: int
    system: Socket
    context: ctypes.c_void_p
    registers: RegisterFile  # the engine's while the CPU is loaded into it, else the saved state's
    lines: int = 0
    is_on: bool = False
    is_waiting: bool = False
    was_started: bool = False  # at any time
    have_lines_changed: bool = False
    fired: list[tuple[int, int, int]] = field(default_factory=list)

    def line(self, number: int) -> Line:
        """The interrupt input `number`."""
        bit = 1 << number

        def drive(level: bool) -> None:  # noqa: FBT001 - an interrupt line is its level
            lines = self.lines | bit if level else self.lines & ~bit
            if lines != self.lines:
                self.lines = lines
                self.have_lines_changed = True
                self.system.interrupt_lines_changed()

        return drive

    def load(self, address: int, size: int) -> int:
        """A little-endian word of `size` bytes of the guest's virtual memory; raises PageFault."""
        self._check_loaded()
        return self.system.space.load(address, size)

    def store(self, address: int, size: int, value: int) -> None:
        """Store a little-endian word of `size` bytes to the guest's virtual memory; raises PageFault."""
        self._check_loaded()
        self.system.space.store(address, size, value)

    def fetch(self, address: int, size: int) -> bytes:
        """The guest's own instruction bytes: armed sites show what they replace."""
        self._check_loaded()
        return self.system.pristine(address, self.system.space.fetch(address, size))

    def power_on(self) -> None:
        """Start to run, from the PC that was set."""
        self.is_on = self.was_started = True
        self.is_waiting = False

    def power_off(self) -> None:
        """Stop running until `power_on`."""
        self.is_on = False
        self.system.yield_cpu()

    def wait(self) -> None:
        """Wait for an interrupt."""
        self.is_waiting = True

    def wake(self) -> None:
        """Continue after the instruction that waits."""
        self.is_waiting = False

    def load_into(self, live: RegisterFile) -> None:
        """Note that the engine has this CPU's state now, but not its interrupt inputs."""
        self.registers, self.have_lines_changed = live, True

    def leave(self, saved: RegisterFile) -> None:
        """Note that its state was saved, since the engine gets another CPU's."""
        self.registers = saved

    def restore(self, saved: RegisterFile, lines: int, state: tuple[bool, bool, bool]) -> None:
        """Note that it has another state, which is saved, with these inputs, and in no trampoline. `state`: whether it
        is on, waits, and was started at any time."""
        self.registers, self.lines, self.have_lines_changed = saved, lines, True
        self.is_on, self.is_waiting, self.was_started = state
        self.fired.clear()

    def took_changes(self) -> bool:
        """Whether interrupt inputs changed since the last time, or the engine does not have them."""
        changed, self.have_lines_changed = self.have_lines_changed, False
        return changed

    def _check_loaded(self) -> None:
        if self.system.current is not self:
            raise MachineError(f"CPU {self.number}: its memory can be used only while it runs")
