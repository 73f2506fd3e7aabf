"""The device tree of QEMU's virt board for arm64, without the performance counters, which this board lacks."""

from typing import Final

from kinst.runtime.machine.boards.initrd import describe
from kinst.runtime.machine.devices.arm.arm_timer import INTERRUPTS, Timer
from kinst.runtime.machine.devices.fdt import Node, Value, cells64
from kinst.runtime.machine.devices.virtio.mmio import SLOT_SIZE
from kinst.runtime.machine.machine import Machine
from kinst.targets.machines.machine import DeviceFacts

_PHANDLE_CLOCK, _PHANDLE_CPU, _PHANDLE_GIC, _PHANDLE_MSI, _PHANDLE_GPIO = 0x8000, 0x8100, 0x8002, 0x8003, 0x8004
_SHARED, _PRIVATE = 0, 1  # device tree: kinds of interrupt
_RISING, _HIGH = 1, 4
_POWER_PIN, _KEY_POWER = 3, 116
_BUSES: Final = 256
_GIC_WINDOW: Final = 0x1_0000  # more than the registers take
_SLOTS, _PINS = 4, 4  # the interrupts of PCI devices repeat after this many


def interrupt_of(device: DeviceFacts) -> int:
    """The interrupt of a device that has one, as a device tree counts it."""
    assert device.interrupt is not None
    return device.interrupt


def device_tree(machine: Machine, initrd: range | None) -> Node:
    """The tree of a machine, with its CPUs, memory and command line."""
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
    describe(chosen, initrd)
    if machine.kaslr_seed is not None:
        chosen.properties["kaslr-seed"] = machine.kaslr_seed.to_bytes(8, "big")
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
            "method": "smc" if "gic-hypervisor" in machine.facts.devices else "hvc",
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
    if "gic-redistributors" in machine.facts.devices:
        _add_gicv3(root, machine)
    else:
        _add_gicv2(root, machine)


_CONTROLLER: Final[dict[str, Value]] = {
    "phandle": _PHANDLE_GIC,
    "interrupt-controller": None,
    "#interrupt-cells": 3,
    "#address-cells": 2,
    "#size-cells": 2,
    "ranges": None,
}


def _add_gicv3(root: Node, machine: Machine) -> None:
    """The controller without the ITS that QEMU's has."""
    gic, redistributors = machine.facts.devices["gic"], machine.facts.devices["gic-redistributors"]
    reg = cells64(gic.address, gic.size, redistributors.address, redistributors.size)
    properties: dict[str, Value] = {"compatible": "arm,gic-v3", "#redistributor-regions": 1, "reg": reg}
    root.add(f"intc@{gic.address:x}", {**_CONTROLLER, **properties})


def _add_gicv2(root: Node, machine: Machine) -> None:
    gic, interface = machine.facts.devices["gic"], machine.facts.devices["gic-cpu"]
    reg = cells64(gic.address, _GIC_WINDOW, interface.address, _GIC_WINDOW)
    controller = root.add(f"intc@{gic.address:x}", {**_CONTROLLER, "compatible": "arm,cortex-a15-gic", "reg": reg})
    if "gic-hypervisor" in machine.facts.devices:
        _add_virtual_interface(controller, machine)
    messages = machine.facts.devices["gic-v2m"]
    controller.add(
        f"v2m@{messages.address:x}",
        {
            "phandle": _PHANDLE_MSI,
            "compatible": "arm,gic-v2m-frame",
            "msi-controller": None,
            "reg": cells64(messages.address, messages.size),
        },
    )


def _add_virtual_interface(controller: Node, machine: Machine) -> None:
    facts = machine.facts.devices
    hypervisor = facts["gic-hypervisor"]
    addresses = (facts["gic"].address, facts["gic-cpu"].address, hypervisor.address, facts["gic-virtual-cpu"].address)
    controller.properties["reg"] = cells64(*(cell for address in addresses for cell in (address, _GIC_WINDOW)))
    controller.properties["interrupts"] = (_PRIVATE, interrupt_of(hypervisor), _HIGH)


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
    for name in ("console", "rtc", "gpio"):
        _add_primecell(root, facts[name])
    pins: dict[str, Value] = {"gpios": (_PHANDLE_GPIO, _POWER_PIN, 0), "linux,code": _KEY_POWER}
    root.add("gpio-keys", {"compatible": "gpio-keys"}).add("poweroff", {"label": "GPIO Key Poweroff", **pins})
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


def _add_primecell(root: Node, device: DeviceFacts) -> None:
    names = ("uartclk", "apb_pclk") if device.model == "pl011" else ("apb_pclk",)
    node = root.add(
        f"{device.model}@{device.address:x}",
        {
            "compatible": (f"arm,{device.model}", "arm,primecell"),
            "reg": cells64(device.address, device.size),
            "interrupts": (_SHARED, interrupt_of(device), _HIGH),
            "clocks": (_PHANDLE_CLOCK,) * len(names),
            "clock-names": names,
        },
    )
    if device.model == "pl061":
        node.properties.update({"phandle": _PHANDLE_GPIO, "gpio-controller": None, "#gpio-cells": 2})


def _add_buses(root: Node, machine: Machine) -> None:
    virtio, pci = machine.facts.devices["virtio"], machine.facts.devices["pci"]
    for slot in range(virtio.size // SLOT_SIZE):
        address = virtio.address + slot * SLOT_SIZE
        root.add(
            f"virtio_mmio@{address:x}",
            {
                "compatible": "virtio,mmio",
                "reg": cells64(address, SLOT_SIZE),
                "interrupts": (_SHARED, interrupt_of(virtio) + slot, _RISING),
                "dma-coherent": None,
            },
        )
    root.add("platform-bus@c000000", _PLATFORM_BUS)
    _add_pci(root, pci, has_messages="gic-v2m" in machine.facts.devices)


def _add_pci(root: Node, pci: DeviceFacts, *, has_messages: bool) -> None:
    """The PCI bridge with QEMU's windows: I/O ports at 0x3eff0000, 32-bit memory at 0x10000000, 64-bit memory at 512
    GiB. They are empty."""
    ranges = (
        0x0100_0000,
        *cells64(0, 0x3EFF_0000, 0x1_0000),
        0x0200_0000,
        *cells64(0x1000_0000, 0x1000_0000, 0x2EFF_0000),
        0x0300_0000,
        *cells64(0x80_0000_0000, 0x80_0000_0000, 0x80_0000_0000),
    )
    interrupts = (
        (slot << 11, 0, 0, pin + 1, _PHANDLE_GIC, 0, 0, _SHARED, interrupt_of(pci) + (slot + pin) % _PINS, _HIGH)
        for slot in range(_SLOTS)
        for pin in range(_PINS)
    )
    root.add(
        "pcie@10000000",
        {
            "compatible": "pci-host-ecam-generic",
            "device_type": "pci",
            "#address-cells": 3,
            "#size-cells": 2,
            "#interrupt-cells": 1,
            "interrupt-map-mask": ((_SLOTS - 1) << 11, 0, 0, 7),
            "interrupt-map": tuple(cell for row in interrupts for cell in row),
            **({"msi-map": (0, _PHANDLE_MSI, 0, 0x1_0000)} if has_messages else {}),
            "reg": cells64(pci.address, pci.size),
            "bus-range": (0, _BUSES - 1),
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
