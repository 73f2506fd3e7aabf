"""Hooks at every instruction or block, as a few bytes of host machine code: counting, and stopping on request.

A Python callback there costs half a microsecond, these 1 to 3 ns. Stopping from anywhere else is not safe: Unicorn
2.1.4 leaves the PC of a block behind that was entered by a chained jump when `uc_emu_stop` is called by another thread
or inside a device access, and executes instructions twice when it goes on. At the start of a block the PC is exact.

Neither hook looks at trampolines. A displaced instruction counts once, at its site's breakpoint, whatever the trap path
executes for it; and a run never ends between a site and its next instruction.
"""

import ctypes
import mmap
import platform
import sys
from typing import Final

# The callback's arguments are uc, address, size, state. `state` holds the hook's own word, the start and size of the
# range that is left alone, the address of uc_emu_stop, and whether the hook called it.
_WORD, _START, _SIZE, _STOP, _HAS_STOPPED = range(5)
_X86_64_STOP: Final = bytes.fromhex(
    "48833900"  # cmp qword [rcx], 0
    "7418"  # je done
    "4889f0"  # mov rax, rsi
    "482b4108"  # sub rax, [rcx + 8]
    "483b4110"  # cmp rax, [rcx + 16]
    "720b"  # jb done
    "48c7412001000000"  # mov qword [rcx + 32], 1
    "ff6118"  # jmp [rcx + 24]
    "c3"  # done: ret
)
_X86_64_COUNT: Final = bytes.fromhex(
    "4889f0"  # mov rax, rsi
    "482b4108"  # sub rax, [rcx + 8]
    "483b4110"  # cmp rax, [rcx + 16]
    "7205"  # jb done
    "48ff09"  # dec qword [rcx]
    "7801"  # js stop
    "c3"  # done: ret
    "48ff01"  # stop: inc qword [rcx]
    "48c7412001000000"  # mov qword [rcx + 32], 1
    "ff6118"  # jmp [rcx + 24]
)


def _words(*words: int) -> bytes:
    return b"".join(word.to_bytes(4, "little") for word in words)


_AARCH64_STOP: Final = _words(
    0xF9400065,  # ldr x5, [x3]
    0xB4000125,  # cbz x5, done
    0xA9409865,  # ldp x5, x6, [x3, #8]
    0xCB050025,  # sub x5, x1, x5
    0xEB0600BF,  # cmp x5, x6
    0x540000A3,  # b.lo done
    0xD2800025,  # mov x5, #1
    0xF9001065,  # str x5, [x3, #32]
    0xF9400C65,  # ldr x5, [x3, #24]
    0xD61F00A0,  # br x5
    0xD65F03C0,  # done: ret
)
_AARCH64_COUNT: Final = _words(
    0xA9409865,  # ldp x5, x6, [x3, #8]
    0xCB050025,  # sub x5, x1, x5
    0xEB0600BF,  # cmp x5, x6
    0x540000A3,  # b.lo done
    0xF9400065,  # ldr x5, [x3]
    0xF10004A5,  # subs x5, x5, #1
    0x54000064,  # b.mi stop
    0xF9000065,  # str x5, [x3]
    0xD65F03C0,  # done: ret
    0xD2800025,  # stop: mov x5, #1
    0xF9001065,  # str x5, [x3, #32]
    0xF9400C65,  # ldr x5, [x3, #24]
    0xD61F00A0,  # br x5
)
_UNLIMITED: Final = 1 << 62
_HOOK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)
_STOP_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class _NativeHook:
    """State and code of one hook."""

    host_code: dict[str, bytes]

    def __init__(self, stop: int) -> None:
        """`stop` is the address of uc_emu_stop."""
        self._state = (ctypes.c_uint64 * 5)(0, 0, 0, stop, 0)
        self._kept: object = None

    def leave_alone(self, address: int, size: int) -> None:
        """Ignore instructions in [address, address + size): the trampolines."""
        self._state[_START], self._state[_SIZE] = address, size

    @property
    def has_stopped(self) -> bool:
        """Whether this hook ended the run."""
        return self._state[_HAS_STOPPED] != 0

    def callback(self) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
        """Function and argument to give to Unicorn."""
        state = ctypes.c_void_p(ctypes.addressof(self._state))
        code = self.host_code.get(platform.machine()) if sys.platform == "linux" else None
        if code is None:
            function = _HOOK(self._in_python)
            self._kept = function
            return ctypes.cast(function, ctypes.c_void_p), state
        memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        memory[: len(code)] = code
        self._kept = memory
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory))), state

    def _in_python(self, uc: int, address: int, _size: int, _data: int) -> None:
        """What the machine code does, for hosts that we have none for."""
        if self._state[_START] <= address < self._state[_START] + self._state[_SIZE]:
            return
        if self._is_over():
            self._state[_HAS_STOPPED] = 1
            _STOP_FUNCTION(self._state[_STOP])(uc)

    def _is_over(self) -> bool:
        raise NotImplementedError


class StopFlag(_NativeHook):
    """For every block: end the run if somebody asked for it. `request` may be called from any thread at any time."""

    host_code = {"x86_64": _X86_64_STOP, "aarch64": _AARCH64_STOP}  # noqa: RUF012

    def request(self) -> None:
        """End the run at the next block."""
        self._state[_WORD] = 1

    def clear(self) -> None:
        """The run ended."""
        self._state[_WORD] = self._state[_HAS_STOPPED] = 0

    def _is_over(self) -> bool:
        return self._state[_WORD] != 0


class InstructionCounter(_NativeHook):
    """For every instruction: count it, and end the run before the one that exceeds the budget."""

    host_code = {"x86_64": _X86_64_COUNT, "aarch64": _AARCH64_COUNT}  # noqa: RUF012

    def __init__(self, stop: int) -> None:
        """`stop` is the address of uc_emu_stop."""
        super().__init__(stop)
        self._executed = 0  # before the present budget
        self._granted = 0

    @property
    def executed(self) -> int:
        """Instructions executed since the counter was made; exact inside callbacks too."""
        return self._executed + self._granted - self._state[_WORD]

    def grant(self, instructions: int | None = None) -> None:
        """Let so many more instructions run (none at all if 0); None: without limit."""
        self._executed = self.executed
        self._granted = self._state[_WORD] = _UNLIMITED if instructions is None else instructions
        self._state[_HAS_STOPPED] = 0

    def _is_over(self) -> bool:
        if self._state[_WORD] == 0:
            return True
        self._state[_WORD] -= 1
        return False
