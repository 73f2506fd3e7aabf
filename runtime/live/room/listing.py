"""Linux' list of what its early code has mapped in the region of vmalloc -> the kernel in it, with the room in front.

On arm64 the kernel is in the middle of that region if it has moved (KASLR), and memory for modules begins at a random
address below it: nothing but this list keeps it off the room. The list is read once, by `vmalloc_init`. Its elements
are `struct vm_struct`, in the kernel's own data:

    0 next   8 addr   16 size   24 ...
"""

import struct
from collections.abc import Callable
from typing import Final

from kinst.runtime.live.ram import SharedRam
from kinst.runtime.readout.memory import Space
from kinst.targets.errors import MachineError

_ELEMENT: Final = struct.Struct("<3Q")
_RANGE: Final = struct.Struct("<2Q")
_POINTER: Final = 8  # bytes
_MOST: Final = 256  # elements: the kernel's parts are five, and few drivers map anything so early


def claim(memory: SharedRam, head: int, start: int, text: int, physical: Callable[[int], int]) -> None:
    """Let the element that has an address begin earlier.

    Args:
        memory: the guest's.
        head: the physical address of the list's head.
        start: where the element begins then.
        text: an address in it.
        physical: gives the physical address of a pointer into the kernel.

    Raises:
        MachineError: no element has it, or another one is in the way.
    """
    element = int.from_bytes(memory.read(Space.PHYSICAL, head, _POINTER), "little")
    found, count = None, 0
    while element and count < _MOST:
        place, count = physical(element), count + 1
        element, first, size = _ELEMENT.unpack(memory.read(Space.PHYSICAL, place, _ELEMENT.size))
        if first <= text < first + size:
            found = place, first, size
        elif first < text and first + size > start:
            raise MachineError(f"the kernel has mapped {first:#x} in front of itself: add nokaslr to --append")
    if found is None:
        raise MachineError("the kernel does not list itself where modules are put: add nokaslr to --append")
    place, first, size = found
    memory.write(place + _POINTER, _RANGE.pack(start, first + size - start))
