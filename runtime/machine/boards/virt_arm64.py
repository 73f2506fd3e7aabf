"""QEMU's virt board for arm64: its devices and device tree, and CPU 0 started in EL1 at the image's entry."""

from typing import Final

from kinst.runtime.machine.board import BoardFactory
from kinst.runtime.machine.boards.arm64_cpu import reset
from kinst.runtime.machine.boards.event_loops import EventLoopWatch
from kinst.runtime.machine.boards.given_tree import adapted
from kinst.runtime.machine.boards.initrd import place_below
from kinst.runtime.machine.boards.virt_arm64_tree import device_tree, interrupt_of
from kinst.runtime.machine.boards.virtio import virtio_slots
from kinst.runtime.machine.devices.arm.arm_timer import INTERRUPTS, GenericTimer
from kinst.runtime.machine.devices.arm.gic_virtual import HypervisorInterface, VirtualCpuInterface
from kinst.runtime.machine.devices.arm.gicv2 import CpuInterface, Distributor, Gic
from kinst.runtime.machine.devices.arm.gicv2m import Gicv2m
from kinst.runtime.machine.devices.arm.pl011 import Pl011
from kinst.runtime.machine.devices.arm.pl031 import Pl031
from kinst.runtime.machine.devices.arm.pl061 import Pl061
from kinst.runtime.machine.devices.arm.psci import Psci
from kinst.runtime.machine.devices.cfi_flash import CfiFlash
from kinst.runtime.machine.devices.fdt import flatten
from kinst.runtime.machine.devices.fw_cfg import FirmwareConfiguration, configuration
from kinst.runtime.machine.devices.pci_ecam import PciEcam
from kinst.runtime.machine.devices.virtio.mmio import SLOT_SIZE, VirtioSlots
from kinst.runtime.machine.exceptions.arm64 import LINE_FIQ, LINE_IRQ, Arm64Exceptions
from kinst.runtime.machine.exceptions.arm64_debug import DebugRegisters
from kinst.runtime.machine.loading.linux_image import HEADER_SIZE, has_boot_header
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.machine import Cpu, Machine
from kinst.targets.errors import MachineError

_PRIVATE: Final = 32
_INTERRUPTS: Final = _PRIVATE + 256
_MESSAGES: Final = 64  # shared interrupts for messages of PCI devices
_POWER_ON: Final = 1_767_225_600  # the RTC's time at power-on: 2026-01-01. Fixed, so that runs can be compared

_ALIGNMENT: Final = 0x20_0000
_UNPACKED: Final = 128 << 20  # bytes below the device tree for a kernel that unpacks itself
_FDT_SIZE: Final = 1 << 20


class VirtArm64:
    """The board virt-arm64; implements `kinst.runtime.machine.board.Board`. PSCI starts the CPUs other than the
    first."""

    def __init__(self, machine: Machine, *, has_el2: bool = False) -> None:
        """Nothing is attached yet."""
        self._machine = machine
        self._gic = gic = _make_gic(machine)
        self._timer = GenericTimer(
            machine.clock,
            [{kind: gic.ppi(cpu.number, interrupt) for kind, interrupt in INTERRUPTS.items()} for cpu in machine.cpus],
        )
        firmware, debug = Psci(machine, self._start_cpu), DebugRegisters(machine.space)
        self.exceptions = Arm64Exceptions(firmware, self._timer, debug, has_el2=has_el2)

    def start(self, image: Loaded) -> None:
        """Attach the devices, write the FDT and start CPU 0."""
        machine = self._machine
        self.exceptions.start()
        machine.attach_timed(self._timer)
        _attach_devices(machine, self._gic)
        if self.exceptions.has_el2:
            _attach_virtual(machine)
        machine.attach_timed(EventLoopWatch(machine, image, has_el2=self.exceptions.has_el2))
        address = _fdt_address(machine, image, _FDT_SIZE)
        behind = max(image.end, address + _FDT_SIZE)
        initrd = place_below(machine, machine.facts.ram_base + machine.ram_size, behind)
        machine.memory.write(address, _device_tree(machine, initrd, address))
        self._reset(machine.cpus[0], image.physical_entry, address)

    def _start_cpu(self, cpu: Cpu, entry: int, argument: int) -> None:
        self.exceptions.reset_before_running(cpu, lambda loaded: self._reset(loaded, entry, argument))

    def _reset(self, cpu: Cpu, entry: int, argument: int) -> None:
        reset(cpu, entry, argument, 2 if self.exceptions.has_el2 else 1)


