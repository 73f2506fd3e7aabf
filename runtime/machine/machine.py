"""The machine as the rest of the runtime sees it: CPUs, registers, memory, devices, time. The emulator is not visible.

`kinst.runtime.machine.system` implements `Machine`, `kinst.runtime.machine.cpu` implements `Cpu`; boards, exception
models and providers only ever use these protocols.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from kinst.runtime.machine.assumed_registers import AssumedRegisters
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.device import Clock, Device, Line, Timed
from kinst.runtime.machine.disk import Disk
from kinst.runtime.machine.serial_line import SerialLine
from kinst.runtime.machine.watching.mirrored_pages import MemoryAccess
from kinst.runtime.paging.walker import Access, Registers
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.machines.machine import MachineFacts


class Memory(Protocol):
    """Physical memory, RAM only: a device's window raises MachineError."""

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes at a physical address."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Write to RAM. Code there that was already translated is translated again."""
        ...

    def view(self, address: int, size: int, *, is_written: bool) -> memoryview:
        """The bytes themselves, for reading; or, between two turns of a CPU, for writing."""
        ...

    def load(self, address: int, size: int) -> int:
        """1, 2, 4 or 8 bytes, little-endian, unsigned."""
        ...

    def store(self, address: int, size: int, value: int) -> None:
        """Store the low 1, 2, 4 or 8 bytes of `value`; data only, not for code."""
        ...

    def add_ram(self, address: int, size: int) -> None:
        """Add RAM (page-aligned) to that of `MachineFacts`, e.g. a boot ROM. Raises MachineError if it overlaps other
        RAM."""
        ...


class Cpu(Protocol):
    """One CPU. Its registers may be used between instructions, and also in device callbacks, events and accesses of
    system registers."""

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
        """Its registers by name. If the CPU is not running, only general registers and the PC may be used."""
        ...

    @property
    def lines(self) -> int:
        """Bit n: interrupt input n is asserted (riscv64: mip's bits; arm64: 0 IRQ, 1 FIQ; amd64: 0 INTR, 1 NMI)."""
        ...

    def line(self, number: int) -> Line:
        """The interrupt input `number`, for a device or controller to drive."""
        ...

    def load(self, address: int, size: int) -> int:
        """Read guest virtual memory as this CPU would now; raises PageFault (paging.walker)."""
        ...

    def store(self, address: int, size: int, value: int) -> None:
        """Write guest virtual memory as this CPU would now; raises PageFault."""
        ...

    def fetch(self, address: int, size: int) -> bytes:
        """The guest's own instruction bytes at a virtual address: armed sites show what they replace."""
        ...

    def power_on(self) -> None:
        """Let a CPU run that was off; set its registers first."""
        ...

    def power_off(self) -> None:
        """Stop the CPU until `power_on`."""
        ...


class Files(Protocol):
    """The files that the user put into physical memory."""

    @property
    def first(self) -> int | None:
        """Where the first of them is; None: there is none."""
        ...

    @property
    def first_tree(self) -> int | None:
        """Where the first of them looks for its device tree, if it is an arm64 U-Boot."""
        ...

    @property
    def first_end(self) -> int | None:
        """The address behind the bytes of the first of them; None: there is none."""
        ...

    def refuse(self, place: range, what: str) -> None:
        """Raise MachineError if `what`, at these physical addresses, would overlap a file."""
        ...


class Held(Protocol):
    """Pages whose loads and stores stop the CPU before they happen, and instructions that are executed alone."""

    def hold(self, refuses: Callable[[int], bool] | None) -> None:
        """Let `refuses(address)` choose pages whose loads and stores stop the CPU: a `PageFault` with the code `HELD`.
        It is called for each translation that the TLB gets. None: no page is held, as at first."""
        ...

    def execute_unheld(self, after: Callable[[], None] | None = None) -> None:
        """Let the CPU execute the next instruction with no page held. `after` is called then: what it has held instead
        counts."""
        ...

    def lifted(self) -> AbstractContextManager[None]:
        """Accesses by a model of the CPU: no page is held meanwhile."""
        ...

    def execute_implicitly(self, is_implicit: Callable[[int], bool], cleared: Mapping[str, int]) -> None:
        """Let the CPU execute the next instruction with pages that `is_implicit(address)` chooses translated as if some
        bits of registers were clear."""
        ...


