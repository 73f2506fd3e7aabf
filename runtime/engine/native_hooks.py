"""Hooks at every instruction or block, as a few bytes of host machine code: counting, stopping on request, and looking
at blocks that begin or end at marked addresses.

A Python callback takes half a microsecond, these hooks take 1 to 3 ns. Stopping anywhere else is not safe: if
`uc_emu_stop` is called by another thread or inside a device access, Unicorn 2.1.4 does not update the PC of a block
that was entered by a chained jump, and then executes instructions twice. At the start of a block the PC is exact.

A run does not end in a trampoline, except between two iterations of a repeated string instruction of amd64, which can
go on forever. In a trampoline only the displaced instruction is counted, at the start of its slot; the trap path takes
back the count of its breakpoint. So a displaced instruction counts once, and a repeated one once per iteration,
wherever they run.
"""

import ctypes
import mmap
import platform
import sys
from collections.abc import Callable, Mapping
from typing import Final

from kinst.runtime.engine.block_code import HOST_CODE as BLOCK_CODE
from kinst.runtime.engine.block_code import SIZE, WORDS
from kinst.runtime.engine.block_counters import BlockCounters

# The callback's arguments are uc, address, size, state. `state` holds the hook's own word, the start and size of the
# trampolines, the address of uc_emu_stop, and whether the hook called it. To count: the offset bits in a slot. For
# interrupts that are masked: whether the first block is still to come, uc_reg_read, the register that holds the mask
# and a place for its value, the mask's bits and those of them that mean "not masked" when they are 0. To look at
# blocks: a byte for each address that may be marked, whether the next block is looked at in any case, and what looks.
# Last, the block before, while there is something to do: one that comes again in a trampoline is an iteration.
_WORD, _START, _SIZE, _STOP, _HAS_STOPPED, _IS_FIRST, _READ, _REGISTER, _VALUE, _MASK, _UNMASKING = range(11)
_MARKS, _LOOKS_AT_NEXT, _LOOK, _LAST = range(11, 15)
_SLOT_MASK: Final = 5
# The blocks' word has two halves, so that a single comparison is enough if there is nothing to do.
_STOPPING, _MARKED = range(2)
_NOW, _WHEN_UNMASKED = 1, 2
_X86_64_COUNT: Final = bytes.fromhex(
    "4889f0"  # mov rax, rsi
    "482b4108"  # sub rax, [rcx + 8]
    "483b4110"  # cmp rax, [rcx + 16]
    "7306"  # jae count
    "48854128"  # test [rcx + 40], rax
    "7505"  # jnz done
    "48ff09"  # count: dec qword [rcx]
    "7801"  # js stop
    "c3"  # done: ret
    "48ff01"  # stop: inc qword [rcx]
    "48c7412001000000"  # mov qword [rcx + 32], 1
    "ff6118"  # jmp [rcx + 24]
)


def _words(*words: int) -> bytes:
    return b"".join(word.to_bytes(4, "little") for word in words)


_AARCH64_COUNT: Final = _words(
    0xA9409865,  # ldp x5, x6, [x3, #8]
    0xCB050025,  # sub x5, x1, x5
    0xEB0600BF,  # cmp x5, x6
    0x54000082,  # b.hs count
    0xF9401466,  # ldr x6, [x3, #40]
    0xEA0600BF,  # tst x5, x6
    0x540000A1,  # b.ne done
    0xF9400065,  # count: ldr x5, [x3]
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
_MARKS_SIZE: Final = 1 << 20  # addresses that differ by a multiple of it share a mark
_MOST_MARKS: Final = 255  # how many addresses may share a mark; after that, it is never removed
_HOOK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)
_READ_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_STOP_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class HostFunction:
    """Machine code in memory of its own, which exists as long as this object."""

    def __init__(self, code: bytes) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._memory[: len(code)] = code
        self.address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(self._memory)))


def host_function(code: Mapping[str, bytes]) -> HostFunction | None:
    """The part of `code`, which is by `platform.machine()`, that this host executes; None if it must be done in
    Python."""
    found = code.get(platform.machine()) if sys.platform == "linux" else None
    return None if found is None else HostFunction(found)


