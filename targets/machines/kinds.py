"""Kind of a device -> what a board file may say of it. The devices are in `kinst.runtime.machine.devices`."""

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from kinst.targets.values import dataclass

OWN_DEVICES: Final = "kinst.devices"  # the entry points of other packages' devices


@dataclass(frozen=True, slots=True)
class KindFacts:
    """One kind. `size`: bytes of its window unless the file says so; None: the file must. `properties` have defaults.
    `file`: the runtime's device file, if its name is another (`virtio_mmio`: `mmio` in the folder `virtio`)."""

    size: int | None
    properties: Mapping[str, int] = field(default_factory=dict)
    file: str = ""


KINDS: Final[Mapping[str, KindFacts]] = {
    # UARTs
    "bcm2835-aux-uart": KindFacts(0x40, file="uart16550"),
    "cdns-uart": KindFacts(0x1000, file="fifo_uart"),
    "dw-apb-uart": KindFacts(0x100, {"reg-shift": 2, "reg-io-width": 4}, file="spaced"),
    "exynos-uart": KindFacts(0x100, file="fifo_uart"),
    "geni-uart": KindFacts(0x4000, file="packed_uart"),
    "imx-uart": KindFacts(0x4000, file="fifo_uart"),
    "lpuart": KindFacts(0x1000, file="fifo_uart"),
    "meson-uart": KindFacts(0x18, file="fifo_uart"),
    "msm-uartdm": KindFacts(0x200, file="packed_uart"),
    "mvebu-uart": KindFacts(0x18, file="fifo_uart"),
    "ns16550": KindFacts(0x100, {"reg-shift": 0, "reg-io-width": 1}, file="uart16550"),
    "pl011": KindFacts(0x1000),
    "sifive-uart": KindFacts(0x1000, file="fifo_uart"),
    # interrupts and time
    "clint": KindFacts(0x1_0000),
    "gicv2": KindFacts(0x1000),
    "gicv2-cpu": KindFacts(0x2000, file="gicv2"),
    "gicv2m": KindFacts(0x1000),
    "gicv3": KindFacts(0x1_0000, file="gicv3_windows"),
    "gicv3-redistributors": KindFacts(0x10_0000, file="gicv3_windows"),
    "gic-virtual": KindFacts(0x1000),
    "gic-virtual-cpu": KindFacts(0x2000, file="gic_virtual"),
    "goldfish-rtc": KindFacts(0x1000),
    "pl031": KindFacts(0x1000),
    "plic": KindFacts(0x60_0000, {"sources": 128}),
    "sp804": KindFacts(0x1000, {"frequency": 1_000_000}),
    # watchdogs
    "dw-wdt": KindFacts(0x1000, {"frequency": 24_000_000}, file="watchdogs"),
    "sp805": KindFacts(0x1000, {"frequency": 24_000_000}, file="watchdogs"),
    # memory cards: those of one socket have the same card
    "bcm2835-gpio": KindFacts(0x100, {"socket": 0}),
    "bcm2835-sdhost": KindFacts(0x100, {"socket": 0}),
    "sdhci": KindFacts(0x100, {"socket": 0, "capabilities": 0x0521_34B4, "pending-insert": 0}),
    # the rest
    "bcm2835-mailbox": KindFacts(0x40, {"board-revision": 0}, file="bcm2835"),
    "bcm2835-timer": KindFacts(0x1000, file="bcm2835"),
    "cfi-flash": KindFacts(None),
    "dwc2": KindFacts(0x1_0000),
    "fw-cfg": KindFacts(0x18),
    "pci-ecam": KindFacts(None),
    "pl061": KindFacts(0x1000),
    "sifive-test": KindFacts(0x1000),
    "virtio-mmio": KindFacts(None),
    # a PC's
    "i8042": KindFacts(1),
    "ioapic": KindFacts(0x1000),
    "lapic": KindFacts(0x1000),
    "pci-bus": KindFacts(None),
    "pic8259": KindFacts(2),
    "pit8254": KindFacts(None),
    "port-io": KindFacts(None),
    "rtc": KindFacts(2),
}


def device_file(kind: str) -> str:
    """The name of the file that has the device of a kind."""
    return KINDS[kind].file or kind.replace("-", "_")
