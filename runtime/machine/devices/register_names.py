"""The model of a device -> the names of its registers, as its manual has them. Data for messages and probes.

A name stands for all bytes of a register, and for all words of one that has one for each interrupt or CPU. What a model
answers and the table does not have is `OTHER`.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from kinst.targets.machines.machine import DeviceFacts

OTHER: Final = "other"
_Rows = tuple[tuple[int, int, str], ...]  # offset, size in bytes, name


class RegisterNames:
    """The registers of one device."""

    def __init__(self, rows: Iterable[tuple[int, int, str]] = (), period: int = 0) -> None:
        """`rows` are offsets, sizes in bytes and names. A device of several equal parts begins again after `period`
        bytes; 0: it has one part."""
        self._rows = sorted(rows)
        self._starts = [start for start, _, _ in self._rows]
        self._period = period

    @property
    def names(self) -> tuple[str, ...]:
        """All names, each once, in the order of offsets."""
        return tuple(dict.fromkeys(name for _, _, name in self._rows))

    def at(self, offset: int) -> str:
        """The name of the register that has the byte at an offset, or `OTHER`."""
        within = offset % self._period if self._period else offset
        row = bisect_right(self._starts, within) - 1
        if row < 0:
            return OTHER
        start, size, name = self._rows[row]
        return name if within < start + size else OTHER


def register_names(device: str, facts: DeviceFacts) -> RegisterNames:
    """The names for a device of a board, by its name there and its kind."""
    if facts.model in _SPACED:
        return RegisterNames(_words("", _NS16550, step=1 << facts.properties.get("reg-shift", 0)))
    return _TABLES.get((facts.model, device)) or _TABLES.get((facts.model, "")) or _NONE


def _words(prefix: str, names: str, start: int = 0, step: int = 4) -> _Rows:
    """Registers side by side. A name `-` is a place without one."""
    rows = [(start + step * at, step, prefix + name) for at, name in enumerate(names.split())]
    return tuple(row for row in rows if not row[2].endswith("-"))


_NONE: Final = RegisterNames()
# DDI 0183 table 3-1; the identification is that of every PrimeCell.
_CELL: Final = ((0xFE0, 16, "PeriphID"), (0xFF0, 16, "PCellID"))
_PL011: Final = (
    *_words("UART", "DR RSR"),
    (0x18, 4, "UARTFR"),
    *_words("UART", "ILPR IBRD FBRD LCR_H CR IFLS IMSC RIS MIS ICR DMACR", 0x20),
    *_CELL,
)
_PL031: Final = (*_words("RTC", "DR MR LR CR IMSC RIS MIS ICR"), *_CELL)  # DDI 0224 table 3-1
_PL061: Final = (  # DDI 0190 table 3-1
    (0, 0x400, "GPIODATA"),
    *_words("GPIO", "DIR IS IBE IEV IE RIS MIS IC AFSEL", 0x400),
    *_CELL,
)
_DISTRIBUTOR: Final = (  # IHI 0048B table 4-1
    *_words("GICD_", "CTLR TYPER IIDR"),
    (0x080, 0x80, "GICD_IGROUPR"),
    *_words("GICD_", "ISENABLER ICENABLER ISPENDR ICPENDR ISACTIVER ICACTIVER", 0x100, 0x80),
    *_words("GICD_", "IPRIORITYR ITARGETSR", 0x400, 0x400),
    (0xC00, 0x100, "GICD_ICFGR"),
    (0xF00, 4, "GICD_SGIR"),
    *_words("GICD_", "CPENDSGIR SPENDSGIR", 0xF10, 0x10),
    (0xFD0, 0x30, "GICD_PIDR"),
)
_CPU_INTERFACE: Final = (  # IHI 0048B table 4-2
    *_words("GICC_", "CTLR PMR BPR IAR EOIR RPR HPPIR ABPR AIAR AEOIR AHPPIR"),
    (0xD0, 16, "GICC_APR"),
    (0xE0, 16, "GICC_NSAPR"),
    (0xFC, 4, "GICC_IIDR"),
    (0x1000, 4, "GICC_DIR"),
)
_HYPERVISOR: Final = (  # IHI 0048B table 5-1
    *_words("GICH_", "HCR VTR VMCR - MISR"),
    (0x20, 8, "GICH_EISR"),
    (0x30, 8, "GICH_ELRSR"),
    (0xF0, 4, "GICH_APR"),
    (0x100, 0x100, "GICH_LR"),
)
_MESSAGES: Final = ((0x008, 4, "MSI_TYPER"), (0x040, 4, "MSI_SETSPI_NS"), (0xFCC, 4, "MSI_IIDR"))
_FW_CFG: Final = ((0, 8, "data"), (8, 2, "selector"), (16, 8, "dma"))
_NS16550: Final = "RBR_THR IER IIR_FCR LCR MCR LSR MSR SCR"
_SPACED: Final = frozenset({"ns16550", "dw-apb-uart"})  # their registers are as far apart as `reg-shift` says
_SP804: Final = "Load Value Control IntClr RIS MIS BGLoad"  # DDI 0271 table 3-1
_VIRTIO: Final = (  # virtio 1.2, 4.2.2
    *_words("", "MagicValue Version DeviceID VendorID DeviceFeatures DeviceFeaturesSel - - DriverFeatures"),
    (0x024, 4, "DriverFeaturesSel"),
    *_words("", "QueueSel QueueNumMax QueueNum - - QueueReady - - QueueNotify", 0x030),
    *_words("", "InterruptStatus InterruptACK - - Status", 0x060),
    *_words("", "QueueDesc QueueDriver QueueDevice", 0x080, 0x10),
    (0x0FC, 4, "ConfigGeneration"),
    (0x100, 0x100, "Config"),
)
_CLINT: Final = ((0, 0x4000, "msip"), (0x4000, 0x7FF8, "mtimecmp"), (0xBFF8, 8, "mtime"))
_CONTEXTS: Final = tuple(
    (0x20_0000 + 0x1000 * context + 4 * at, 4, name)
    for context in range(64)
    for at, name in enumerate(("threshold", "claim_complete"))
)
_PLIC: Final = ((0, 0x1000, "priority"), (0x1000, 0x80, "pending"), (0x2000, 0x1F_E000, "enable"), *_CONTEXTS)
_GOLDFISH: Final = _words(
    "", "TIME_LOW TIME_HIGH ALARM_LOW ALARM_HIGH IRQ_ENABLED CLEAR_ALARM ALARM_STATUS CLEAR_INTERRUPT"
)
_LAPIC: Final = (  # SDM volume 3, table 11-1
    (0x20, 16, "ID"), (0x30, 16, "VERSION"), (0x80, 16, "TPR"), (0x90, 16, "APR"), (0xA0, 16, "PPR"),
    (0xB0, 16, "EOI"), (0xC0, 16, "RRD"), (0xD0, 16, "LDR"), (0xE0, 16, "DFR"), (0xF0, 16, "SVR"),
    (0x100, 0x80, "ISR"), (0x180, 0x80, "TMR"), (0x200, 0x80, "IRR"), (0x280, 16, "ESR"), (0x2F0, 16, "LVT_CMCI"),
    (0x300, 16, "ICR_LOW"), (0x310, 16, "ICR_HIGH"), (0x320, 16, "LVT_TIMER"), (0x330, 16, "LVT_THERMAL"),
    (0x340, 16, "LVT_PERFORMANCE"), (0x350, 16, "LVT_LINT0"), (0x360, 16, "LVT_LINT1"), (0x370, 16, "LVT_ERROR"),
    (0x380, 16, "INITIAL_COUNT"), (0x390, 16, "CURRENT_COUNT"), (0x3E0, 16, "DIVIDE"),
)  # fmt: skip
_TABLES: Final[Mapping[tuple[str, str], RegisterNames]] = MappingProxyType(
    {
        ("pl011", ""): RegisterNames(_PL011),
        ("pl031", ""): RegisterNames(_PL031),
        ("pl061", ""): RegisterNames(_PL061),
        ("gicv2", ""): RegisterNames(_DISTRIBUTOR),
        ("gicv2-cpu", ""): RegisterNames(_CPU_INTERFACE),
        ("gic-virtual", ""): RegisterNames(_HYPERVISOR),
        ("gic-virtual-cpu", ""): RegisterNames(_CPU_INTERFACE),
        ("gicv2m", ""): RegisterNames(_MESSAGES),
        ("fw-cfg", ""): RegisterNames(_FW_CFG),
        ("bcm2835-aux-uart", ""): RegisterNames(_words("AUX_MU_", "IO IER IIR LCR MCR LSR MSR SCRATCH CNTL STAT BAUD")),
        ("meson-uart", ""): RegisterNames(_words("AML_UART_", "WFIFO RFIFO CONTROL STATUS MISC REG5")),
        ("mvebu-uart", ""): RegisterNames(_words("UART_", "RBR TSH CTRL STAT BRDV POSR")),
        ("sifive-uart", ""): RegisterNames(_words("", "txdata rxdata txctrl rxctrl ie ip div")),
        ("sp804", ""): RegisterNames((*_words("Timer1", _SP804), *_words("Timer2", _SP804, 0x20))),
        ("virtio-mmio", ""): RegisterNames(_VIRTIO, period=0x200),
        ("clint", ""): RegisterNames(_CLINT),
        ("plic", ""): RegisterNames(_PLIC),
        ("goldfish-rtc", ""): RegisterNames(_GOLDFISH),
        ("sifive-test", ""): RegisterNames(((0, 4, "FINISH"),)),
        ("pic8259", ""): RegisterNames(_words("", "command data", step=1)),
        ("pic8259", "pic-trigger"): RegisterNames(_words("", "ELCR1 ELCR2", step=1)),
        ("pit8254", ""): RegisterNames(_words("", "counter0 counter1 counter2 control", step=1)),
        ("pit8254", "speaker"): RegisterNames(((0, 1, "control"),)),
        ("i8042", ""): RegisterNames(((0, 1, "data"),)),
        ("i8042", "keyboard-command"): RegisterNames(((0, 1, "command_status"),)),
        ("rtc", ""): RegisterNames(_words("", "index data", step=1)),
        ("ioapic", ""): RegisterNames(((0, 4, "IOREGSEL"), (0x10, 4, "IOWIN"), (0x40, 4, "EOIR"))),
        ("lapic", ""): RegisterNames(_LAPIC),
        ("pci-bus", "pci"): RegisterNames(((0, 4, "CONFIG_ADDRESS"), (4, 4, "CONFIG_DATA"))),
        ("port-io", "power"): RegisterNames(((0, 2, "PM1a_CNT"),)),
        ("port-io", "power-events"): RegisterNames(((0, 2, "PM1a_STS"), (2, 2, "PM1a_EN"))),
        ("port-io", "reset"): RegisterNames(((0, 1, "RST_CNT"),)),
        ("port-io", "post"): RegisterNames(((0, 1, "code"),)),
        ("port-io", "exit"): RegisterNames(((0, 4, "code"),)),
    }
)
