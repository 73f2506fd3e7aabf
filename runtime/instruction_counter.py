"""Counting executed guest instructions exactly, and stopping after a number of them: the heart of the icount clock.

Unicorn calls a code hook before every instruction. A Python callback there costs half a microsecond; a few bytes of
host machine code cost 3 ns. Instructions in trampolines are not counted: the breakpoint at the site is, once, so a
displaced instruction counts as one whatever the trap path executes, and a budget never ends inside a trampoline.
"""

import ctypes
import mmap
import platform
import sys
from collections.abc import Callable
from typing import Final

# The callback's arguments are uc, address, size, state; of `state`: how many instructions are left, start and size of
# the range that is not counted, address of uc_emu_stop. At the end of the budget the instruction is not executed.
_X86_64: Final = bytes.fromhex(
    "4889f0"  # mov rax, rsi
    "482b4108"  # sub rax, [rcx + 8]
    "483b4110"  # cmp rax, [rcx + 16]
    "7205"  # jb done
    "48ff09"  # dec qword [rcx]
    "7801"  # js stop
    "c3"  # done: ret
    "48ff01"  # stop: inc qword [rcx]
    "ff6118"  # jmp [rcx + 24]
)
_AARCH64: Final = b"".join(
    word.to_bytes(4, "little")
    for word in (
        0xA9409865,  # ldp x5, x6, [x3, #8]
        0xCB050025,  # sub x5, x1, x5
        0xEB0600BF,  # cmp x5, x6
        0x540000A3,  # b.lo done
        0xF9400065,  # ldr x5, [x3]
        0xF10004A5,  # subs x5, x5, #1
        0x54000064,  # b.mi stop
        0xF9000065,  # str x5, [x3]
        0xD65F03C0,  # done: ret
        0xF9400C65,  # stop: ldr x5, [x3, #24]
        0xD61F00A0,  # br x5
    )
)
_HOST_CODE: Final = {"x86_64": _X86_64, "aarch64": _AARCH64}
_UNLIMITED: Final = 1 << 62
_CODE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)


class InstructionCounter:
    """Executed instructions, exact inside callbacks too."""

    def __init__(self, stop: int) -> None:
        """`stop` is the address of uc_emu_stop."""
        self._state = (ctypes.c_uint64 * 4)(0, 0, 0, stop)
        self._executed = 0  # before the present budget
        self._granted = 0
        self._kept: object = None

    def skip(self, address: int, size: int) -> None:
        """Do not count instructions in [address, address + size)."""
        self._state[1], self._state[2] = address, size

    @property
    def executed(self) -> int:
        """Instructions executed since the counter was made."""
        return self._executed + self._granted - self._state[0]

    @property
    def is_spent(self) -> bool:
        """Whether the budget is used up."""
        return self._state[0] == 0

    def grant(self, instructions: int | None = None) -> None:
        """Let so many more instructions run (none at all if 0); None: without limit."""
        self._executed = self.executed
        self._granted = self._state[0] = _UNLIMITED if instructions is None else instructions

    def callback(self, stop: Callable[[], None]) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
        """Function and argument for a code hook; `stop` ends the run where there is no machine code for this host."""
        state = ctypes.c_void_p(ctypes.addressof(self._state))
        code = _HOST_CODE.get(platform.machine()) if sys.platform == "linux" else None
        if code is None:
            function = _CODE(self._in_python(stop))
            self._kept = function
            return ctypes.cast(function, ctypes.c_void_p), state
        memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        memory[: len(code)] = code
        self._kept = memory
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory))), state

    def _in_python(self, stop: Callable[[], None]) -> Callable[[int, int, int, int], None]:
        state = self._state

        def count(_uc: int, address: int, _size: int, _data: int) -> None:
            if state[1] <= address < state[1] + state[2]:
                return
            if state[0] == 0:
                stop()
            else:
                state[0] -= 1

        return count