class Space(Protocol):
    """The virtual memory of the CPU that runs."""

    @property
    def held(self) -> Held:
        """Its held pages."""
        ...

    def observe(self, address: int) -> int | None:
        """The physical address for a virtual one; None if nothing is mapped. The guest cannot notice."""
        ...

    def watch_memory(self, addresses: range, access: Access, watcher: Callable[[MemoryAccess], None]) -> None:
        """Call `watcher` with each load, or store, of physical RAM. Between two runs. Raises MachineError."""
        ...

    def unwatch_memory(self, watcher: Callable[[MemoryAccess], None]) -> None:
        """Call it no more."""
        ...


class Machine(Protocol):
    """The whole machine."""

    @property
    def arch(self) -> ArchFacts:
        """The facts about its instruction set."""
        ...

    @property
    def facts(self) -> MachineFacts:
        """The facts about its board."""
        ...

    @property
    def clock(self) -> Clock:
        """Its time, in nanoseconds since it was switched on."""
        ...

    @property
    def memory(self) -> Memory:
        """Its physical memory. The RAM of `facts` is already mapped."""
        ...

    @property
    def ram_size(self) -> int:
        """Bytes of RAM at `facts.ram_base`, as `--memory` says."""
        ...

    @property
    def command_line(self) -> str | None:
        """The text of `--append`, for kernels that take a command line; None: the board's default."""
        ...

    @property
    def initrd(self) -> bytes | memoryview | None:
        """The content of `--initrd`: the initial file system, for kernels that take one."""
        ...

    @property
    def kaslr_seed(self) -> int | None:
        """The number of `--kaslr-seed`, for kernels that move to a random offset; None: they do not move."""
        ...

    @property
    def assumed(self) -> AssumedRegisters:
        """System registers of its CPUs whose bits nobody knows."""
        ...

    @property
    def device_tree(self) -> bytes | memoryview | None:
        """The content of `--dtb`: a flattened device tree in place of the board's own."""
        ...

    @property
    def files(self) -> Files:
        """The files of `--load` in memory."""
        ...

    @property
    def disks(self) -> Sequence[Disk]:
        """The disks of `--disk`, in this order."""
        ...

    @property
    def rng_seed(self) -> int | None:
        """The number of `--rng-seed`, which determines the guest's random numbers; None: it has no source of them."""
        ...

    @property
    def has_virtio_console(self) -> bool:
        """Whether it has a console besides the serial line, by `--virtio-console`."""
        ...

    @property
    def cpus(self) -> Sequence[Cpu]:
        """Its CPUs, the number of `--cpus`. At first only CPU 0 is on."""
        ...

    @property
    def current(self) -> Cpu:
        """The CPU that is running or whose event is being handled, for banked devices and calls of firmware."""
        ...

    @property
    def space(self) -> Space:
        """The virtual memory of the CPU that runs."""
        ...

    def attach(self, device: Device, address: int) -> None:
        """Put a device's window at a physical address; several may share a page."""
        ...

    def attach_ports(self, device: Device, port: int, *, is_whole: bool = False) -> None:
        """Put a device's window at an I/O port (amd64); with `is_whole` for accesses to all of its ports at once."""
        ...

    def attach_timed(self, timed: Timed) -> None:
        """Read the deadlines of `timed`, and call its `advance` when one is due. If a device itself is attached so, its
        deadline is read again after each write to it; else see `notice_deadline`."""
        ...

    def notice_deadline(self, timed: Timed) -> None:
        """Read the device's deadline again: a running CPU may have set it other than by a write to the device's
        window."""
        ...

    def console_output(self, data: bytes) -> None:
        """Pass on bytes that the guest's console UART sends."""
        ...

    @property
    def serial_line(self) -> SerialLine:
        """The source of what is typed at the guest's console."""
        ...

    def flush_tlb(self) -> None:
        """Drop the translations of all CPUs, for firmware calls such as SBI's remote fences."""
        ...

    def power_off(self, code: int = 0, end: End = End.POWER_OFF) -> None:
        """End the run after this instruction with an exit code: the guest switched the machine off, or reset it."""
        ...
