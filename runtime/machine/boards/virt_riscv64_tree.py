"""QEMU's virt board for RISC-V -> its device tree: the same for firmware and for kernels."""

from typing import Final

from kinst.runtime.machine.boards.initrd import describe
from kinst.runtime.machine.devices.fdt import Node, Value, cells64
from kinst.runtime.machine.exceptions.riscv64 import MEIP, MSIP, MTIP, SEIP
from kinst.runtime.machine.machine import Machine

_ISA = (
    "rv64imafdc_zicsr_zifencei"  # no Zba, Zbb, Sstc, H: Unicorn does not have them, and guests use what is advertised
)
FIRMWARE_SIZE: Final = 0x8_0000  # RAM that OpenSBI reserves, so that guests find the same memory as under QEMU
VIRTIO_SLOT: Final = 0x1000
_PHANDLE_CPU, _PHANDLE_PLIC, _PHANDLE_TEST = 1, 0x100, 0x101
# A fixed random seed, so that runs can be compared. QEMU's differs in each run; without one, Linux waits for noise.
_SEED: Final = bytes(range(32))
_PCI_SLOTS, _PCI_PINS = 4, 4

Device = tuple[str, dict[str, Value]]  # a node's name and its properties


def device_tree(machine: Machine, initrd: range | None, *, has_firmware: bool) -> Node:
    """All devices of QEMU's board, in its order, by which Linux numbers interrupts. If the machine acts as firmware,
    the tree also has the memory that firmware reserves."""
    root = _root(machine, initrd)
    soc = _add_board(root, machine)
    for name, properties in (_fw_cfg(machine), _flash(machine), _PLATFORM_BUS):
        root.add(name, properties)
    devices = machine.facts.devices
    first, count = devices["virtio"], devices["virtio"].size // VIRTIO_SLOT
    assert first.interrupt is not None
    slots = [_virtio(first.address + slot * VIRTIO_SLOT, first.interrupt + slot) for slot in reversed(range(count))]
    for name, properties in (
        *(_rtc(machine), _serial(machine), _test(machine), _pci(machine)),
        *slots,
        *(_plic(machine), _clint(machine)),
    ):
        soc.add(name, properties)
    chosen = next(child for child in root.children if child.name == "chosen")
    chosen.properties["rng-seed"] = _SEED
    if has_firmware:
        base = machine.facts.ram_base
        reserved = root.add("reserved-memory", {"#address-cells": 2, "#size-cells": 2, "ranges": None})
        reserved.add(f"mmode_resv0@{base:x}", {"reg": cells64(base, FIRMWARE_SIZE)})
    return root


def _root(machine: Machine, initrd: range | None) -> Node:
    facts = machine.facts
    root = Node("", {"#address-cells": 2, "#size-cells": 2, "compatible": "riscv-virtio", "model": "riscv-virtio,qemu"})
    chosen = root.add("chosen", {"stdout-path": f"/soc/serial@{facts.devices['console'].address:x}"})
    if machine.command_line is not None:
        chosen.properties["bootargs"] = machine.command_line
    describe(chosen, initrd)
    if machine.kaslr_seed is not None:
        chosen.properties["kaslr-seed"] = machine.kaslr_seed.to_bytes(8, "big")
    root.add(
        f"memory@{facts.ram_base:x}",
        {"device_type": "memory", "reg": cells64(facts.ram_base, machine.ram_size)},
    )
    return root


def _add_board(root: Node, machine: Machine) -> Node:
    """Add the CPUs, the power switch and the bus of the devices; returns the bus."""
    _add_cpus(root, machine)
    root.add("poweroff", {"value": 0x5555, "offset": 0, "regmap": _PHANDLE_TEST, "compatible": "syscon-poweroff"})
    root.add("reboot", {"value": 0x7777, "offset": 0, "regmap": _PHANDLE_TEST, "compatible": "syscon-reboot"})
    return root.add("soc", {"#address-cells": 2, "#size-cells": 2, "compatible": "simple-bus", "ranges": None})


def _add_cpus(root: Node, machine: Machine) -> None:
    cpus = root.add("cpus", {"#address-cells": 1, "#size-cells": 0, "timebase-frequency": machine.facts.timebase})
    for cpu in machine.cpus:
        node = cpus.add(
            f"cpu@{cpu.number:x}",
            {
                "device_type": "cpu",
                "reg": cpu.number,
                "status": "okay",
                "compatible": "riscv",
                "riscv,isa": _ISA,
                "mmu-type": "riscv,sv48",
            },
        )
        node.add(
            "interrupt-controller",
            {
                "#interrupt-cells": 1,
                "interrupt-controller": None,
                "compatible": "riscv,cpu-intc",
                "phandle": _PHANDLE_CPU + cpu.number,
            },
        )


def _harts(machine: Machine) -> list[int]:
    return [_PHANDLE_CPU + cpu.number for cpu in machine.cpus]


