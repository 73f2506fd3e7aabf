"""pc-amd64 as code: its devices, its interrupts, and how multiboot, PVH and plain 64-bit images start on it."""

from collections.abc import Callable
from typing import Final

from kinst.runtime.machine.board import BoardFactory
from kinst.runtime.machine.boards import multiboot, multiboot2
from kinst.runtime.machine.boards.acpi import TIMER_PIN, acpi_tables
from kinst.runtime.machine.boards.initrd import place_below
from kinst.runtime.machine.boards.linux_boot import boot_parameters
from kinst.runtime.machine.boards.multiboot import (
    PVH_COMMAND_LINE,
    Information,
    MemoryKind,
    MemoryRange,
    pvh_entry,
    pvh_information,
)
from kinst.runtime.machine.boards.virtio import attach_pci, has_devices, pci_interrupts
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.device import Device, Line
from kinst.runtime.machine.devices.pc.i8042 import I8042
from kinst.runtime.machine.devices.pc.ioapic import IoApic
from kinst.runtime.machine.devices.pc.lapic import LocalApics, Wiring
from kinst.runtime.machine.devices.pc.pic8259 import Pic8259
from kinst.runtime.machine.devices.pc.pit8254 import Pit8254, SpeakerPort
from kinst.runtime.machine.devices.pc.port_io import AcpiEvents, AcpiPowerControl, DebugExit, PostCode, ResetControl
from kinst.runtime.machine.devices.pc.rtc import Rtc
from kinst.runtime.machine.devices.uart16550 import Uart16550
from kinst.runtime.machine.exceptions.amd64 import EXTERNAL, Amd64Exceptions
from kinst.runtime.machine.exceptions.amd64_model_specific import ModelSpecificRegisters
from kinst.runtime.machine.exceptions.amd64_segments import enter_long_mode, enter_protected_mode, enter_real_mode
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.machine import Cpu, Machine
from kinst.runtime.paging.amd64 import LARGE, PRESENT, WRITABLE
from kinst.targets.errors import MachineError, NothingLeftError
from kinst.targets.kernels.multiboot import BootHeader, Version, boot_header
from kinst.targets.machines.machine import Space
from kinst.targets.values import dataclass

_INFORMATION: Final = 0x1_0000  # the address of the loader's information: low memory in which no kernel starts
_TABLES: Final = 0x7_0000  # page tables of images that start in 64-bit mode
_STACK: Final = 0x9_F000
_BIOS_DATA, _VIDEO, _BIOS, _HIGH = 0x9_FC00, 0xA_0000, 0xF_0000, 0x10_0000
_BIOS_AREA: Final = 0x400
_LEAST, _MOST = 2 << 20, 3 << 30  # bytes of RAM; devices have their windows above
# Kernels use the serial line only if their command line says so. GNU Mach is started by Multiboot. Linux is started by
# PVH; its options also skip the search for what this machine lacks, and what one CPU does not need, to save time.
_MULTIBOOT_DEFAULT: Final = "console=com0"
_ONE_CPU, _NO_PCI = " noapic nolapic", " pci=off"
_PCI_INTERRUPTS: Final = (10, 11, 5)  # unused by devices of the board

# GRUB's segments; the Multiboot specification does not say which to use.
_CODE32, _DATA32 = 0x10, 0x18
_LINE_INTR, _LINE_NMI, _LINE_APIC = 0, 1, 2

_CMOS_EQUIPMENT, _CMOS_EXTENDED, _CMOS_ABOVE_16M, _CMOS_CPUS = 0x14, 0x30, 0x34, 0x5F


@dataclass(frozen=True, slots=True)
class _Interrupts:
    """The controllers. An `InterruptSource`: first each CPU's local APIC, then on the boot CPU the PIC."""

    pic: Pic8259
    apics: LocalApics
    io_apic: IoApic

    def line(self, number: int) -> Line:
        """The line of IRQ 0 to 15, which goes to both controllers: kernels mask the inputs of one of them."""
        pic = self.pic.line(number)
        pin = self.io_apic.line(number or TIMER_PIN)

        def drive(level: bool) -> None:  # noqa: FBT001 - an interrupt line is its level
            pic(level)
            pin(level)

        return drive

    def pending(self, cpu: int) -> int | None:
        vector = self.apics.pending(cpu)
        if vector is None and self.apics.takes_external(cpu):
            return EXTERNAL
        return vector

    def acknowledge(self, cpu: int, pending: int) -> int:
        return self.pic.acknowledge() if pending == EXTERNAL else self.apics.acknowledge(cpu)


