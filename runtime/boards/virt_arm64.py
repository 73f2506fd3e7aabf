"""QEMU's virt board for arm64: devices and device tree made, CPU 0 started in EL1 at the image's entry."""

from typing import Final

from kinst.runtime.devices.arm_timer import INTERRUPTS, GenericTimer, Timer
from kinst.runtime.devices.cfi_flash import CfiFlash
from kinst.runtime.devices.fdt import Node, Value, cells64, flatten
from kinst.runtime.devices.fw_cfg import FirmwareConfiguration, configuration
from kinst.runtime.devices.gicv2 import CpuInterface, Distributor, Gic
from kinst.runtime.devices.pci_ecam import PciEcam
from kinst.runtime.devices.pl011 import Pl011
from kinst.runtime.devices.pl031 import Pl031
from kinst.runtime.devices.psci import Psci
from kinst.runtime.devices.virtio_mmio import SLOT_SIZE, EmptyVirtioSlots
from kinst.runtime.exceptions.arm64 import LINE_FIQ, LINE_IRQ, Arm64Exceptions
from kinst.runtime.loader import Loaded
from kinst.runtime.machine import BoardFactory, Cpu, Machine
from kinst.runtime.paging.arm64 import Arm64Walker
from kinst.targets.errors import MachineError
from kinst.targets.machines.machine import DeviceFacts

_INTERRUPTS: Final = 288  # 32 private, 256 shared
_POWER_ON: Final = 1_767_225_600  # the RTC's time at power-on: 2026-01-01. Fixed, so that runs can be compared

# Registers of the levels above the guest's, which this board has not but Unicorn's CPU has. Unless they say that EL1 is
# non-secure AArch64, turning the MMU on ends in endless prefetch aborts.
_SCR_EL3: Final = 0x5B1  # NS, HCE, SMD, RW
_HCR_EL2: Final = 0x8000_0000  # RW
_VPIDR_EL2, _VMPIDR_EL2 = "s3_4_c0_c0_0", "s3_4_c0_c0_5"  # what MIDR_EL1 and MPIDR_EL1 read as at EL1
_CORTEX_A57: Final = 0x411F_D070
_MPIDR: Final = 0x8000_0000
_SCTLR_RESET: Final = 0x00C5_0838
_EL1H_MASKED: Final = 0x3C5

_PHANDLE_CLOCK, _PHANDLE_CPU, _PHANDLE_GIC = 0x8000, 0x8100, 0x8002
_SHARED, _PRIVATE = 0, 1  # device tree: kinds of interrupt
_RISING, _HIGH = 1, 4
_ALIGNMENT: Final = 0x20_0000


class VirtArm64:
    """See `kinst.runtime.machine.Board`."""

    def __init__(self) -> None:
        """Nothing is attached yet."""
        self.exceptions = Arm64Exceptions()
        self.walker = Arm64Walker()

    def start(self, machine: Machine, image: Loaded) -> None:
        """Attach the devices, write the FDT and start CPU 0; the others are started by PSCI."""
        gic = _make_gic(machine)
        timer = GenericTimer(
            machine.clock,
            [{kind: gic.ppi(cpu.number, interrupt) for kind, interrupt in INTERRUPTS.items()} for cpu in machine.cpus],
        )
        machine.attach_timed(timer)
        self.exceptions.connect(Psci(machine, self._start_cpu), timer)
        _attach_devices(machine, gic)
        blob = flatten(_device_tree(machine))
        address = _fdt_address(machine, image, len(blob))
        machine.memory.write(address, blob)
        _reset(machine.cpus[0], _physical_entry(image), address)

    def _start_cpu(self, cpu: Cpu, entry: int, argument: int) -> None:
        self.exceptions.reset_before_running(cpu, lambda loaded: _reset(loaded, entry, argument))


def _reset(cpu: Cpu, entry: int, argument: int) -> None:
    """A CPU as it comes out of reset, about to run at a physical address with x0 = `argument`."""
    registers = cpu.registers
    registers.set("pc", entry)
    registers.set("x0", argument)
    registers.set("pstate", _EL1H_MASKED)
    registers.set("sctlr_el1", _SCTLR_RESET)
    registers.set(_VPIDR_EL2, _CORTEX_A57)
    registers.set(_VMPIDR_EL2, _MPIDR | cpu.number)
    registers.set("scr_el3", _SCR_EL3)
    registers.set("hcr_el2", _HCR_EL2)


