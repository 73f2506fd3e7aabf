"""A running engine -> what its emulator has for counting instructions, which its interface does not offer.

Unicorn is a fork of QEMU, which counts by blocks (`-icount`): it can leave a block in the middle, restore the CPU's
state there, and translate a block that is cut short. The functions are exported by the library. Where words of its
structures are is read from the code of one of them, cpu_io_recompile, which begins and ends like this:

    mov rax, [rdi + uc]           CPUState.uc
    mov r14, [rax + tcg_ctx]
    ...
    mov dword ptr [rbp + next_flags], 0x8001      CPUState.cflags_next_tb = CF_LAST_IO | 1
    ...

What was found is compared with what these words have between two runs. Whatever differs: nothing is found, and the
instructions are counted one by one.
"""

import ctypes
import re
from typing import Final

import unicorn

from kinst.runtime.engine.live_pc import memory_of_engine
from kinst.targets.values import dataclass

_KNOWN: Final = ("2.1.4",)  # the versions whose sources were read
_CODE: Final = 192  # bytes of the function that are looked through
_LOAD_UC: Final = re.compile(rb"\x48\x8b[\x80-\x83\x85-\x8b\x8d-\xbf](?P<offset>.{4})", re.DOTALL)
_STORE_FLAGS: Final = re.compile(
    rb"\xc7(?:[\x40-\x43\x45-\x47](?P<near>.)|[\x80-\x83\x85-\x87](?P<far>.{4}))\x01\x80\0\0", re.DOTALL
)
# struct CPUState around its word `uc`: mem_io_pc, two words of flags for traces, two halves of numbers, halted,
# can_do_io, exception_index.
_IO_PC, _CAN_DO_IO = -48, -12
_NO_FLAGS: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class EmulatorCode:
    """Addresses in the host's memory."""

    cpu: int  # struct CPUState
    next_flags: int  # its 32-bit word with the flags for the next translation
    io_pc: int  # its word with where the block that accesses a device goes on
    restore: int  # cpu_restore_state
    leave: int  # cpu_loop_exit_noexc


def emulator_code(library: ctypes.CDLL, engine: int, suffix: str) -> EmulatorCode | None:
    """What is found; None if anything is not as it was expected.

    Args:
        library: Unicorn's.
        engine: the address of uc_struct.
        suffix: what the names of the library's functions for the machine end with.
    """
    names = (f"{name}_{suffix}" for name in ("cpu_io_recompile", "cpu_restore_state", "cpu_loop_exit_noexc"))
    recompile, restore, leave = (_address(library, name) for name in names)
    if unicorn.__version__ not in _KNOWN or not (recompile and restore and leave):
        return None
    code = ctypes.string_at(recompile, _CODE)
    loaded, stored = _LOAD_UC.search(code), _STORE_FLAGS.search(code)
    if loaded is None or stored is None:
        return None
    uc = int.from_bytes(loaded["offset"], "little")
    flags = int.from_bytes(stored["near"] or stored["far"], "little", signed=True)
    found = [cpu for cpu, content in memory_of_engine(engine, uc + 8) if _is_cpu(content, engine, uc, flags)]
    if len(found) != 1:
        return None
    return EmulatorCode(found[0], found[0] + flags, found[0] + uc + _IO_PC, restore, leave)


def _address(library: ctypes.CDLL, name: str) -> int:
    try:
        return ctypes.cast(library[name], ctypes.c_void_p).value or 0
    except AttributeError:
        return 0


def _is_cpu(content: bytes, engine: int, uc: int, flags: int) -> bool:
    """Whether that is a CPUState between two runs: it knows its engine, and its words are as they were reset."""

    def word(offset: int, size: int) -> int:
        return int.from_bytes(content[offset : offset + size], "little")

    return (
        len(content) == uc + 8
        and word(uc, 8) == engine
        and word(flags, 4) == _NO_FLAGS
        and word(uc + _CAN_DO_IO, 4) == 1
        and word(uc + _IO_PC, 8) == 0
    )
