"""A machine -> ACPI tables of its CPUs, interrupts, PCI bus and power switch, for kernels that use them. They are in
memory in the order

    RSDP   XSDT   FADT   FACS   DSDT   MADT

ACPI Specification 6.5, chapter 5: each table but RSDP and FACS begins with a header of 36 bytes. The machine has the
fixed hardware of a PC without power management timer, and one sleeping state, \\_S5: off.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Final

from kinst.runtime.machine.boards.acpi_pci import root_bridge
from kinst.runtime.machine.boards.aml import named, package
from kinst.runtime.machine.boards.multiboot import Piece
from kinst.runtime.machine.devices.pc.lapic import BASE as LOCAL_APICS
from kinst.targets.machines.machine import DeviceFacts

_MAKER: Final = b"KINST "
_HEADER: Final = struct.Struct("<4sIBB6s8sI4sI")
_RSDP, _TABLE = struct.Struct("<8sB6sBIIQB3x"), 64  # bytes that tables are aligned to, as FACS must be
_FADT_SIZE: Final = 244  # revision 3
_LEGACY_DEVICES, _KEYBOARD = 1, 2  # IAPC_BOOT_ARCH
_WBINVD, _C1, _NO_POWER_BUTTON, _NO_SLEEP_BUTTON, _RESET = 1 << 0, 1 << 2, 1 << 4, 1 << 5, 1 << 10
_NO_STATE: Final = 0xFFFF  # latency of a power state of CPUs that does not exist
_PORT: Final = 1  # an address space
_SWITCHED_OFF: Final = named(b"_S5_", package(*[b"\0"] * 4))
# Of the MADT: ISA interrupts that are not as on a PC/AT, a rising edge at the pin of the same number (MPS INTI flags,
# table 5.26). The timer is at pin 2, and interrupts of PCI devices and of ACPI are active-high levels.
TIMER_PIN: Final = 2
_TIMER, _ACTIVE_HIGH_LEVEL = 0, 0b1101
_EVERY_CPU, _NMI_INPUT = 0xFF, 1


def acpi_tables(
    at: int, cpus: int, devices: Mapping[str, DeviceFacts], interrupts: Mapping[int, int]
) -> tuple[Piece, ...]:
    """The tables for physical addresses from `at` on; the first is RSDP.

    Args:
        at: a multiple of 64.
        cpus: their number; their local APICs are numbered from 0.
        devices: those of the machine; here are used "power-events" (registers PM1a_EVT, with the interrupt that ACPI
            has), "power" (PM1a_CNT), "reset" (bits 1 and 2 reset the machine), "ioapic", "pci" and "pci-memory".
        interrupts: those of devices on the PCI bus, by the device's number; empty: there is no such bus.
    """
    events, control, reset = (devices[name] for name in ("power-events", "power", "reset"))
    bus = root_bridge(interrupts, devices["pci"], devices["pci-memory"]) if interrupts else b""
    by_level = sorted({events.interrupt or 0, *interrupts.values()})
    places = [at + _TABLE * number for number in (0, 1, 2, 6, 7)]  # FADT takes four
    rsdp, xsdt, fadt, facs, dsdt = places
    differentiated = _table(b"DSDT", 2, _SWITCHED_OFF + bus)
    madt = dsdt + -(-len(differentiated) // _TABLE) * _TABLE
    root = _RSDP.pack(b"RSD PTR ", 0, _MAKER, 2, 0, 36, xsdt, 0)
    root = _summed(root, 8, root[:20])
    contents = (
        (rsdp, _summed(root, 32, root)),
        (xsdt, _table(b"XSDT", 1, struct.pack("<QQ", fadt, madt))),
        (fadt, _table(b"FACP", 3, _fixed(facs, dsdt, events, control, reset))),
        (facs, struct.pack("<4sI", b"FACS", 64).ljust(64, b"\0")),
        (dsdt, differentiated),
        (madt, _table(b"APIC", 1, _interrupt_controllers(cpus, devices["ioapic"], by_level))),
    )
    return tuple(Piece(place, content) for place, content in contents)


def _summed(content: bytes, at: int, covered: bytes) -> bytes:
    """The content with its checksum at an offset, so that the covered bytes, of which it is one, add up to 0."""
    return content[:at] + bytes([-sum(covered) & 0xFF]) + content[at + 1 :]


def _table(signature: bytes, revision: int, content: bytes) -> bytes:
    size = _HEADER.size + len(content)
    whole = _HEADER.pack(signature, size, revision, 0, _MAKER, b"KINSTRUN", 1, b"KNST", 1) + content
    return _summed(whole, 9, whole)


def _register(device: DeviceFacts) -> bytes:
    """A generic address structure: space, bits, offset, access size, address."""
    return struct.pack("<BBBBQ", _PORT, 8 * device.size, 0, 0, device.address)


def _fixed(facs: int, dsdt: int, events: DeviceFacts, control: DeviceFacts, reset: DeviceFacts) -> bytes:
    """The content of the FADT (5.2.9) after its header; offsets count from the table's start."""
    table = bytearray(_FADT_SIZE)
    flags = _WBINVD | _C1 | _NO_POWER_BUTTON | _NO_SLEEP_BUTTON | _RESET
    struct.pack_into("<II", table, 36, facs, dsdt)
    struct.pack_into("<H", table, 46, events.interrupt or 0)
    struct.pack_into("<I4xI", table, 56, events.address, control.address)
    struct.pack_into("<BB", table, 88, events.size, control.size)
    struct.pack_into("<HH", table, 96, _NO_STATE, _NO_STATE)
    struct.pack_into("<H", table, 109, _LEGACY_DEVICES | _KEYBOARD)
    struct.pack_into("<I", table, 112, flags)
    table[116:129] = _register(reset) + b"\x06"
    struct.pack_into("<QQ", table, 132, facs, dsdt)
    table[148:160], table[172:184] = _register(events), _register(control)
    return bytes(table[_HEADER.size :])


def _interrupt_controllers(cpus: int, io_apic: DeviceFacts, by_level: Sequence[int]) -> bytes:
    """The content of the MADT (5.2.12): the local APICs' address, a flag for PICs, and entries, each with type and
    size."""
    entries = (
        *(struct.pack("<BBBBI", 0, 8, number, number, 1) for number in range(cpus)),
        struct.pack("<BBBxII", 1, 12, 0, io_apic.address, 0),
        struct.pack("<BBBBIH", 2, 10, 0, _TIMER, TIMER_PIN, 0),
        *(struct.pack("<BBBBIH", 2, 10, 0, number, number, _ACTIVE_HIGH_LEVEL) for number in by_level),
        struct.pack("<BBBHB", 4, 6, _EVERY_CPU, 0, _NMI_INPUT),
    )
    return struct.pack("<II", LOCAL_APICS, 1) + b"".join(entries)