class PcAmd64:
    """The board pc-amd64; implements `Board`. CPUs other than the first wait for a start-up IPI."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._waiting = {cpu.number for cpu in machine.cpus[1:]}  # CPUs that wait for a start-up IPI
        self._interrupts = self._make_interrupts(machine)
        self._registers = ModelSpecificRegisters(machine)
        self.exceptions = Amd64Exceptions(
            self._interrupts,
            machine.space,
            time_stamp=machine.clock.now,  # `MachineFacts.timebase`: one count per nanosecond
            answer_reads=self._registers.answer,
            processors=len(machine.cpus),
        )

    def start(self, image: Loaded) -> None:
        """Attach the devices, then set up the boot CPU as the image's header requires."""
        machine = self._machine
        _check(machine)
        self._attach_interrupts(machine)
        self._attach_devices(machine)
        self._registers.intercept()
        for cpu in machine.cpus:
            self.exceptions.data_breakpoints.intercept(cpu)
        for cpu in machine.cpus[1:]:
            enter_real_mode(cpu.registers, 0)
        machine.memory.write(_BIOS_AREA, _bios_data())
        _start_image(machine, image)

    def _make_interrupts(self, machine: Machine) -> _Interrupts:
        wirings = [
            Wiring(
                interrupt=cpu.line(_LINE_APIC),
                external=cpu.line(_LINE_INTR),
                nmi=cpu.line(_LINE_NMI),
                init=lambda cpu=cpu: self._stop(cpu),  # type: ignore[misc]
                start_up=lambda vector, cpu=cpu: self._start_up(cpu, vector),  # type: ignore[misc]
            )
            for cpu in machine.cpus
        ]
        # The two kinds of APICs send each other messages, as on their bus.
        io_apic = IoApic(lambda message: apics.send(message))
        apics = LocalApics(machine.clock, wirings, lambda: machine.current.number, io_apic.end_of_interrupt)
        return _Interrupts(Pic8259(apics.external(0)), apics, io_apic)

    def _attach_interrupts(self, machine: Machine) -> None:
        pic, apics = self._interrupts.pic, self._interrupts.apics
        _attach(machine, "pic", pic.master_ports)
        _attach(machine, "pic2", pic.slave_ports)
        _attach(machine, "pic-trigger", pic.trigger_ports)
        _attach(machine, "lapic", apics)
        _attach(machine, "ioapic", self._interrupts.io_apic)
        machine.attach_timed(apics)

    def _attach_devices(self, machine: Machine) -> None:
        clock = machine.clock

        def line_of(name: str) -> Line:
            interrupt = machine.facts.devices[name].interrupt
            assert interrupt is not None
            return self._interrupts.line(interrupt)

        pit = Pit8254(clock, line_of("timer"))
        rtc = Rtc(clock, line_of("rtc"), _cmos(machine))
        reset = lambda code=0: machine.power_off(code, End.RESET)  # noqa: E731
        keyboard = I8042(line_of("keyboard"), line_of("keyboard-command"), reset)
        console = Uart16550(machine, line_of("console"))
        for timed in (pit, rtc, _HaltWatch(self.exceptions)):
            machine.attach_timed(timed)
        devices: dict[str, Device] = {
            "console": console,
            "timer": pit,
            "speaker": SpeakerPort(pit, clock),
            "rtc": rtc,
            "keyboard": keyboard.data,
            "keyboard-command": keyboard.command,
            "post": PostCode(),
            "exit": DebugExit(machine.power_off),
            "power-events": AcpiEvents(),
            "power": AcpiPowerControl(machine.power_off),
            "reset": ResetControl(reset),
        }
        for name, device in devices.items():
            _attach(machine, name, device)
        if has_devices(machine):
            # As a BIOS does, since devices on a PCI bus may share an interrupt.
            self._interrupts.pic.trigger_by_level(_PCI_INTERRUPTS)
            attach_pci(machine, {number: self._interrupts.line(number) for number in _PCI_INTERRUPTS})

    def _stop(self, cpu: Cpu) -> None:
        """INIT: the CPU waits for a start-up IPI. On the boot CPU it would restart the BIOS, which this machine
        lacks."""
        if cpu.number == 0:
            return
        cpu.power_off()
        if cpu.number not in self._waiting:
            self._waiting.add(cpu.number)
            self.exceptions.stopped(cpu.number)

    def _start_up(self, cpu: Cpu, vector: int) -> None:
        """A start-up IPI. Kernels send it twice; a CPU that runs ignores it."""
        if cpu.number not in self._waiting:
            return
        self._waiting.discard(cpu.number)
        enter_real_mode(cpu.registers, vector)
        self.exceptions.started()
        cpu.power_on()


