"""QEMU's virt board for RISC-V: its devices and device tree, and harts started at the image's entry.

Every hart starts in M mode, unless the image is where firmware puts the next stage. In that case there is no firmware:
hart 0 starts in S mode, and the machine itself answers SBI calls.
"""

import struct
from typing import Final

from kinst.runtime.machine.boards.given_tree import adapted
from kinst.runtime.machine.boards.initrd import place_below
from kinst.runtime.machine.boards.riscv64_hart import reset
from kinst.runtime.machine.boards.virt_riscv64_tree import VIRTIO_SLOT, device_tree
from kinst.runtime.machine.boards.virtio import virtio_slots
from kinst.runtime.machine.device import Line
from kinst.runtime.machine.devices.cfi_flash import CfiFlash
from kinst.runtime.machine.devices.fdt import flatten
from kinst.runtime.machine.devices.fw_cfg import FirmwareConfiguration, configuration
from kinst.runtime.machine.devices.pci_ecam import PciEcam
from kinst.runtime.machine.devices.riscv.clint import Clint, MachineTime
from kinst.runtime.machine.devices.riscv.goldfish_rtc import GoldfishRtc
from kinst.runtime.machine.devices.riscv.plic import Plic
from kinst.runtime.machine.devices.riscv.sbi import Sbi
from kinst.runtime.machine.devices.riscv.sifive_test import SifiveTest
from kinst.runtime.machine.devices.uart16550 import Uart16550
from kinst.runtime.machine.devices.virtio.mmio import VirtioSlots
from kinst.runtime.machine.exceptions.riscv64 import (
    MEIP,
    MSIP,
    MTIP,
    SEIP,
    SSIP,
    STIP,
    SUPERVISOR,
    Riscv64Exceptions,
)
from kinst.runtime.machine.loading.linux_image import HEADER_SIZE, has_boot_header
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.machine import Cpu, Machine
from kinst.targets.errors import MachineError
from kinst.targets.machines.machine import DeviceFacts

_FDT_ALIGNMENT: Final = 0x20_0000
_FDT_DISTANCE = 0x20_0000  # how far firmware's FDT is below the end of RAM; a kernel's is where QEMU puts it
_HIGHEST_FDT = 0xC000_0000  # QEMU keeps it below this, in reach of 32-bit code (virt.c: 3 GiB)
_NEXT_STAGE: Final = 0x20_0000  # OpenSBI's FW_JUMP_OFFSET: how far from the start of RAM the next stage is
_DYNAMIC_MAGIC, _DYNAMIC_VERSION = int.from_bytes(b"OSBI", "little"), 2
_POWER_ON: Final = 1_767_225_600  # the RTC's time at power-on: 2026-01-01. Fixed, so that runs can be compared


class VirtRiscv64:
    """The board virt-riscv64; implements `kinst.runtime.machine.board.Board`."""

    def __init__(self, machine: Machine) -> None:
        """Nothing is attached yet."""
        self._machine = machine
        self._time = MachineTime(machine.clock, machine.facts.timebase)
        self.exceptions = Riscv64Exceptions(self._time.ticks)

    def start(self, image: Loaded) -> None:
        """Attach the devices, write the FDT, start the harts with a0 = hartid and a1 = FDT."""
        machine = self._machine
        self.exceptions.on_reset(reset)
        is_kernel = _is_next_stage(machine, image)
        clint = self._make_clint(machine, SSIP if is_kernel else MSIP, STIP if is_kernel else MTIP)
        plic = _attach(machine, clint)
        _attach_all(machine, plic)
        size = len(_device_tree(machine, range(0), has_firmware=is_kernel))
        address = _fdt_address(machine, image, size + (0 if is_kernel else _FDT_DISTANCE))
        initrd = place_below(machine, address, image.end)
        blob = _device_tree(machine, initrd, has_firmware=is_kernel)
        machine.files.refuse(range(address, address + len(blob)), "the device tree")
        machine.memory.write(address, blob)
        for cpu in machine.cpus:
            cpu.registers.set("mhartid", cpu.number)
        if is_kernel:
            self._start_kernel(machine, clint, image.physical_entry, address)
            return
        for cpu in machine.cpus:
            cpu.registers.set("a0", cpu.number)
            cpu.registers.set("a1", address)
            cpu.registers.set("a2", _next_stage(machine, address + len(blob)))
            cpu.registers.set("pc", image.entry)
            cpu.power_on()

    def _make_clint(self, machine: Machine, software: int, timer: int) -> Clint:
        """`software` and `timer` are the bits of mip that it drives."""
        lines = ([cpu.line(bit) for cpu in machine.cpus] for bit in (software, timer))
        return Clint(self._time, *lines)

    def _start_kernel(self, machine: Machine, clint: Clint, entry: int, fdt: int) -> None:
        interrupts = [cpu.line(SSIP) for cpu in machine.cpus]
        self.exceptions.run_above(Sbi(machine, clint, interrupts, self._start_hart))
        reset(machine.cpus[0], entry, fdt)

    def _start_hart(self, cpu: Cpu, entry: int, argument: int) -> None:
        self.exceptions.reset_before_running(cpu, entry, argument)