def _make_gic(machine: Machine) -> Gic:
    outputs = [(cpu.line(LINE_IRQ), cpu.line(LINE_FIQ)) for cpu in machine.cpus]
    return Gic(outputs, _INTERRUPTS, lambda: machine.current.number)


def _make_messages(machine: Machine, gic: Gic) -> Gicv2m:
    first = interrupt_of(machine.facts.devices["gic-v2m"])
    return Gicv2m(_PRIVATE + first, [gic.spi(first + number) for number in range(_MESSAGES)])


def _make_slots(machine: Machine, gic: Gic) -> VirtioSlots:
    facts = machine.facts.devices["virtio"]
    return virtio_slots(
        machine, SLOT_SIZE, range(facts.size // SLOT_SIZE), lambda slot: gic.spi(interrupt_of(facts) + slot)
    )


def _attach_devices(machine: Machine, gic: Gic) -> None:
    facts = machine.facts.devices
    console, rtc = facts["console"], facts["rtc"]
    uart = Pl011(machine.console_output, machine.serial_line, gic.spi(interrupt_of(console)))
    clock = Pl031(machine.clock, gic.spi(interrupt_of(rtc)), _POWER_ON)
    machine.attach(Distributor(gic), facts["gic"].address)
    machine.attach(CpuInterface(gic), facts["gic-cpu"].address)
    machine.attach(_make_messages(machine, gic), facts["gic-v2m"].address)
    machine.attach(Pl061(gic.spi(interrupt_of(facts["gpio"]))), facts["gpio"].address)
    machine.attach(uart, console.address)
    machine.attach(clock, rtc.address)
    machine.attach(FirmwareConfiguration(configuration(len(machine.cpus))), facts["fw-cfg"].address)
    machine.attach(_make_slots(machine, gic), facts["virtio"].address)
    machine.attach(CfiFlash(facts["flash"].size), facts["flash"].address)
    machine.attach(PciEcam(facts["pci"].size), facts["pci"].address)
    machine.attach_timed(clock)


def _attach_virtual(machine: Machine) -> None:
    facts = machine.facts.devices
    interface = HypervisorInterface(len(machine.cpus), lambda: machine.current.number)
    machine.attach(interface, facts["gic-hypervisor"].address)
    machine.attach(VirtualCpuInterface(), facts["gic-virtual-cpu"].address)


def _fdt_address(machine: Machine, image: Loaded, size: int) -> int:
    """Where QEMU puts the device tree. Firmware expects it at the start of RAM; if the image itself is there, it is
    after the image. A kernel with Linux's boot header gets the address, and has space to unpack itself below it."""
    base = machine.facts.ram_base
    behind = -(-image.end // _ALIGNMENT) * _ALIGNMENT
    if _has_boot_header(machine, image):
        address = max(base + min(machine.ram_size // 2, _UNPACKED), behind)
    elif all(physical >= base + size or physical + length <= base for _, physical, length in image.segments):
        return base
    else:
        address = behind
    if address + size > base + machine.ram_size:
        raise MachineError(f"no room for the device tree behind the image, which ends at {image.end:#x}: more --memory")
    return address


def _device_tree(machine: Machine, initrd: range | None, address: int) -> bytes:
    """The flattened tree of the board, or of --dtb, for a place that no file of --load has."""
    if machine.device_tree is None:
        blob = flatten(device_tree(machine, initrd), size=_FDT_SIZE)
    else:
        blob = adapted(machine, machine.device_tree, initrd, size=_FDT_SIZE)
    machine.files.refuse(range(address, address + len(blob)), "the device tree")
    return blob


def _has_boot_header(machine: Machine, image: Loaded) -> bool:
    start, size = min(((physical, size) for _, physical, size in image.segments), default=(0, 0))
    return has_boot_header(machine.memory.read(start, min(size, HEADER_SIZE)), machine.arch)


BOARD: BoardFactory = VirtArm64
