"""QEMU's virt board for RISC-V: devices and device tree made, every hart started in M mode at the image's entry."""

from kinst.runtime.devices.clint import Clint
from kinst.runtime.devices.device import Line
from kinst.runtime.devices.fdt import Node, cells64, flatten
from kinst.runtime.devices.plic import Plic
from kinst.runtime.devices.sifive_test import SifiveTest
from kinst.runtime.devices.uart16550 import Uart16550
from kinst.runtime.exceptions.riscv64 import MEIP, MSIP, MTIP, SEIP, Riscv64Exceptions
from kinst.runtime.loader import Loaded
from kinst.runtime.machine import Machine
from kinst.runtime.paging.riscv64 import Riscv64Walker
from kinst.targets.errors import MachineError
from kinst.targets.machines.virt_riscv64 import PLIC_SOURCES

_ISA = (
    "rv64imafdc_zicsr_zifencei"  # no Zba, Zbb, Sstc, H: Unicorn does not have them, and guests use what is advertised
)
_FDT_ROOM = 0x20_0000  # the FDT lies this far below the end of RAM, 2 MiB aligned, as QEMU puts it
_HIGHEST_FDT = 0xC000_0000  # QEMU keeps it where 32-bit code reaches it (virt.c: 3 GiB)
_PHANDLE_CPU, _PHANDLE_PLIC, _PHANDLE_TEST = 1, 0x100, 0x101


class VirtRiscv64:
    """See `kinst.runtime.machine.Board`."""

    def __init__(self) -> None:
        """Nothing is attached yet."""
        self._clint: Clint | None = None
        self.exceptions = Riscv64Exceptions(self._time)
        self.walker = Riscv64Walker()

    def _time(self) -> int:
        assert self._clint is not None, "an instruction was executed before the board was started"
        return self._clint.time()

    def start(self, machine: Machine, image: Loaded) -> None:
        """Attach the devices, write the FDT, start all harts with a0 = hartid and a1 = FDT."""
        self._attach(machine)
        blob = flatten(_device_tree(machine))
        address = _fdt_address(machine, image, len(blob))
        machine.memory.write(address, blob)
        for cpu in machine.cpus:
            cpu.registers.set("mhartid", cpu.number)
            cpu.registers.set("a0", cpu.number)
            cpu.registers.set("a1", address)
            cpu.registers.set("pc", image.entry)
            cpu.power_on()

    def _attach(self, machine: Machine) -> None:
        devices = machine.facts.devices
        software = [cpu.line(MSIP) for cpu in machine.cpus]
        timers = [cpu.line(MTIP) for cpu in machine.cpus]
        contexts: list[Line] = [cpu.line(bit) for cpu in machine.cpus for bit in (MEIP, SEIP)]
        self._clint = Clint(machine.clock, machine.facts.timebase, software, timers)
        plic = Plic(PLIC_SOURCES, contexts)
        console = devices["console"]
        assert console.interrupt is not None
        uart = Uart16550(machine, plic.line(console.interrupt))
        machine.attach(self._clint, devices["clint"].address)
        machine.attach(plic, devices["plic"].address)
        machine.attach(uart, console.address)
        machine.attach(SifiveTest(machine.power_off), devices["test"].address)
        machine.attach_timed(self._clint)
        machine.attach_timed(uart)


def _fdt_address(machine: Machine, image: Loaded, size: int) -> int:
    """As high as QEMU puts it, but not over the image."""
    end = min(machine.facts.ram_base + machine.ram_size, _HIGHEST_FDT)
    address = end - size - _FDT_ROOM & ~(_FDT_ROOM - 1)
    if address < image.end:
        raise MachineError(f"no room for the device tree behind the image, which ends at {image.end:#x}: more --memory")
    return address


def _device_tree(machine: Machine) -> Node:
    facts = machine.facts
    root = Node("", {"#address-cells": 2, "#size-cells": 2, "compatible": "riscv-virtio", "model": "riscv-virtio,qemu"})
    test, clint, plic, console = (facts.devices[name] for name in ("test", "clint", "plic", "console"))
    root.add("chosen", {"stdout-path": f"/soc/serial@{console.address:x}"})
    root.add(
        f"memory@{facts.ram_base:x}",
        {"device_type": "memory", "reg": cells64(facts.ram_base, machine.ram_size)},
    )
    _add_cpus(root, machine)
    root.add("poweroff", {"value": 0x5555, "offset": 0, "regmap": _PHANDLE_TEST, "compatible": "syscon-poweroff"})
    root.add("reboot", {"value": 0x7777, "offset": 0, "regmap": _PHANDLE_TEST, "compatible": "syscon-reboot"})
    soc = root.add("soc", {"#address-cells": 2, "#size-cells": 2, "compatible": "simple-bus", "ranges": None})
    harts = [_PHANDLE_CPU + cpu.number for cpu in machine.cpus]
    soc.add(
        f"test@{test.address:x}",
        {
            "phandle": _PHANDLE_TEST,
            "reg": cells64(test.address, test.size),
            "compatible": ("sifive,test1", "sifive,test0", "syscon"),
        },
    )
    soc.add(
        f"clint@{clint.address:x}",
        {
            "interrupts-extended": tuple(cell for hart in harts for cell in (hart, MSIP, hart, MTIP)),
            "reg": cells64(clint.address, clint.size),
            "compatible": ("sifive,clint0", "riscv,clint0"),
        },
    )
    soc.add(
        f"plic@{plic.address:x}",
        {
            "phandle": _PHANDLE_PLIC,
            "riscv,ndev": PLIC_SOURCES - 1,
            "reg": cells64(plic.address, plic.size),
            "interrupts-extended": tuple(cell for hart in harts for cell in (hart, MEIP, hart, SEIP)),
            "interrupt-controller": None,
            "compatible": ("sifive,plic-1.0.0", "riscv,plic0"),
            "#address-cells": 0,
            "#interrupt-cells": 1,
        },
    )
    soc.add(
        f"serial@{console.address:x}",
        {
            "interrupts": console.interrupt,
            "interrupt-parent": _PHANDLE_PLIC,
            "clock-frequency": 3_686_400,
            "reg": cells64(console.address, console.size),
            "compatible": "ns16550a",
        },
    )
    return root


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


BOARD = VirtRiscv64
