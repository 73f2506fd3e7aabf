"""pc-amd64: a PC as GRUB or QEMU's -kernel hands it to a kernel; ACPI switches it off.

Ports and interrupts are those of the IBM PC/AT; the ends of the run those of QEMU's "pc" machine.
"""

from kinst.targets.machines.machine import CounterSource, DeviceFacts, MachineFacts, QemuFacts, Space

MACHINE = MachineFacts(
    name="pc-amd64",
    arch="amd64",
    ram_base=0,
    ram_size=128 << 20,
    devices={
        "console": DeviceFacts("uart16550", 0x3F8, 8, 4, Space.PORTS),
        "pic": DeviceFacts("pic8259", 0x20, 2, None, Space.PORTS),
        "pic2": DeviceFacts("pic8259", 0xA0, 2, 2, Space.PORTS),
        "pic-trigger": DeviceFacts("pic8259", 0x4D0, 2, None, Space.PORTS),
        "timer": DeviceFacts("pit8254", 0x40, 4, 0, Space.PORTS),
        "speaker": DeviceFacts("pit8254", 0x61, 1, None, Space.PORTS),
        "keyboard": DeviceFacts("i8042", 0x60, 1, 1, Space.PORTS),
        "keyboard-command": DeviceFacts("i8042", 0x64, 1, 12, Space.PORTS),  # the mouse's interrupt
        "rtc": DeviceFacts("rtc", 0x70, 2, 8, Space.PORTS),
        "post": DeviceFacts("port_io", 0x80, 1, None, Space.PORTS),
        "exit": DeviceFacts("port_io", 0xF4, 4, None, Space.PORTS),
        "power-events": DeviceFacts("port_io", 0x600, 4, 9, Space.PORTS),
        "power": DeviceFacts("port_io", 0x604, 2, None, Space.PORTS),
        "reset": DeviceFacts("port_io", 0xCF9, 1, None, Space.PORTS),
        # Only with disks or other virtio devices. Their memory is a small part of what QEMU has.
        "pci": DeviceFacts("pci_bus", 0xCF8, 8, None, Space.PORTS),
        "pci-memory": DeviceFacts("pci_bus", 0xFEB0_0000, 0x10_0000),
        "ioapic": DeviceFacts("ioapic", 0xFEC0_0000, 0x1000),
        "lapic": DeviceFacts("lapic", 0xFEE0_0000, 0x1000),
    },
    timebase=1_000_000_000,
    maximum_cpus=8,
    qemu=QemuFacts(("qemu-system-x86_64", "-M", "q35"), CounterSource.HOST),
    trampoline_base=None,
    moves_kernels=True,
    loads_multiboot=True,
)
