"""What BL2 of Trusted Firmware-A, or U-Boot's SPL in its place, leaves in memory for BL31: which image follows, where,
and at which exception level.

The structures are those of include/export/common (bl_params, version 2): each begins with a type, a version, its size
and attributes. BL31 copies them before it turns its MMU on.
"""

import struct
from typing import Final

from kinst.runtime.machine.machine import Machine
from kinst.targets.errors import MachineError
from kinst.targets.machines.machine import NextFacts

SIZE: Final = 0x1000
_HEADER: Final = struct.Struct("<BBHI")  # type, version, size, attributes
_VERSION: Final = 2
_ENTRY_POINT, _IMAGE, _PARAMS = 1, 2, 5  # types
_NON_SECURE: Final = 1
_BL33: Final = 5  # the number of the image that BL31 starts
_STATES: Final = {"EL1": 0x3C5, "EL2": 0x3C9}  # SPSR_EL3: the level's own stack, DAIF masked
_ARGUMENTS: Final = 8
_IMAGE_AT, _ENTRY_AT, _NODE_AT = 0x40, 0x80, 0x100


def handed_over(machine: Machine, facts: NextFacts, address: int, tree: int) -> bytes:
    """The structures, for the physical address `address`. `tree`: the device tree's.

    Raises:
        MachineError: neither the board file nor --load says what follows.
    """
    entry = facts.entry if machine.files.first is None else machine.files.first
    if entry is None:
        raise MachineError(f"{machine.facts.name}: nothing follows: give --load FILE, or entry in [start.bl33]")
    words = {"fdt": tree, "cpu": 0}
    values = [facts.registers.get(f"x{number}", 0) for number in range(_ARGUMENTS)]
    arguments = [words[value] if isinstance(value, str) else value for value in values]
    entry_point = struct.pack(f"<QI4x{_ARGUMENTS}Q", entry, _STATES[facts.level], *arguments)
    image = struct.pack("<QII", entry, 0, 0)
    node = struct.pack("<I4xQQQ", _BL33, address + _IMAGE_AT, address + _ENTRY_AT, 0)
    blob = bytearray(_NODE_AT + len(node))
    for at, kind, attributes, content in (
        (0, _PARAMS, 0, struct.pack("<Q", address + _NODE_AT)),
        (_IMAGE_AT, _IMAGE, 0, image),
        (_ENTRY_AT, _ENTRY_POINT, _NON_SECURE, entry_point),
    ):
        whole = _HEADER.pack(kind, _VERSION, _HEADER.size + len(content), attributes) + content
        blob[at : at + len(whole)] = whole
    blob[_NODE_AT:] = node
    return bytes(blob)
