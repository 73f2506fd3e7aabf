"""A device of a board file -> the device. Files of devices are imported when a board has one."""

from collections.abc import Callable
from typing import Final, Protocol

from kinst.runtime.machine.boards.memory_cards import Sockets
from kinst.runtime.machine.boards.own_devices import Guarded, own_device
from kinst.runtime.machine.device import Device, Line, Timed
from kinst.runtime.machine.machine import Machine
from kinst.runtime.machine.serial_line import SerialLine
from kinst.targets.errors import MachineError
from kinst.targets.machines.kinds import KINDS
from kinst.targets.machines.machine import DeviceFacts
from kinst.targets.values import dataclass

CONSOLE: Final = "console"  # the device that is the guest's serial line; other UARTs send to nobody
POWER_ON: Final = 1_767_225_600  # a clock's time at power-on: 2026-01-01. Fixed, so that runs can be compared


class Controller(Protocol):
    """The interrupt controller of a board."""

    def line(self, number: int) -> Line:
        """The input of an interrupt, as the board file numbers it."""
        ...


@dataclass(frozen=True, slots=True)
class Wire:
    """What a UART is connected to."""

    serial_line: SerialLine
    console_output: Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Place:
    """A device of the board file, and what it is connected to."""

    machine: Machine
    facts: DeviceFacts
    wire: Wire
    line: Line
    sockets: Sockets


def no_line(_level: bool) -> None:  # noqa: FBT001 - an interrupt line is its level
    """The line of a device without an interrupt, or of a board without a controller."""


def attach_device(
    machine: Machine, name: str, facts: DeviceFacts, line: Callable[[int], Line], sockets: Sockets
) -> None:
    """Make a device and attach it; one that acts by itself as such, too. `sockets`: those of the machine's cards."""
    # All that is sent is printed, since firmware may use another UART than its tree says; typed is at the console only.
    wire = Wire(machine.serial_line if name == CONSOLE else SerialLine(), machine.console_output)
    own = no_line if facts.interrupt is None else line(facts.interrupt)
    place = Place(machine, facts, wire, own, sockets)
    device = _virtio(place, line) if facts.model == "virtio-mmio" else _made(place, name)
    machine.attach(device if facts.model in KINDS else Guarded(device, facts.size, name), facts.address)
    if isinstance(device, Timed):
        machine.attach_timed(device)


def _made(place: Place, name: str) -> Device:
    maker = _maker(place, name)
    if place.facts.model in KINDS:
        return maker(place)
    try:
        return maker(place)
    except Exception as error:
        raise MachineError(f"devices.{name}: {place.facts.model}: {type(error).__name__}: {error}") from error


def _maker(place: Place, name: str) -> Callable[[Place], Device]:
    """What makes a device. Raises MachineError for one that its interrupt controller or architecture would have to
    make."""
    kind = place.facts.model
    found = MAKERS.get(kind) or (own_device(kind, place.machine.facts.file) if kind not in KINDS else None)
    if found is None:
        raise MachineError(
            f"{place.machine.facts.name}: devices.{name}: a {place.facts.model} belongs to an interrupt controller "
            f"that this board lacks, or to another architecture"
        )
    return found