class _HaltWatch:
    """A `Timed` device that ends the run when all CPUs are in hlt with interrupts off: with a timer running, the
    machine would wait for it forever."""

    def __init__(self, exceptions: Amd64Exceptions) -> None:
        self._exceptions = exceptions

    def deadline(self) -> int | None:
        return 0 if self._exceptions.is_halted_for_good else None

    def advance(self) -> None:
        raise NothingLeftError("the guest stopped for good: every CPU is in hlt with interrupts off")


BOARD: BoardFactory = PcAmd64


def _check(machine: Machine) -> None:
    if machine.device_tree is not None:
        raise MachineError(f"--dtb: {machine.facts.name} has no device tree")
    if not _LEAST <= machine.ram_size <= _MOST:
        raise MachineError(
            f"{machine.facts.name}: {machine.ram_size:#x} bytes of RAM: it can have {_LEAST >> 20} to {_MOST >> 20} MiB"
        )


def _attach(machine: Machine, name: str, device: Device) -> None:
    facts = machine.facts.devices[name]
    if facts.space is Space.PORTS:
        machine.attach_ports(device, facts.address)
    else:
        machine.attach(device, facts.address)


def _cmos(machine: Machine) -> dict[int, int]:
    """What a BIOS leaves in CMOS memory: memory sizes in KiB and 64 KiB units, and QEMU's count of further CPUs."""
    extended = min((machine.ram_size >> 10) - 1024, 0xFFFF)
    above = max(machine.ram_size - (16 << 20) >> 16, 0)
    words = {0x15: 640, 0x17: extended, _CMOS_EXTENDED: extended, _CMOS_ABOVE_16M: min(above, 0xFFFF)}
    bytes_ = {at + part: word >> 8 * part & 0xFF for at, word in words.items() for part in (0, 1)}
    return bytes_ | {_CMOS_EQUIPMENT: 0x06, _CMOS_CPUS: len(machine.cpus) - 1}


def _bios_data() -> bytes:
    """What a BIOS leaves at 0x400 (Phoenix, System BIOS for IBM PCs, chapter 3): a serial port, 639 KiB of memory, an
    empty keyboard buffer, a text screen of 80 columns that is not shown, and the extended area after low memory."""
    area = bytearray(256)
    fields = {0x00: 0x3F8, 0x0E: _BIOS_DATA >> 4, 0x10: 0x0226, 0x13: _BIOS_DATA >> 10, 0x1A: 0x1E, 0x1C: 0x1E,
              0x49: 3, 0x4A: 80, 0x4C: 0x1000, 0x63: 0x3D4, 0x80: 0x1E, 0x82: 0x3E, 0x84: 24}  # fmt: skip
    for offset, value in fields.items():
        area[offset : offset + 2] = value.to_bytes(2, "little")
    return bytes(area)


def memory_map(ram_size: int) -> tuple[MemoryRange, ...]:
    """The RAM, with the gap below 1 MiB that PCs have for compatibility."""
    available, reserved = MemoryKind.AVAILABLE, MemoryKind.RESERVED
    return (
        MemoryRange(0, _BIOS_DATA, available),
        MemoryRange(_BIOS_DATA, _VIDEO - _BIOS_DATA, reserved),
        MemoryRange(_BIOS, _HIGH - _BIOS, reserved),
        MemoryRange(_HIGH, ram_size - _HIGH, available),
        MemoryRange(0xFFFC_0000, 0x4_0000, reserved),
    )


