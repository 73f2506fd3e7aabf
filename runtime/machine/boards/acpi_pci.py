"""A PC's PCI bus for a kernel that finds it by ACPI: its windows and the interrupts of its devices, as AML.

ACPI Specification 6.5: resources are described as in 6.4, interrupts as in 6.2.13, hard-wired to the I/O APIC's pins.
"""

import struct
from collections.abc import Mapping
from typing import Final

from kinst.runtime.machine.boards.aml import buffer, device, integer, named, package, scope
from kinst.targets.machines.machine import DeviceFacts

_ROOT: Final = 0x030A_D041  # EISAID ("PNP0A03")
_ANY_FUNCTION: Final = 0xFFFF
_PIN_A, _NO_LINK = 0, 0
_LAST_PORT: Final = 0xFFFF

# Descriptors of address spaces (6.4.3.5): tag, length, kind, flags, flags of the kind, granularity, minimum, maximum,
# translation, size. Minimum and maximum are fixed.
_WORDS, _DOUBLE_WORDS = struct.Struct("<BHBBBHHHHH"), struct.Struct("<BHBBBIIIII")
_MEMORY, _PORTS, _BUSES = 0, 1, 2
_FIXED: Final = 0x0C
_WRITABLE, _WHOLE_RANGE = 1, 3
_END: Final = b"\x79\0"


def root_bridge(interrupts: Mapping[int, int], ports: DeviceFacts, memory: DeviceFacts) -> bytes:
    r"""Device \_SB.PCI0, as AML.

    Args:
        interrupts: those of devices' pin INTA, by the device's number.
        ports: the bridge's own, for configuration.
        memory: the window that the bridge forwards to its devices.
    """
    routes = (
        package(integer(number << 16 | _ANY_FUNCTION), integer(_PIN_A), integer(_NO_LINK), integer(interrupt))
        for number, interrupt in interrupts.items()
    )
    content = (
        named(b"_HID", integer(_ROOT)),
        named(b"_UID", integer(0)),
        named(b"_CRS", buffer(_resources(ports, memory))),
        named(b"_PRT", package(*routes)),
    )
    return scope(b"\\_SB_", device(b"PCI0", b"".join(content)))


def _resources(ports: DeviceFacts, memory: DeviceFacts) -> bytes:
    behind = ports.address + ports.size
    own = struct.pack("<BBHHBB", 0x47, 1, ports.address, ports.address, 1, ports.size)
    ranges = (_words(_PORTS, range(ports.address)), _words(_PORTS, range(behind, _LAST_PORT + 1)))
    window = (0, memory.address, memory.address + memory.size - 1, 0, memory.size)
    passed_on = _DOUBLE_WORDS.pack(0x87, _DOUBLE_WORDS.size - 3, _MEMORY, _FIXED, _WRITABLE, *window)
    return _words(_BUSES, range(1)) + own + b"".join(ranges) + passed_on + _END


def _words(kind: int, values: range) -> bytes:
    flags = _WHOLE_RANGE if kind == _PORTS else 0
    fields = (0, values.start, values.stop - 1, 0, len(values))
    return _WORDS.pack(0x88, _WORDS.size - 3, kind, _FIXED, flags, *fields)
