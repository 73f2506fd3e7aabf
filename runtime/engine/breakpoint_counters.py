"""Breakpoints at which hits are only counted, as a few bytes of host machine code: nobody is told of a single one.

A Python callback takes one to four microseconds a hit, this takes less than a tenth of one: the hit is added to a cell
of the running CPU, and the CPU goes on where the table says. Any other event is passed on to the callback in Python.
"""

import ctypes
import mmap
import struct
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.engine.native_hooks import host_function

# The callback's arguments are uc, number, state. `state` has the callback in Python; the number of a breakpoint's
# event; uc_reg_read, uc_reg_write, the PC's number there and a place for its value; how far the PC is behind the
# breakpoint; the table, and the number of its rows less one; the running CPU's cells; and the word for credits.
_CALLBACK, _NUMBER, _READ, _WRITE, _PC, _VALUE, _BIAS, _TABLE, _MASK, _CELLS, _CREDIT = range(11)

# A row has the breakpoint's address, where the CPU goes on, the offset of the cell in bytes, and the credit: 1 if the
# breakpoint, which was counted as an instruction, is followed by the displaced one, which will be. Rows are looked for
# from a place that the address gives to the first free one.
_ROW: Final = struct.Struct("<QQQQ")
_FREE, _GONE = (1 << 64) - 1, (1 << 64) - 2
_HASH: Final = 0x9E3779B97F4A7C15
_FEWEST_ROWS: Final = 1 << 10
_FEWEST_CELLS: Final = 1 << 10
_WORD: Final = 8
Taken = list[tuple[int, int, int]]  # CPU, cell, hits


def _words(*words: int) -> bytes:
    return b"".join(word.to_bytes(4, "little") for word in words)


