"""QEMU's virt board for arm64: its devices and device tree, and CPU 0 started in EL1 at the image's entry."""

from typing import Final

from kinst.runtime.machine.board import BoardFactory
from kinst.runtime.machine.boards.arm64.controller import (
    PRIVATE,
    Controller,
    attach_part,
    controller_of,
    registers_of,
    timer_inputs,
)
from kinst.runtime.machine.boards.arm64.cpu import reset
from kinst.runtime.machine.boards.arm64.event_loops import EventLoopWatch
from kinst.runtime.machine.boards.device_library import no_line
from kinst.runtime.machine.boards.given_tree import adapted
from kinst.runtime.machine.boards.initrd import place_below
from kinst.runtime.machine.boards.virt_arm64_tree import device_tree, interrupt_of
from kinst.runtime.machine.boards.virtio import virtio_slots
from kinst.runtime.machine.devices.arm.arm_timer import GenericTimer
from kinst.runtime.machine.devices.arm.pl011 import Pl011
from kinst.runtime.machine.devices.arm.pl031 import Pl031
from kinst.runtime.machine.devices.arm.pl061 import Pl061
from kinst.runtime.machine.devices.arm.psci import Psci
from kinst.runtime.machine.devices.cfi_flash import CfiFlash
from kinst.runtime.machine.devices.fdt import flatten
from kinst.runtime.machine.devices.fw_cfg import FirmwareConfiguration, configuration
from kinst.runtime.machine.devices.pci_ecam import PciEcam
from kinst.runtime.machine.devices.virtio.mmio import SLOT_SIZE, VirtioSlots
from kinst.runtime.machine.exceptions.arm64 import PFR0_GIC, Arm64Exceptions
from kinst.runtime.machine.exceptions.arm64_debug import DebugRegisters
from kinst.runtime.machine.loading.linux_image import HEADER_SIZE, has_boot_header
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.machine import Cpu, Machine
from kinst.targets.errors import MachineError

_INTERRUPTS: Final = PRIVATE + 256
_PARTS: Final = ("gic", "gic-cpu", "gic-redistributors", "gic-v2m", "gic-hypervisor", "gic-virtual-cpu")
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
        gic = controller_of(machine, _INTERRUPTS, has_el3=False)
        assert gic is not None, "the board has a GICv2 or a GICv3"
        self._gic, registers = gic, registers_of(gic)
        self._timer = GenericTimer(machine.clock, [timer_inputs(gic, cpu.number, no_line) for cpu in machine.cpus])
        firmware, debug = Psci(machine, self._start_cpu), DebugRegisters(machine.space)
        self.exceptions = Arm64Exceptions(
            firmware,
            self._timer,
            debug,
            highest=2 if has_el2 else 1,
            shown=PFR0_GIC if registers else 0,
            banks=registers,
        )

    def start(self, image: Loaded) -> None:
        """Attach the devices, write the FDT and start CPU 0."""
        machine = self._machine
        self.exceptions.start(self._reset)
        machine.attach_timed(self._timer)
        _attach_devices(machine, self._gic)
        machine.attach_timed(EventLoopWatch(machine, image, has_el2=self.exceptions.has_el2))
        address = _fdt_address(machine, image, _FDT_SIZE)
        behind = max(image.end, address + _FDT_SIZE)
        initrd = place_below(machine, machine.facts.ram_base + machine.ram_size, behind)
        machine.memory.write(address, _device_tree(machine, initrd, address))
        self._reset(machine.cpus[0], image.physical_entry, address)

    def _start_cpu(self, cpu: Cpu, entry: int, argument: int) -> None:
        self.exceptions.reset_before_running(cpu, entry, argument)

    def _reset(self, cpu: Cpu, entry: int, argument: int) -> None:
        reset(cpu, entry, argument, 2 if self.exceptions.has_el2 else 1)


def _make_slots(machine: Machine, gic: Controller) -> VirtioSlots:
    facts = machine.facts.devices["virtio"]
    return virtio_slots(
        machine, SLOT_SIZE, range(facts.size // SLOT_SIZE), lambda slot: gic.spi(interrupt_of(facts) + slot)
    )


def _attach_devices(machine: Machine, gic: Controller) -> None:
    facts = machine.facts.devices
    console, rtc = facts["console"], facts["rtc"]
    uart = Pl011(machine.console_output, machine.serial_line, gic.spi(interrupt_of(console)))
    clock = Pl031(machine.clock, gic.spi(interrupt_of(rtc)), _POWER_ON)
    for name in _PARTS:
        if name in facts:
            attach_part(machine, gic, facts[name])
    machine.attach(Pl061(gic.spi(interrupt_of(facts["gpio"]))), facts["gpio"].address)
    machine.attach(uart, console.address)
    machine.attach(clock, rtc.address)
    machine.attach(FirmwareConfiguration(configuration(len(machine.cpus))), facts["fw-cfg"].address)
    machine.attach(_make_slots(machine, gic), facts["virtio"].address)
    machine.attach(CfiFlash(facts["flash"].size), facts["flash"].address)
    machine.attach(PciEcam(facts["pci"].size), facts["pci"].address)
    machine.attach_timed(clock)


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