def _make_gic(machine: Machine) -> Gic:
    outputs = [(cpu.line(LINE_IRQ), cpu.line(LINE_FIQ)) for cpu in machine.cpus]
    return Gic(outputs, _INTERRUPTS, lambda: machine.current.number)


def _attach_devices(machine: Machine, gic: Gic) -> None:
    facts = machine.facts.devices
    console, rtc = facts["console"], facts["rtc"]
    uart = Pl011(machine.clock, machine.console_output, machine.console_input, gic.spi(_number(console)))
    clock = Pl031(machine.clock, gic.spi(_number(rtc)), _POWER_ON)
    machine.attach(Distributor(gic), facts["gic"].address)
    machine.attach(CpuInterface(gic), facts["gic-cpu"].address)
    machine.attach(uart, console.address)
    machine.attach(clock, rtc.address)
    machine.attach(FirmwareConfiguration(configuration(len(machine.cpus))), facts["fw-cfg"].address)
    machine.attach(EmptyVirtioSlots(facts["virtio"].size), facts["virtio"].address)
    machine.attach(CfiFlash(facts["flash"].size), facts["flash"].address)
    machine.attach(PciEcam(facts["pci"].size), facts["pci"].address)
    machine.attach_timed(uart)
    machine.attach_timed(clock)


def _number(device: DeviceFacts) -> int:
    assert device.interrupt is not None
    return device.interrupt


def _physical_entry(image: Loaded) -> int:
    """Images start with the MMU off: a virtual entry address is run at its physical one."""
    for virtual, physical, size in image.segments:
        if virtual <= image.entry < virtual + size:
            return image.entry - virtual + physical
    return image.entry