def _virtio(place: Place, line: Callable[[int], Line]) -> Device:
    from kinst.runtime.machine.boards.virtio import virtio_slots
    from kinst.runtime.machine.devices.virtio.mmio import SLOT_SIZE

    first = place.facts.interrupt
    slots = range(place.facts.size // SLOT_SIZE)
    return virtio_slots(place.machine, SLOT_SIZE, slots, lambda slot: no_line if first is None else line(first + slot))


def _ns16550(place: Place) -> Device:
    from kinst.runtime.machine.devices.uart16550 import Uart16550
    from kinst.runtime.machine.devices.uarts.spaced import DESIGNWARE, Spaced

    shift = place.facts.properties.get("reg-shift", 2)
    others = DESIGNWARE if place.facts.model == "dw-apb-uart" else {}
    return Spaced(Uart16550(place.wire, place.line), shift, place.facts.size, others)


def _fifo_uart(place: Place) -> Device:
    from kinst.runtime.machine.devices.uarts.fifo_uart import LAYOUTS, FifoUart

    return FifoUart(LAYOUTS[place.facts.model], place.wire.console_output, place.wire.serial_line)


def _packed_uart(place: Place) -> Device:
    from kinst.runtime.machine.devices.uarts.packed_uart import PACKED, PackedUart

    return PackedUart(PACKED[place.facts.model], place.wire.console_output, place.wire.serial_line)


def _pl011(place: Place) -> Device:
    from kinst.runtime.machine.devices.arm.pl011 import Pl011

    return Pl011(place.wire.console_output, place.wire.serial_line, place.line)


def _pl031(place: Place) -> Device:
    from kinst.runtime.machine.devices.arm.pl031 import Pl031

    return Pl031(place.machine.clock, place.line, POWER_ON)


def _pl061(place: Place) -> Device:
    from kinst.runtime.machine.devices.arm.pl061 import Pl061

    return Pl061(place.line)


def _sp804(place: Place) -> Device:
    from kinst.runtime.machine.devices.arm.sp804 import Sp804

    return Sp804(place.machine.clock, place.facts.properties["frequency"])


def _mailbox(place: Place) -> Device:
    from kinst.runtime.machine.devices.arm.bcm2835 import Mailbox

    return Mailbox(place.machine, place.facts.properties["board-revision"])


def _system_timer(place: Place) -> Device:
    from kinst.runtime.machine.devices.arm.bcm2835 import SystemTimer

    return SystemTimer(place.machine.clock)


def _gpio(place: Place) -> Device:
    from kinst.runtime.machine.devices.arm.bcm2835_gpio import Bcm2835Gpio

    return Bcm2835Gpio(place.sockets.of(place.facts))


def _sdhost(place: Place) -> Device:
    from kinst.runtime.machine.devices.sd.bcm2835_sdhost import Bcm2835SdHost

    return Bcm2835SdHost(place.sockets.of(place.facts), place.line)


def _sdhci(place: Place) -> Device:
    from kinst.runtime.machine.devices.sd.sdhci import Sdhci

    has, properties = bool(place.facts.properties["pending-insert"]), place.facts.properties
    return Sdhci(place.sockets.of(place.facts), place.line, properties["capabilities"], has_pending_insert=has)


def _dwc2(place: Place) -> Device:
    from kinst.runtime.machine.devices.usb.dwc2 import Dwc2

    return Dwc2(place.line)


def _goldfish_rtc(place: Place) -> Device:
    from kinst.runtime.machine.devices.riscv.goldfish_rtc import GoldfishRtc

    return GoldfishRtc(place.machine.clock, place.line, POWER_ON)


def _watchdog(place: Place) -> Device:
    from kinst.runtime.machine.devices.watchdogs import DesignWare, Sp805

    kind = DesignWare if place.facts.model == "dw-wdt" else Sp805
    return kind(place.machine.clock, place.facts.properties["frequency"], place.line, place.machine.power_off)


def _sifive_test(place: Place) -> Device:
    from kinst.runtime.machine.devices.riscv.sifive_test import SifiveTest

    return SifiveTest(place.machine.power_off)


def _flash(place: Place) -> Device:
    from kinst.runtime.machine.devices.cfi_flash import CfiFlash

    return CfiFlash(place.facts.size)


def _pci(place: Place) -> Device:
    from kinst.runtime.machine.devices.pci_ecam import PciEcam

    return PciEcam(place.facts.size)


def _fw_cfg(place: Place) -> Device:
    from kinst.runtime.machine.devices.fw_cfg import FirmwareConfiguration, configuration

    return FirmwareConfiguration(configuration(len(place.machine.cpus)))


MAKERS: Final[dict[str, Callable[[Place], Device]]] = {
    "bcm2835-aux-uart": _ns16550,
    "bcm2835-gpio": _gpio,
    "bcm2835-mailbox": _mailbox,
    "bcm2835-sdhost": _sdhost,
    "bcm2835-timer": _system_timer,
    "cdns-uart": _fifo_uart,
    "cfi-flash": _flash,
    "dw-apb-uart": _ns16550,
    "dw-wdt": _watchdog,
    "dwc2": _dwc2,
    "exynos-uart": _fifo_uart,
    "fw-cfg": _fw_cfg,
    "geni-uart": _packed_uart,
    "goldfish-rtc": _goldfish_rtc,
    "imx-uart": _fifo_uart,
    "lpuart": _fifo_uart,
    "meson-uart": _fifo_uart,
    "msm-uartdm": _packed_uart,
    "mvebu-uart": _fifo_uart,
    "ns16550": _ns16550,
    "pci-ecam": _pci,
    "pl011": _pl011,
    "pl031": _pl031,
    "pl061": _pl061,
    "sdhci": _sdhci,
    "sifive-test": _sifive_test,
    "sifive-uart": _fifo_uart,
    "sp804": _sp804,
    "sp805": _watchdog,
}