def _attach(machine: Machine, clint: Clint) -> Plic:
    """Attach what CPUs and the console need."""
    devices = machine.facts.devices
    contexts: list[Line] = [cpu.line(bit) for cpu in machine.cpus for bit in (MEIP, SEIP)]
    plic = Plic(devices["plic"].properties["sources"], contexts)
    console = devices["console"]
    uart = Uart16550(machine, plic.line(_number(console)))
    machine.attach(clint, devices["clint"].address)
    machine.attach(plic, devices["plic"].address)
    machine.attach(uart, console.address)
    machine.attach(SifiveTest(machine.power_off), devices["test"].address)
    machine.attach_timed(clint)
    return plic


def _device_tree(machine: Machine, initrd: range | None, *, has_firmware: bool) -> bytes:
    """The flattened tree of the board, or of --dtb."""
    if machine.device_tree is not None:
        return adapted(machine, machine.device_tree, initrd)
    return flatten(device_tree(machine, initrd, has_firmware=has_firmware))


def _next_stage(machine: Machine, end: int) -> int:
    """Write what OpenSBI's fw_dynamic needs, the address of the next stage, after the device tree. Returns its address.

    struct fw_dynamic_info (include/sbi/fw_dynamic.h), words of 64 bits: magic  version  next_addr  next_mode  options
    boot_hart. Without a file of --load the next stage is at 0, as QEMU has it: firmware runs until it goes there.
    """
    first = machine.files.first or 0
    address = end + 7 & -8
    information = struct.pack("<6Q", _DYNAMIC_MAGIC, _DYNAMIC_VERSION, first, SUPERVISOR, 0, 0)
    machine.files.refuse(range(address, address + len(information)), "the information for firmware")
    machine.memory.write(address, information)
    return address


def _is_next_stage(machine: Machine, image: Loaded) -> bool:
    """Whether firmware would start the image: it is where firmware puts it, or is Linux anywhere (--kaslr-seed)."""
    lowest, size = min(((physical, size) for _, physical, size in image.segments), default=(0, 0))
    if size >= HEADER_SIZE and has_boot_header(machine.memory.read(lowest, HEADER_SIZE), machine.arch):
        return True
    return lowest == machine.facts.ram_base + _NEXT_STAGE


def _attach_all(machine: Machine, plic: Plic) -> None:
    """Attach the remaining devices, which CPUs and the console do not need."""
    devices = machine.facts.devices
    clock = GoldfishRtc(machine.clock, plic.line(_number(devices["rtc"])), _POWER_ON)
    machine.attach(clock, devices["rtc"].address)
    machine.attach(_make_slots(machine, plic), devices["virtio"].address)
    machine.attach(FirmwareConfiguration(configuration(len(machine.cpus))), devices["fw-cfg"].address)
    machine.attach(PciEcam(devices["pci"].size), devices["pci"].address)
    for name in ("flash", "flash1"):
        machine.attach(CfiFlash(devices[name].size), devices[name].address)
    machine.attach_timed(clock)


def _make_slots(machine: Machine, plic: Plic) -> VirtioSlots:
    """The slots; the first device is in the last one, which the device tree begins with."""
    facts = machine.facts.devices["virtio"]
    order = range(facts.size // VIRTIO_SLOT)[::-1]
    return virtio_slots(machine, VIRTIO_SLOT, order, lambda slot: plic.line(_number(facts) + slot))


def _number(device: DeviceFacts) -> int:
    assert device.interrupt is not None
    return device.interrupt


def _fdt_address(machine: Machine, image: Loaded, size: int) -> int:
    """The address of the device tree: as high as QEMU puts it, but not over the image."""
    end = min(machine.facts.ram_base + machine.ram_size, _HIGHEST_FDT)
    address = end - size & -_FDT_ALIGNMENT
    if address < image.end:
        raise MachineError(f"no room for the device tree behind the image, which ends at {image.end:#x}: more --memory")
    return address


BOARD = VirtRiscv64