def _test(machine: Machine) -> Device:
    test = machine.facts.devices["test"]
    return f"test@{test.address:x}", {
        "phandle": _PHANDLE_TEST,
        "reg": cells64(test.address, test.size),
        "compatible": ("sifive,test1", "sifive,test0", "syscon"),
    }


def _clint(machine: Machine) -> Device:
    clint = machine.facts.devices["clint"]
    return f"clint@{clint.address:x}", {
        "interrupts-extended": tuple(cell for hart in _harts(machine) for cell in (hart, MSIP, hart, MTIP)),
        "reg": cells64(clint.address, clint.size),
        "compatible": ("sifive,clint0", "riscv,clint0"),
    }


def _plic(machine: Machine) -> Device:
    plic = machine.facts.devices["plic"]
    return f"plic@{plic.address:x}", {
        "phandle": _PHANDLE_PLIC,
        "riscv,ndev": plic.properties["sources"] - 1,
        "reg": cells64(plic.address, plic.size),
        "interrupts-extended": tuple(cell for hart in _harts(machine) for cell in (hart, MEIP, hart, SEIP)),
        "interrupt-controller": None,
        "compatible": ("sifive,plic-1.0.0", "riscv,plic0"),
        "#address-cells": 0,
        "#interrupt-cells": 1,
    }


def _serial(machine: Machine) -> Device:
    console = machine.facts.devices["console"]
    return f"serial@{console.address:x}", {
        "interrupts": console.interrupt,
        "interrupt-parent": _PHANDLE_PLIC,
        "clock-frequency": 3_686_400,
        "reg": cells64(console.address, console.size),
        "compatible": "ns16550a",
    }


def _rtc(machine: Machine) -> Device:
    rtc = machine.facts.devices["rtc"]
    return f"rtc@{rtc.address:x}", {
        "interrupts": rtc.interrupt,
        "interrupt-parent": _PHANDLE_PLIC,
        "reg": cells64(rtc.address, rtc.size),
        "compatible": "google,goldfish-rtc",
    }


def _virtio(address: int, interrupt: int) -> Device:
    return f"virtio_mmio@{address:x}", {
        "interrupts": interrupt,
        "interrupt-parent": _PHANDLE_PLIC,
        "reg": cells64(address, VIRTIO_SLOT),
        "compatible": "virtio,mmio",
    }


def _fw_cfg(machine: Machine) -> Device:
    configuration = machine.facts.devices["fw-cfg"]
    return f"fw-cfg@{configuration.address:x}", {
        "dma-coherent": None,
        "reg": cells64(configuration.address, configuration.size),
        "compatible": "qemu,fw-cfg-mmio",
    }


def _flash(machine: Machine) -> Device:
    first, second = machine.facts.devices["flash"], machine.facts.devices["flash1"]
    return f"flash@{first.address:x}", {
        "bank-width": 4,
        "reg": cells64(first.address, first.size, second.address, second.size),
        "compatible": "cfi-flash",
    }


_PLATFORM_BUS: Final[Device] = (
    "platform-bus@4000000",
    {
        "interrupt-parent": _PHANDLE_PLIC,
        "ranges": (0, 0, 0x0400_0000, 0x0200_0000),
        "#address-cells": 1,
        "#size-cells": 1,
        "compatible": ("qemu,platform", "simple-bus"),
    },
)


def _pci(machine: Machine) -> Device:
    pci = machine.facts.devices["pci"]
    assert pci.interrupt is not None
    # slot and pin -> source of the PLIC; pins are rotated from slot to slot, as usual (PCI bridge 1.2, 9.1)
    routes = (
        (slot << 11, 0, 0, pin + 1, _PHANDLE_PLIC, pci.interrupt + (slot + pin) % _PCI_PINS)
        for slot in range(_PCI_SLOTS)
        for pin in range(_PCI_PINS)
    )
    ranges = (
        *(0x0100_0000, *cells64(0, 0x0300_0000, 0x1_0000)),  # I/O ports
        *(0x0200_0000, *cells64(0x4000_0000, 0x4000_0000, 0x4000_0000)),  # 32-bit memory
        *(0x0300_0000, *cells64(0x4_0000_0000, 0x4_0000_0000, 0x4_0000_0000)),  # 64-bit memory
    )
    return f"pci@{pci.address:x}", {
        "interrupt-map-mask": (0x1800, 0, 0, 7),
        "interrupt-map": tuple(cell for route in routes for cell in route),
        "ranges": ranges,
        "reg": cells64(pci.address, pci.size),
        "dma-coherent": None,
        "bus-range": (0, 0xFF),
        "linux,pci-domain": 0,
        "device_type": "pci",
        "compatible": "pci-host-ecam-generic",
        "#size-cells": 2,
        "#interrupt-cells": 1,
        "#address-cells": 3,
    }