def _fdt_address(machine: Machine, image: Loaded, size: int) -> int:
    """The start of RAM, where U-Boot looks for it; behind the image if that is there itself."""
    base = machine.facts.ram_base
    if all(physical >= base + size or physical + length <= base for _, physical, length in image.segments):
        return base
    address = -(-image.end // _ALIGNMENT) * _ALIGNMENT
    if address + size > base + machine.ram_size:
        raise MachineError(f"no room for the device tree behind the image, which ends at {image.end:#x}: more --memory")
    return address


def _device_tree(machine: Machine) -> Node:
    facts = machine.facts
    root = Node(
        "",
        {
            "interrupt-parent": _PHANDLE_GIC,
            "#address-cells": 2,
            "#size-cells": 2,
            "compatible": "linux,dummy-virt",
            "model": "linux,dummy-virt",
        },
    )
    chosen = root.add("chosen", {"stdout-path": f"/pl011@{facts.devices['console'].address:x}"})
    if machine.command_line is not None:
        chosen.properties["bootargs"] = machine.command_line
    root.add(f"memory@{facts.ram_base:x}", {"device_type": "memory", "reg": cells64(facts.ram_base, machine.ram_size)})
    _add_cpus(root, machine)
    _add_devices(root, machine)
    _add_buses(root, machine)
    return root


def _add_cpus(root: Node, machine: Machine) -> None:
    cpus = root.add("cpus", {"#address-cells": 1, "#size-cells": 0})
    for cpu in machine.cpus:
        properties: dict[str, Value] = {"device_type": "cpu", "compatible": "arm,cortex-a57", "reg": cpu.number}
        if len(machine.cpus) > 1:
            properties["enable-method"] = "psci"
        cpus.add(f"cpu@{cpu.number:x}", properties)
    root.add(
        "psci",
        {
            "compatible": ("arm,psci-1.0", "arm,psci-0.2", "arm,psci"),
            "method": "hvc",
            "cpu_suspend": 0xC400_0001,
            "cpu_off": 0x8400_0002,
            "cpu_on": 0xC400_0003,
        },
    )
    mask = ((1 << len(machine.cpus)) - 1) << 8 | _HIGH
    # secure physical, physical, virtual, hypervisor
    interrupts = (29, INTERRUPTS[Timer.PHYSICAL], INTERRUPTS[Timer.VIRTUAL], INTERRUPTS[Timer.HYPERVISOR])
    root.add(
        "timer",
        {
            "compatible": ("arm,armv8-timer", "arm,armv7-timer"),
            "always-on": None,
            "interrupts": tuple(cell for number in interrupts for cell in (_PRIVATE, number - 16, mask)),
        },
    )
    gic, interface = machine.facts.devices["gic"], machine.facts.devices["gic-cpu"]
    root.add(
        f"intc@{gic.address:x}",
        {
            "phandle": _PHANDLE_GIC,
            "compatible": "arm,cortex-a15-gic",
            "reg": cells64(gic.address, 0x1_0000, interface.address, 0x1_0000),
            "interrupt-controller": None,
            "#interrupt-cells": 3,
            "#address-cells": 2,
            "#size-cells": 2,
            "ranges": None,
        },
    )


def _add_devices(root: Node, machine: Machine) -> None:
    facts = machine.facts.devices
    root.add(
        "apb-pclk",
        {
            "phandle": _PHANDLE_CLOCK,
            "compatible": "fixed-clock",
            "#clock-cells": 0,
            "clock-frequency": 24_000_000,
            "clock-output-names": "clk24mhz",
        },
    )
    clocks = {"pl011": ("uartclk", "apb_pclk"), "pl031": ("apb_pclk",)}
    for device in (facts["rtc"], facts["console"]):
        root.add(
            f"{device.model}@{device.address:x}",
            {
                "compatible": (f"arm,{device.model}", "arm,primecell"),
                "reg": cells64(device.address, device.size),
                "interrupts": (_SHARED, _number(device), _HIGH),
                "clocks": (_PHANDLE_CLOCK,) * len(clocks[device.model]),
                "clock-names": clocks[device.model],
            },
        )
    flash, configuration = facts["flash"], facts["fw-cfg"]
    root.add(
        f"flash@{flash.address:x}",
        {"compatible": "cfi-flash", "reg": cells64(flash.address, flash.size), "bank-width": 4},
    )
    root.add(
        f"fw-cfg@{configuration.address:x}",
        {
            "compatible": "qemu,fw-cfg-mmio",
            "reg": cells64(configuration.address, configuration.size),
            "dma-coherent": None,
        },
    )


def _add_buses(root: Node, machine: Machine) -> None:
    virtio, pci = machine.facts.devices["virtio"], machine.facts.devices["pci"]
    for slot in range(virtio.size // SLOT_SIZE):
        address = virtio.address + slot * SLOT_SIZE
        root.add(
            f"virtio_mmio@{address:x}",
            {
                "compatible": "virtio,mmio",
                "reg": cells64(address, SLOT_SIZE),
                "interrupts": (_SHARED, _number(virtio) + slot, _RISING),
                "dma-coherent": None,
            },
        )
    root.add("platform-bus@c000000", _PLATFORM_BUS)
    # 32-bit memory 0x10000000-0x3efeffff and I/O ports at 0x3eff0000, as QEMU has them; nothing is there.
    ranges = (
        0x0100_0000,
        *cells64(0, 0x3EFF_0000, 0x1_0000),
        0x0200_0000,
        *cells64(0x1000_0000, 0x1000_0000, 0x2EFF_0000),
    )
    root.add(
        "pcie@10000000",
        {
            "compatible": "pci-host-ecam-generic",
            "device_type": "pci",
            "#address-cells": 3,
            "#size-cells": 2,
            "#interrupt-cells": 1,
            "reg": cells64(pci.address, pci.size),
            "bus-range": (0, 0),
            "linux,pci-domain": 0,
            "ranges": ranges,
            "dma-coherent": None,
        },
    )


_PLATFORM_BUS: Final[dict[str, Value]] = {
    "compatible": ("qemu,platform", "simple-bus"),
    "#address-cells": 1,
    "#size-cells": 1,
    "ranges": (0, 0, 0x0C00_0000, 0x0200_0000),
    "interrupt-parent": _PHANDLE_GIC,
}

BOARD: BoardFactory = VirtArm64
