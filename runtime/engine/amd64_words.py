"""Words of QEMU's x86 CPU state that Unicorn's interface has no register for: name -> place.

`struct CPUArchState` of QEMU 5.0 (target/i386/cpu.h), on which Unicorn 2.1 stands, begins with the general registers;
offsets count from there, `rax`. What Unicorn saves as a context is this structure behind a header of its own.
"""

from collections.abc import Mapping
from typing import Final

_SEGMENTS: Final = {name: 184 + 24 * index for index, name in enumerate(("es", "cs", "ss", "ds", "fs", "gs"))}
_SEGMENT_FIELDS: Final = {"selector": (0, 4), "base": (8, 8), "limit": (16, 4), "flags": (20, 4)}

# Name -> (offset, size).
WORDS: Final[Mapping[str, tuple[int, int]]] = {
    # The mode as the translator sees it: privilege, code size, long mode, interrupt shadow.
    "hflags": (176, 4),
    # What was loaded with a selector.
    **{
        f"{segment}.{field}": (start + offset, size)
        for segment, start in _SEGMENTS.items()
        for field, (offset, size) in _SEGMENT_FIELDS.items()
    },
    # Control registers without what writing them does; the interface does it (flush the TLB, set the mode) to the
    # running CPU, and crashes when the state of another one is written.
    "state.cr0": (424, 8),
    "state.cr3": (448, 8),
    "state.cr4": (456, 8),
    "state.efer": (592, 8),
    # Of the exception that UC_HOOK_INTR reports; is it a software interrupt (int n, int3)?
    "error_code": (5384, 4),
    "exception_is_int": (5388, 4),
    # The exception in delivery: QEMU makes the next one a double fault. -1: none.
    "old_exception": (5496, 4),
}
# Registers that do have a name, and where they are: to be sure that the structure is the one above.
LANDMARKS: Final[Mapping[str, int]] = {"rax": 0, "r15": 120, "cr2": 440, "lstar": 4840, "pat": 5280}
