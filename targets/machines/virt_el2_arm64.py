"""QEMU's virt board for arm64 with virtualization=on: CPUs that have EL2, for hypervisors such as Xen."""

from dataclasses import replace

from kinst.targets.machines.machine import DeviceFacts
from kinst.targets.machines.virt_arm64 import MACHINE as VIRT

MACHINE = replace(
    VIRT,
    name="virt-el2-arm64",
    qemu=replace(VIRT.qemu, words=("qemu-system-aarch64", "-M", "virt,virtualization=on", "-cpu", "cortex-a57")),
    devices={
        **VIRT.devices,
        # The interrupt is a private one (PPI), counted from 16 as in a device tree.
        "gic-hypervisor": DeviceFacts("gic_virtual", 0x0803_0000, 0x1000, interrupt=9),
        "gic-virtual-cpu": DeviceFacts("gic_virtual", 0x0804_0000, 0x2000),
    },
)