HOST_CODE: Final = {
    "x86_64": bytes.fromhex(
        "3b7208"  # cmp esi, dword [rdx + 8]
        "7556"  # jne python
        "57"  # push rdi
        "52"  # push rdx
        "4883ec08"  # sub rsp, 8
        "8b7220"  # mov esi, dword [rdx + 32]
        "4889d0"  # mov rax, rdx
        "488d5228"  # lea rdx, [rdx + 40]
        "ff5010"  # call qword [rax + 16]
        "4883c408"  # add rsp, 8
        "5a"  # pop rdx
        "5f"  # pop rdi
        "488b4228"  # mov rax, qword [rdx + 40]
        "4989c0"  # mov r8, rax
        "4c2b4230"  # sub r8, qword [rdx + 48]
        "48b9157c4a7fb979379e"  # movabs rcx, 0x9e3779b97f4a7c15
        "490fafc8"  # imul rcx, r8
        "48c1e920"  # shr rcx, 32
        "48234a40"  # probe: and rcx, qword [rdx + 64]
        "4989c9"  # mov r9, rcx
        "49c1e105"  # shl r9, 5
        "4c034a38"  # add r9, qword [rdx + 56]
        "4d3901"  # cmp qword [r9], r8
        "740e"  # je found
        "48ffc1"  # inc rcx
        "498339ff"  # cmp qword [r9], -1
        "75e3"  # jne probe
        "8b7208"  # mov esi, dword [rdx + 8]
        "ff22"  # python: jmp qword [rdx]
        "498b4910"  # found: mov rcx, qword [r9 + 16]
        "48034a48"  # add rcx, qword [rdx + 72]
        "48ff01"  # inc qword [rcx]
        "488b4a50"  # mov rcx, qword [rdx + 80]
        "4d8b5118"  # mov r10, qword [r9 + 24]
        "4c0111"  # add qword [rcx], r10
        "49394108"  # cmp qword [r9 + 8], rax
        "740d"  # je done
        "8b7220"  # mov esi, dword [rdx + 32]
        "488b4218"  # mov rax, qword [rdx + 24]
        "498d5108"  # lea rdx, [r9 + 8]
        "ffe0"  # jmp rax
        "c3"  # done: ret
    ),
    "aarch64": _words(
        0xF9400449,  # ldr x9, [x2, #8]
        0xEB21413F,  # cmp x9, w1, uxtw
        0x54000381,  # b.ne python
        0xA9BE7BFD,  # stp x29, x30, [sp, #-32]!
        0xA9010BE0,  # stp x0, x2, [sp, #16]
        0xB9402041,  # ldr w1, [x2, #32]
        0xF9400849,  # ldr x9, [x2, #16]
        0x9100A042,  # add x2, x2, #40
        0xD63F0120,  # blr x9
        0xA9410BE0,  # ldp x0, x2, [sp, #16]
        0xA8C27BFD,  # ldp x29, x30, [sp], #32
        0xF9401443,  # ldr x3, [x2, #40]
        0xF9401844,  # ldr x4, [x2, #48]
        0xCB040064,  # sub x4, x3, x4
        0xD28F82A5,  # movz x5, #0x7c15
        0xF2AFE945,  # movk x5, #0x7f4a, lsl #16
        0xF2CF3725,  # movk x5, #0x79b9, lsl #32
        0xF2F3C6E5,  # movk x5, #0x9e37, lsl #48
        0x9B047CA5,  # mul x5, x5, x4
        0xD360FCA5,  # lsr x5, x5, #32
        0xA9439C46,  # ldp x6, x7, [x2, #56]
        0x8A0700A5,  # probe: and x5, x5, x7
        0x8B0514C8,  # add x8, x6, x5, lsl #5
        0xF9400109,  # ldr x9, [x8]
        0xEB04013F,  # cmp x9, x4
        0x540000E0,  # b.eq found
        0x910004A5,  # add x5, x5, #1
        0xB100053F,  # cmn x9, #1
        0x54FFFF21,  # b.ne probe
        0xB9400841,  # ldr w1, [x2, #8]
        0xF9400049,  # python: ldr x9, [x2]
        0xD61F0120,  # br x9
        0xA9411905,  # found: ldp x5, x6, [x8, #16]
        0xA944A447,  # ldp x7, x9, [x2, #72]
        0xF86568EA,  # ldr x10, [x7, x5]
        0x9100054A,  # add x10, x10, #1
        0xF82568EA,  # str x10, [x7, x5]
        0xF940012A,  # ldr x10, [x9]
        0x8B06014A,  # add x10, x10, x6
        0xF900012A,  # str x10, [x9]
        0xF940050A,  # ldr x10, [x8, #8]
        0xEB03015F,  # cmp x10, x3
        0x540000A0,  # b.eq done
        0xB9402041,  # ldr w1, [x2, #32]
        0xF9400C49,  # ldr x9, [x2, #24]
        0x91002102,  # add x2, x8, #8
        0xD61F0120,  # br x9
        0xD65F03C0,  # done: ret
    ),
}