class _NativeHook:
    """State and code of one hook."""

    host_code: Mapping[str, bytes]

    def __init__(self, stop: int) -> None:
        """`stop` is the address of uc_emu_stop."""
        self._state = (ctypes.c_uint64 * WORDS)(0, 0, 0, stop)
        self._kept: object = None

    def set_trampolines(self, address: int, size: int) -> None:
        """Set where the trampolines are."""
        self._state[_START], self._state[_SIZE] = address, size

    @property
    def has_stopped(self) -> bool:
        """Whether this hook ended the run."""
        return self._state[_HAS_STOPPED] != 0

    def callback(self) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
        """The function and the argument for Unicorn."""
        state = ctypes.c_void_p(ctypes.addressof(self._state))
        code = host_function(self.host_code)
        if code is None:
            function = _HOOK(self._in_python)
            self._kept = function
            return ctypes.cast(function, ctypes.c_void_p), state
        self._kept = code
        return code.address, state

    def _in_python(self, uc: int, address: int, size: int, _data: int) -> None:
        """What the machine code does, for hosts without machine code."""
        offset = address - self._state[_START]
        is_inside = 0 <= offset < self._state[_SIZE]
        if self._is_over_inside(address, offset) if is_inside else self._is_over(uc, address, size):
            self._state[_HAS_STOPPED] = 1
            _STOP_FUNCTION(self._state[_STOP])(uc)

    def _is_over_inside(self, address: int, offset: int) -> bool:
        """Whether the run ends before an instruction or block in the trampolines, at `offset` from their start."""
        raise NotImplementedError

    def _is_over(self, uc: int, address: int, size: int) -> bool:
        """Whether the run ends before an instruction or block elsewhere."""
        raise NotImplementedError


class BlockHook(_NativeHook):
    """For every block: look at it if it is marked, and end the run if that was requested; else count it if it begins at
    a site. `request` may be called from any thread at any time."""

    host_code = BLOCK_CODE

    def __init__(self, stop: int, fail: Callable[[BaseException], None]) -> None:
        """`stop` is the address of uc_emu_stop. `fail` gets what the functions that look at blocks raise."""
        super().__init__(stop)
        self._word = (ctypes.c_uint32 * 2).from_buffer(self._state)
        self.marks = BlockMarks(self._state, self._word, fail)
        self.counters = BlockCounters(self._state)

    def request(self) -> None:
        """End the run at the next block."""
        self._word[_STOPPING] = _NOW

    def clear(self) -> None:
        """Forget requests: the run has ended."""
        self._word[_STOPPING] = self._state[_HAS_STOPPED] = self._state[_LAST] = 0

    def watch(self, read: int, register: int, mask: int, inverted: int) -> None:
        """Set how the guest masks interrupts: the address of uc_reg_read, Unicorn's register, and its bits, which mask
        if all of them are 1, or 0 for those in `inverted`."""
        self._state[_READ], self._state[_REGISTER] = read, register
        self._state[_MASK], self._state[_UNMASKING] = mask, ~inverted & mask

    def request_when_unmasked(self) -> None:
        """End the run at a block, but not at its first, at which interrupts are not masked."""
        self._state[_IS_FIRST] = 1
        self._word[_STOPPING] = _WHEN_UNMASKED

    def _is_over_inside(self, address: int, offset: int) -> bool:
        if not self._state[_WORD]:
            return False
        last, self._state[_LAST] = self._state[_LAST], address
        return last == address and self._word[_STOPPING] == _NOW

    def _is_over(self, uc: int, address: int, size: int) -> bool:
        if self._state[_WORD]:
            self._state[_LAST], self._state[SIZE] = address, size
        if self.marks.concern(address, size):
            self.marks.look(address, size)
        return self._is_wanted(uc) or self.counters.count(address, size)

    def _is_wanted(self, uc: int) -> bool:
        state, wanted = self._state, self._word[_STOPPING]
        if wanted != _WHEN_UNMASKED:
            return wanted == _NOW
        if state[_IS_FIRST]:
            state[_IS_FIRST] = 0
            return False
        value = ctypes.addressof(state) + 8 * _VALUE
        _READ_FUNCTION(state[_READ])(uc, state[_REGISTER], value)
        return bool((state[_VALUE] ^ state[_UNMASKING]) & state[_MASK])


