"""The machine as the rest of the runtime sees it: CPUs, registers, memory, devices, time. No emulator in sight.

`kinst.runtime.machine.system` implements `Machine`, `kinst.runtime.machine.cpu` implements `Cpu`; boards, exception
models and providers only ever use these protocols.
"""

from collections.abc import Sequence
from typing import Protocol

from kinst.runtime.machine.device import Clock, Device, Line, Timed
from kinst.runtime.paging.walker import Registers
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.machines.machine import MachineFacts


class Memory(Protocol):
    """Physical memory, RAM only: a device's window raises MachineError."""

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes at a physical address."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Write to RAM; code that was already translated there is translated anew."""
        ...

    def load(self, address: int, size: int) -> int:
        """1, 2, 4 or 8 bytes, little-endian, unsigned."""
        ...

    def store(self, address: int, size: int, value: int) -> None:
        """Store the low 1, 2, 4 or 8 bytes of `value`; data only, not for code."""
        ...

    def add_ram(self, address: int, size: int) -> None:
        """Make more RAM (page-aligned) than `MachineFacts` says, e.g. a boot ROM; refuses overlap with MachineError."""
        ...


class Cpu(Protocol):
    """One CPU. Its registers may be used between instructions: in device callbacks, events and system registers too."""

    @property
    def number(self) -> int:
        """0 for the boot CPU."""
        ...

    @property
    def is_on(self) -> bool:
        """Whether it runs or waits."""
        ...

    @property
    def registers(self) -> Registers:
        """By name. Of a CPU that does not run, only general registers and the PC may be used."""
        ...

    @property
    def lines(self) -> int:
        """Bit n: interrupt input n is asserted (riscv64: mip's bits; arm64: 0 IRQ, 1 FIQ; amd64: 0 INTR, 1 NMI)."""
        ...

    def line(self, number: int) -> Line:
        """The interrupt input `number`, for a device or controller to drive."""
        ...

    def load(self, address: int, size: int) -> int:
        """Guest virtual memory as this CPU would read it now; raises PageFault (paging.walker)."""
        ...

    def store(self, address: int, size: int, value: int) -> None:
        """Guest virtual memory as this CPU would write it now; raises PageFault."""
        ...

    def fetch(self, address: int, size: int) -> bytes:
        """Instruction bytes at a virtual address as the guest's own: armed sites show what they replace."""
        ...

    def power_on(self) -> None:
        """Let a CPU run that was off; set its registers first."""
        ...

    def power_off(self) -> None:
        """The CPU runs no more until `power_on`."""
        ...


class Machine(Protocol):
    """The whole machine."""

    @property
    def arch(self) -> ArchFacts:
        """Its instruction set."""
        ...

    @property
    def facts(self) -> MachineFacts:
        """Its board."""
        ...

    @property
    def clock(self) -> Clock:
        """Its time."""
        ...

    @property
    def memory(self) -> Memory:
        """Its physical memory; RAM of `facts` is mapped already."""
        ...

    @property
    def ram_size(self) -> int:
        """Bytes of RAM at `facts.ram_base`, as `--memory` says."""
        ...

    @property
    def command_line(self) -> str | None:
        """What `--append` says, for kernels that are given a command line; None: the board's default."""
        ...

    @property
    def kaslr_seed(self) -> int | None:
        """What `--kaslr-seed` says: where a kernel that asks for one is to go; None: where it was linked."""
        ...

    @property
    def cpus(self) -> Sequence[Cpu]:
        """As many as `--cpus` says; only CPU 0 is on at first."""
        ...

    @property
    def current(self) -> Cpu:
        """The CPU that is running or whose event is being handled: for banked devices and firmware calls."""
        ...

    def attach(self, device: Device, address: int) -> None:
        """Put a device's window at a physical address; several may share a page."""
        ...

    def attach_ports(self, device: Device, port: int) -> None:
        """Put a device's window at an I/O port (amd64)."""
        ...

    def attach_timed(self, timed: Timed) -> None:
        """Ask `timed` for its deadlines and call its `advance` when one is due."""
        ...

    def notice_deadline(self, timed: Timed) -> None:
        """A CPU that runs may have set this device's deadline, otherwise than by a write to it."""
        ...

    def console_output(self, data: bytes) -> None:
        """What the guest's console UART sends."""
        ...

    def console_input(self) -> bytes:
        """What was typed since the last call; may be empty. UARTs poll it in `advance`/reads."""
        ...

    def flush_tlb(self) -> None:
        """Forget every CPU's translations: firmware was asked to fence them."""
        ...

    def power_off(self, code: int = 0) -> None:
        """The guest switched the machine off (or asked for a reset): the run ends after this instruction."""
        ...