class BreakpointCounters:
    """The table of one engine, and the cells of its CPUs."""

    def __init__(self, read: int, write: int, register: int, breakpoint_at: tuple[int, int], credit: int) -> None:
        """Nothing is counted yet.

        Args:
            read: the address of uc_reg_read.
            write: the address of uc_reg_write.
            register: Unicorn's number of the PC.
            breakpoint_at: the number of a breakpoint's event, and how far the PC is behind it then, in bytes.
            credit: the address of the 64-bit word that credits are added to; 0 if nobody counts instructions.
        """
        self._state = (ctypes.c_uint64 * 11)()
        self._nowhere = ctypes.c_uint64()
        self._state[_READ], self._state[_WRITE], self._state[_PC] = read, write, register
        self._state[_NUMBER], self._state[_BIAS] = breakpoint_at
        self._state[_CREDIT] = credit or ctypes.addressof(self._nowhere)
        self._code = host_function(HOST_CODE)
        self._rows: dict[int, tuple[int, int, int]] = {}  # by address, what the table has
        self._used = 0  # rows of the table that are not free
        self._cells: list[NDArray[np.uint64]] = []  # of each CPU
        self._count = 1  # of a CPU's cells that are given out; the first takes what nobody wants to know
        self._given_back: list[int] = []
        self._cpu = 0
        self._make_table(_FEWEST_ROWS)
        self.use(0)

    @property
    def is_native(self) -> bool:
        """Whether this host counts; else all hits are passed on."""
        return self._code is not None

    def callback(self, otherwise: ctypes.c_void_p) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
        """The function and the argument for Unicorn's UC_HOOK_INTR. `otherwise` gets what is not counted."""
        self._state[_CALLBACK] = otherwise.value or 0
        if self._code is None:
            return otherwise, ctypes.c_void_p()
        return self._code.address, ctypes.c_void_p(ctypes.addressof(self._state))

    # -- breakpoints --------------------------------------------------------------------------------------------------

    def set(self, address: int, following: int, cell: int, *, has_credit: bool) -> None:
        """Count the breakpoint at `address` in `cell` (0: in none), and let the CPU go on at `following`."""
        self.drop(address)
        self._rows[address] = following, cell * _WORD, int(has_credit)
        if 2 * (self._used + 1) > self._state[_MASK]:
            self._make_table(max(_FEWEST_ROWS, 1 << (4 * len(self._rows)).bit_length()))
        else:
            self._put(address)

    def drop(self, address: int) -> None:
        """Pass the hits of a breakpoint on again."""
        if self._rows.pop(address, None) is not None:
            _ROW.pack_into(self._table, self._place(address) * _ROW.size, _GONE, 0, 0, 0)

    def _make_table(self, size: int) -> None:
        self._table = memoryview(mmap.mmap(-1, size * _ROW.size))
        self._table[:] = b"\xff" * len(self._table)
        self._state[_TABLE] = ctypes.addressof(ctypes.c_char.from_buffer(self._table))
        self._state[_MASK] = size - 1
        self._used = 0
        for address in self._rows:
            self._put(address)

    def _put(self, address: int) -> None:
        _ROW.pack_into(self._table, self._place(_FREE, address) * _ROW.size, address, *self._rows[address])
        self._used += 1

    def _place(self, key: int, address: int | None = None) -> int:
        """The first row that has `key`, from the place of an address on, which is `key` itself if it is not given."""
        place = ((key if address is None else address) * _HASH & _FREE) >> 32
        while True:
            place &= self._state[_MASK]
            if _ROW.unpack_from(self._table, place * _ROW.size)[0] == key:
                return place
            place += 1

    # -- cells --------------------------------------------------------------------------------------------------------

    def cell(self) -> int:
        """A new cell, which each CPU has for itself."""
        if self._given_back:
            return self._given_back.pop()
        self._count += 1
        if self._count > len(self._cells[0]):
            more = 2 * self._count
            self._cells = [np.concatenate([cells, np.zeros(more - len(cells), np.uint64)]) for cells in self._cells]
            self.use(self._cpu)
        return self._count - 1

    def give_back(self, cells: list[int]) -> None:
        """Let cells that no breakpoint has any more, and that were taken since, be given out again."""
        self._given_back += cells

    def use(self, cpu: int) -> None:
        """Count in the cells of this CPU: it runs."""
        self._cpu = cpu
        while len(self._cells) <= cpu:
            self._cells.append(np.zeros(max(_FEWEST_CELLS, 2 * self._count), np.uint64))
        self._state[_CELLS] = self._cells[cpu].ctypes.data

    def take(self) -> Taken:
        """What was counted since the last time, by CPU and cell, ascending."""
        taken: Taken = []
        for cpu, cells in enumerate(self._cells):
            cells[0] = 0
            found = np.flatnonzero(cells[: self._count])
            taken += [(cpu, cell, hits) for cell, hits in zip(found.tolist(), cells[found].tolist(), strict=True)]
            cells[found] = 0
        return taken