class BlockMarks:
    """Addresses of blocks to look at: those that begin or end there, before they run. Sometimes another block that
    shares a mark is looked at as well. Without marks, blocks are as fast as without the hook's check."""

    def __init__(
        self,
        state: "ctypes.Array[ctypes.c_uint64]",
        word: "ctypes.Array[ctypes.c_uint32]",
        fail: Callable[[BaseException], None],
    ) -> None:
        """`state` and `word` are the hook's."""
        self._state = state
        self._word = word
        self._fail = fail
        self.looks: list[Callable[[int, int], None]] = []  # called with the address and size of a block
        self._callback = _HOOK(lambda _uc, address, size, _data: self.look(address, size))
        memory = mmap.mmap(-1, _MARKS_SIZE)
        self._table = memoryview(memory)
        self._count = 0
        state[_MARKS] = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        state[_LOOK] = ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def look(self, address: int, size: int) -> None:
        """Called before a block runs. Calls the functions that look at blocks, if the block concerns them."""
        try:
            for look in self.looks:
                look(address, size)
        except BaseException as error:  # it cannot be raised through ctypes, which would print it and continue
            self._fail(error)

    def mark(self, address: int) -> None:
        """Mark an address. Marks are counted."""
        slot = address & _MARKS_SIZE - 1
        count = self._table[slot]
        if count < _MOST_MARKS:
            self._table[slot] = count + 1
        self._count += 1
        self._word[_MARKED] = 1

    def unmark(self, address: int) -> None:
        """Remove one mark of an address."""
        slot = address & _MARKS_SIZE - 1
        count = self._table[slot]
        if count < _MOST_MARKS:
            self._table[slot] = count - 1
        self._count -= 1
        if not self._count:
            self._word[_MARKED] = 0

    def has(self, address: int) -> bool:
        """Whether an address is marked, or shares its mark with one that is."""
        return self._table[address & _MARKS_SIZE - 1] != 0

    @property
    def looks_at_next(self) -> bool:
        """Whether the next block is looked at in any case. It is only true while there is a mark."""
        return self._state[_LOOKS_AT_NEXT] != 0

    @looks_at_next.setter
    def looks_at_next(self, wanted: bool) -> None:
        self._state[_LOOKS_AT_NEXT] = wanted

    def look_soon(self) -> None:
        """Have the next block looked at whether it is marked or not; from any thread."""
        self.looks_at_next = True
        self._word[_MARKED] = 1

    def rest(self) -> None:
        """That was it: only marked blocks are looked at again."""
        self.looks_at_next = False
        self._word[_MARKED] = int(self._count > 0)

    def concern(self, address: int, size: int) -> bool:
        """Whether a block is looked at, by the rule of the machine code."""
        if not self._word[_MARKED]:
            return False
        return self.has(address) or self.has(address + size) or self.looks_at_next


class InstructionCounter(_NativeHook):
    """For every instruction: count it, and end the run before the one that exceeds the budget."""

    host_code = {"x86_64": _X86_64_COUNT, "aarch64": _AARCH64_COUNT}  # noqa: RUF012

    def __init__(self, stop: int) -> None:
        """`stop` is the address of uc_emu_stop."""
        super().__init__(stop)
        self._executed = 0  # executed before the current budget
        self._granted = 0

    def set_slot_size(self, size: int) -> None:
        """Set the size of the trampolines' slots in bytes, a power of two."""
        self._state[_SLOT_MASK] = size - 1

    @property
    def word(self) -> int:
        """The address of the budget's 64-bit word in the host's memory: adding 1 does what `take_back` does."""
        return ctypes.addressof(self._state) + 8 * _WORD

    def take_back(self) -> None:
        """Do not count the last breakpoint: the instruction that it replaces runs, and is counted, in a trampoline."""
        self._state[_WORD] += 1

    @property
    def executed(self) -> int:
        """The instructions executed since the counter was made; also exact inside callbacks."""
        return self._executed + self._granted - self._state[_WORD]

    @property
    def promised(self) -> int:
        """What will have been executed when the budget is used up: `executed` is this less the budget's word."""
        return self._executed + self._granted

    def grant(self, instructions: int | None = None) -> None:
        """Let this many more instructions run (0: none); None means without limit."""
        self._executed = self.executed
        self._granted = self._state[_WORD] = _UNLIMITED if instructions is None else instructions
        self._state[_HAS_STOPPED] = 0

    def _is_over_inside(self, address: int, offset: int) -> bool:
        return not offset & self._state[_SLOT_MASK] and self._is_over(0, address, 0)

    def _is_over(self, uc: int, address: int, size: int) -> bool:
        if self._state[_WORD] == 0:
            return True
        self._state[_WORD] -= 1
        return False