def _start_image(machine: Machine, image: Loaded) -> None:
    """Start an image as its Multiboot header says; without one by PVH, or else at its entry point in 64-bit mode."""
    registers = machine.cpus[0].registers
    header, note = boot_header(image.image), pvh_entry(image.image)
    if machine.kaslr_seed is not None:
        parameters = _linux_information(machine, image, boot_parameters)
        _write(machine, parameters)
        _start_in_long_mode(machine, image)
        registers.set("rsi", parameters.address)
        return
    if machine.initrd is not None and (header is not None or note is None):
        raise MachineError(f"{image.image.path}: --initrd: it is no Linux kernel, and is given no initial file system")
    if header is not None:
        memory = memory_map(machine.ram_size)
        information = _multiboot_information(header, image, machine.command_line, memory)
        entry = image.physical_entry
        registers.set("rax", (multiboot if header.version is Version.ONE else multiboot2).LOADER_MAGIC)
    elif note is not None:
        information = _linux_information(machine, image, pvh_information)
        entry = note
    else:
        _start_in_long_mode(machine, image)
        return
    _write(machine, information)
    enter_protected_mode(registers, _CODE32, _DATA32)
    registers.set("rbx", information.address)
    registers.set("rip", entry)


def _linux_information(
    machine: Machine,
    image: Loaded,
    make: Callable[[str, tuple[MemoryRange, ...], int, range | None, int], Information],
) -> Information:
    """The boot information for Linux, in the structure that `make` gives, with the initial file system in memory."""
    has_bus = has_devices(machine)
    default = PVH_COMMAND_LINE + (_ONE_CPU if len(machine.cpus) == 1 else "") + ("" if has_bus else _NO_PCI)
    text = default if machine.command_line is None else machine.command_line
    initrd = place_below(machine, machine.ram_size, image.end)
    interrupts = pci_interrupts(_PCI_INTERRUPTS) if has_bus else {}
    for piece in acpi_tables(_BIOS, len(machine.cpus), machine.facts.devices, interrupts):
        _write_piece(machine, piece.address, piece.data)
    return make(text, memory_map(machine.ram_size), _INFORMATION, initrd, _BIOS)


def _multiboot_information(
    header: BootHeader, image: Loaded, given: str | None, memory: tuple[MemoryRange, ...]
) -> Information:
    """The information for a Multiboot kernel. As with all loaders but GRUB 2, the command line begins with the image's
    name, which kernels skip."""
    arguments = _MULTIBOOT_DEFAULT if given is None else given
    make = multiboot.multiboot_information if header.version is Version.ONE else multiboot2.multiboot2_information
    return make(image.image, f"{image.image.path.name} {arguments}".rstrip(), memory, _INFORMATION, image.end)


def _write(machine: Machine, information: Information) -> None:
    for piece in information.pieces:
        _write_piece(machine, piece.address, piece.data)


def _write_piece(machine: Machine, address: int, data: bytes) -> None:
    machine.files.refuse(range(address, address + len(data)), "the boot information")
    machine.memory.write(address, data)


def _start_in_long_mode(machine: Machine, image: Loaded) -> None:
    """Start in 64-bit mode, with the first 4 GiB mapped at 0 and in the last 2 GiB, where kernels are linked."""
    table = PRESENT | WRITABLE
    root, low, high, gigabytes = (_TABLES + 0x1000 * number for number in range(4))
    entries = {root: low | table, root + 8 * 511: high | table}
    for number in range(4):
        directory = gigabytes + 0x1000 * number
        entries[low + 8 * number] = directory | table
        if number < 2:
            entries[high + 8 * (510 + number)] = directory | table
        for page in range(512):
            entries[directory + 8 * page] = (number << 30 | page << 21) | table | LARGE
    machine.files.refuse(range(_TABLES, _STACK), "the first page tables and stack")
    for address, entry in entries.items():
        machine.memory.store(address, 8, entry)
    registers = machine.cpus[0].registers
    enter_long_mode(registers, root)
    registers.set("rsp", _STACK)
    registers.set("rip", image.entry)
