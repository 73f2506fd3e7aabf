"""QEMU's virt board for arm64 (hw/arm/virt.c, gic-version=2): what U-Boot, Linux and Xen expect of it."""

from kinst.targets.machines.machine import CounterSource, DeviceFacts, MachineFacts, QemuFacts

# Interrupts are shared ones (SPI), counted from 0 as in a device tree.
MACHINE = MachineFacts(
    name="virt-arm64",
    arch="arm64",
    ram_base=0x4000_0000,
    ram_size=128 << 20,
    devices={
        "gic": DeviceFacts("gicv2", 0x0800_0000, 0x1000),
        "gic-cpu": DeviceFacts("gicv2", 0x0801_0000, 0x2000),
        "gic-v2m": DeviceFacts("gicv2m", 0x0802_0000, 0x1000, interrupt=48),
        "console": DeviceFacts("pl011", 0x0900_0000, 0x1000, interrupt=1),
        "rtc": DeviceFacts("pl031", 0x0901_0000, 0x1000, interrupt=2),
        "gpio": DeviceFacts("pl061", 0x0903_0000, 0x1000, interrupt=7),
        "fw-cfg": DeviceFacts("fw_cfg", 0x0902_0000, 0x18),
        "virtio": DeviceFacts("virtio_mmio", 0x0A00_0000, 0x4000, interrupt=16),
        "flash": DeviceFacts("cfi_flash", 0x0400_0000, 0x0400_0000),
        "pci": DeviceFacts("pci_ecam", 0x40_1000_0000, 0x1000_0000, interrupt=3),
    },
    timebase=62_500_000,
    maximum_cpus=8,
    qemu=QemuFacts(
        ("qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a57"), CounterSource.CPU_PROPERTY, runs_from_zero=True
    ),
    trampoline_base=None,
    # The first flash bank: firmware is linked there and runs in place. Plain memory here, so that it can be patched.
    other_memory=((0, 0x0400_0000),),
)
