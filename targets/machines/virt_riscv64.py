"""QEMU's virt board for RISC-V (hw/riscv/virt.c): what OpenSBI, U-Boot and Linux expect of it."""

from kinst.targets.machines.machine import CounterSource, DeviceFacts, MachineFacts, QemuFacts

PLIC_SOURCES = 97  # source 0 does not exist

MACHINE = MachineFacts(
    name="virt-riscv64",
    arch="riscv64",
    ram_base=0x8000_0000,
    ram_size=128 << 20,
    devices={
        "test": DeviceFacts("sifive_test", 0x0010_0000, 0x1000),
        "clint": DeviceFacts("clint", 0x0200_0000, 0x1_0000),
        "plic": DeviceFacts("plic", 0x0C00_0000, 0x60_0000),
        "console": DeviceFacts("uart16550", 0x1000_0000, 0x100, interrupt=10),
        "rtc": DeviceFacts("goldfish_rtc", 0x0010_1000, 0x1000, interrupt=11),
        "virtio": DeviceFacts("virtio_mmio", 0x1000_1000, 0x8000, interrupt=1),  # eight slots of a page, 1 to 8
        "fw-cfg": DeviceFacts("fw_cfg", 0x1010_0000, 0x18),
        "flash": DeviceFacts("cfi_flash", 0x2000_0000, 0x0200_0000),
        "flash1": DeviceFacts("cfi_flash", 0x2200_0000, 0x0200_0000),
        "pci": DeviceFacts("pci_ecam", 0x3000_0000, 0x1000_0000, interrupt=32),  # INTA to INTD of a slot
    },
    timebase=10_000_000,
    maximum_cpus=8,
    qemu=QemuFacts(
        ("qemu-system-riscv64", "-M", "virt"), CounterSource.TIMER_PROPERTY, runs_from_zero=True, firmware_size=2 << 20
    ),
    trampoline_base=None,
)
