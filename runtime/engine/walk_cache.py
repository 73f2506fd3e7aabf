"""TLB misses that were answered before -> the same answers, by a few bytes of host machine code.

A Python callback that walks the guest's tables takes ten microseconds, and a booting Linux misses the TLB a million
times. So an answer is kept together with all that it came from: the registers that decide how addresses are translated,
and the words of memory that the walk read. It is given again only while each of them has the same value. Another walk
would then find the same, so nobody needs to know when the guest changes its tables.
"""

import ctypes
import mmap
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kinst.runtime.engine.native_hooks import host_function
from kinst.runtime.engine.register_file import RegisterFile
from kinst.runtime.paging.walker import Registers

# Unicorn's arguments are uc, address, access, entry (struct uc_tlb_entry), state. `state` has the callback in Python,
# and whether it is called in any case; for uc_reg_read_batch its address, the registers, where they are put, and how
# many there are; the table; the row for this miss, and its key; the register that is raised while others are read (0:
# none), the address of uc_reg_write, and the two values for it. Then, for each register, where its value is, which bits
# of it count, and these bits. Last, whether somebody only asks for an answer that is kept: then the physical address
# comes to the last word, and there is no translation for Unicorn.
_CALLBACK, _IS_OFF, _READ, _NUMBERS, _BUFFERS, _COUNT, _TABLE, _ROW, _KEY = range(9)
_RAISED, _WRITE, _HIGH, _LOW, _REGISTERS = range(9, 14)
_WORDS_OF_REGISTER: Final = 3
_MOST_REGISTERS: Final = 8
_ASKS: Final = _REGISTERS + _WORDS_OF_REGISTER * _MOST_REGISTERS
_ANSWER: Final = _ASKS + 1
_NO_ANSWER: Final = (1 << 64) - 1

# A row has the key, which is the page's address, the access in bits 1:0, and bit 2; the physical address; the
# permissions; how many words the answer came from; and for each of them its address in the host's memory and its value.
_ROWS: Final = 1 << 14
_ROW_SIZE: Final = 256
_HEAD: Final = struct.Struct("<QQII")
_MOST_WORDS: Final = (_ROW_SIZE - _HEAD.size) // 16
_WORDS: Final = tuple(struct.Struct(f"<{2 * count}Q") for count in range(_MOST_WORDS + 1))


def _words(*words: int) -> bytes:
    return b"".join(word.to_bytes(4, "little") for word in words)


HOST_CODE: Final = {
    "x86_64": bytes.fromhex(
        "4983780800"  # cmp qword [r8 + 8], 0
        "0f852f010000"  # jne python
        "57"  # push rdi
        "56"  # push rsi
        "52"  # push rdx
        "51"  # push rcx
        "4150"  # push r8
        "498b7018"  # mov rsi, [r8 + 24]
        "498b5020"  # mov rdx, [r8 + 32]
        "418b4828"  # mov ecx, [r8 + 40]
        "41ff5010"  # call [r8 + 16]
        "4c8b0424"  # mov r8, [rsp]
        "4983784800"  # cmp qword [r8 + 72], 0
        "7458"  # je ready
        "498b4068"  # mov rax, [r8 + 104]
        "48833800"  # cmp qword [rax], 0
        "754e"  # jne ready
        "488b7c2420"  # mov rdi, [rsp + 32]
        "418b7048"  # mov esi, [r8 + 72]
        "498d5058"  # lea rdx, [r8 + 88]
        "41ff5050"  # call [r8 + 80]
        "4c8b0424"  # mov r8, [rsp]
        "488b7c2420"  # mov rdi, [rsp + 32]
        "498b7018"  # mov rsi, [r8 + 24]
        "498b5020"  # mov rdx, [r8 + 32]
        "418b4828"  # mov ecx, [r8 + 40]
        "41ff5010"  # call [r8 + 16]
        "4c8b0424"  # mov r8, [rsp]
        "488b7c2420"  # mov rdi, [rsp + 32]
        "418b7048"  # mov esi, [r8 + 72]
        "498d5060"  # lea rdx, [r8 + 96]
        "41ff5050"  # call [r8 + 80]
        "4c8b0424"  # mov r8, [rsp]
        "498b4068"  # mov rax, [r8 + 104]
        "48c70000000000"  # mov qword [rax], 0
        "448b4c2410"  # ready: mov r9d, [rsp + 16]
        "4183e103"  # and r9d, 3
        "4183c904"  # or r9d, 4
        "4c0b4c2418"  # or r9, [rsp + 24]
        "49ba157c4a7fb979379e"  # mov r10, 0x9e3779b97f4a7c15
        "4c89c8"  # mov rax, r9
        "498d7068"  # lea rsi, [r8 + 104]
        "418b4828"  # mov ecx, [r8 + 40]
        "490fafc2"  # register: imul rax, r10
        "488b16"  # mov rdx, [rsi]
        "488b12"  # mov rdx, [rdx]
        "48235608"  # and rdx, [rsi + 8]
        "48895610"  # mov [rsi + 16], rdx
        "4831d0"  # xor rax, rdx
        "4883c618"  # add rsi, 24
        "ffc9"  # dec ecx
        "75e3"  # jnz register
        "490fafc2"  # imul rax, r10
        "48c1e832"  # shr rax, 50
        "48c1e008"  # shl rax, 8
        "49034030"  # add rax, [r8 + 48]
        "49894038"  # mov [r8 + 56], rax
        "4d894840"  # mov [r8 + 64], r9
        "4c3908"  # cmp [rax], r9
        "754f"  # jne miss
        "8b4814"  # mov ecx, [rax + 20]
        "488d7018"  # lea rsi, [rax + 24]
        "488b16"  # word: mov rdx, [rsi]
        "488b12"  # mov rdx, [rdx]
        "483b5608"  # cmp rdx, [rsi + 8]
        "753c"  # jne miss
        "4883c610"  # add rsi, 16
        "ffc9"  # dec ecx
        "75ec"  # jnz word
        "488b5008"  # mov rdx, [rax + 8]
        "4983b82801000000"  # cmp qword [r8 + 296], 0
        "7518"  # jne answer
        "488b4c2408"  # mov rcx, [rsp + 8]
        "488911"  # mov [rcx], rdx
        "8b5010"  # mov edx, [rax + 16]
        "895108"  # mov [rcx + 8], edx
        "b801000000"  # mov eax, 1
        "4883c428"  # add rsp, 40
        "c3"  # ret
        "49899030010000"  # answer: mov [r8 + 304], rdx
        "31c0"  # xor eax, eax
        "4883c428"  # add rsp, 40
        "c3"  # ret
        "4158"  # miss: pop r8
        "59"  # pop rcx
        "5a"  # pop rdx
        "5e"  # pop rsi
        "5f"  # pop rdi
        "41ff20"  # python: jmp [r8]
    ),
    "aarch64": _words(
        0xF9400485,  # ldr x5, [x4, #8]
        0xB5000B05,  # cbnz x5, python
        0xA9BC7BFD,  # stp x29, x30, [sp, #-64]!
        0xA90107E0,  # stp x0, x1, [sp, #16]
        0xA9020FE2,  # stp x2, x3, [sp, #32]
        0xF9001BE4,  # str x4, [sp, #48]
        0xA9418881,  # ldp x1, x2, [x4, #24]
        0xB9402883,  # ldr w3, [x4, #40]
        0xF9400885,  # ldr x5, [x4, #16]
        0xD63F00A0,  # blr x5
        0xF9401BE4,  # ldr x4, [sp, #48]
        0xF9402481,  # ldr x1, [x4, #72]
        0xB40002E1,  # cbz x1, ready
        0xF9403482,  # ldr x2, [x4, #104]
        0xF9400042,  # ldr x2, [x2]
        0xB5000282,  # cbnz x2, ready
        0xF9400BE0,  # ldr x0, [sp, #16]
        0x91016082,  # add x2, x4, #88
        0xF9402885,  # ldr x5, [x4, #80]
        0xD63F00A0,  # blr x5
        0xF9401BE4,  # ldr x4, [sp, #48]
        0xF9400BE0,  # ldr x0, [sp, #16]
        0xA9418881,  # ldp x1, x2, [x4, #24]
        0xB9402883,  # ldr w3, [x4, #40]
        0xF9400885,  # ldr x5, [x4, #16]
        0xD63F00A0,  # blr x5
        0xF9401BE4,  # ldr x4, [sp, #48]
        0xF9400BE0,  # ldr x0, [sp, #16]
        0xF9402481,  # ldr x1, [x4, #72]
        0x91018082,  # add x2, x4, #96
        0xF9402885,  # ldr x5, [x4, #80]
        0xD63F00A0,  # blr x5
        0xF9401BE4,  # ldr x4, [sp, #48]
        0xF9403482,  # ldr x2, [x4, #104]
        0xF900005F,  # str xzr, [x2]
        0xA9418BE1,  # ready: ldp x1, x2, [sp, #24]
        0x92400442,  # and x2, x2, #3
        0xAA020021,  # orr x1, x1, x2
        0xB27E0021,  # orr x1, x1, #4
        0xD28F82AA,  # mov x10, #0x7c15
        0xF2AFE94A,  # movk x10, #0x7f4a, lsl #16
        0xF2CF372A,  # movk x10, #0x79b9, lsl #32
        0xF2F3C6EA,  # movk x10, #0x9e37, lsl #48
        0xAA0103E5,  # mov x5, x1
        0x9101A086,  # add x6, x4, #104
        0xB9402887,  # ldr w7, [x4, #40]
        0x9B0A7CA5,  # register: mul x5, x5, x10
        0xA94024C8,  # ldp x8, x9, [x6]
        0xF9400108,  # ldr x8, [x8]
        0x8A090108,  # and x8, x8, x9
        0xF90008C8,  # str x8, [x6, #16]
        0xCA0800A5,  # eor x5, x5, x8
        0x910060C6,  # add x6, x6, #24
        0x710004E7,  # subs w7, w7, #1
        0x54FFFF01,  # b.ne register
        0x9B0A7CA5,  # mul x5, x5, x10
        0xD372FCA5,  # lsr x5, x5, #50
        0xF9401886,  # ldr x6, [x4, #48]
        0x8B0520C5,  # add x5, x6, x5, lsl #8
        0xA9038485,  # stp x5, x1, [x4, #56]
        0xF94000A6,  # ldr x6, [x5]
        0xEB0100DF,  # cmp x6, x1
        0x540002E1,  # b.ne miss
        0xB94014A7,  # ldr w7, [x5, #20]
        0x910060A6,  # add x6, x5, #24
        0xA8C124C8,  # word: ldp x8, x9, [x6], #16
        0xF9400108,  # ldr x8, [x8]
        0xEB09011F,  # cmp x8, x9
        0x54000221,  # b.ne miss
        0x710004E7,  # subs w7, w7, #1
        0x54FFFF61,  # b.ne word
        0xF94004A6,  # ldr x6, [x5, #8]
        0xF9409487,  # ldr x7, [x4, #296]
        0xB5000107,  # cbnz x7, answer
        0xF94017E3,  # ldr x3, [sp, #40]
        0xF9000066,  # str x6, [x3]
        0xB94010A6,  # ldr w6, [x5, #16]
        0xB9000866,  # str w6, [x3, #8]
        0x52800020,  # mov w0, #1
        0xA8C47BFD,  # ldp x29, x30, [sp], #64
        0xD65F03C0,  # ret
        0xF9009886,  # answer: str x6, [x4, #304]
        0x52800000,  # mov w0, #0
        0xA8C47BFD,  # ldp x29, x30, [sp], #64
        0xD65F03C0,  # ret
        0xA94107E0,  # miss: ldp x0, x1, [sp, #16]
        0xA9420FE2,  # ldp x2, x3, [sp, #32]
        0xF9401BE4,  # ldr x4, [sp, #48]
        0xA8C47BFD,  # ldp x29, x30, [sp], #64
        0xF9400085,  # python: ldr x5, [x4]
        0xD61F00A0,  # br x5
    ),
}


class WalkCache:
    """The answers to one engine's TLB misses. On hosts without machine code for it, nothing is kept."""

    def __init__(self, callback: ctypes.c_void_p) -> None:
        """`callback` answers what is not kept. Nothing is kept before `compare` was called."""
        self._callback = callback
        self._state = (ctypes.c_uint64 * (_ANSWER + 1))()
        self._words = memoryview(self._state).cast("B").cast("Q")  # the same, which Python reads faster
        self._words[_CALLBACK], self._words[_IS_OFF], self._words[_HIGH] = callback.value or 0, 1, 1
        self._code = host_function(HOST_CODE)
        self._compared: list[tuple[int, int]] = []  # words of the state with a register's bits: address, index
        self._buffers: list[Any] = []
        self._places: dict[str, int] = {}  # a register's bits among the words of the state
        self._live: RegisterFile
        self._table = mmap.mmap(-1, _ROWS * _ROW_SIZE)
        self._words[_TABLE] = ctypes.addressof(ctypes.c_char.from_buffer(self._table))
        self._is_empty = True

    def hook(self) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
        """The function and the argument for Unicorn."""
        function = self._callback if self._code is None else self._code.address
        return function, ctypes.c_void_p(ctypes.addressof(self._state))

    def compare(
        self, library: ctypes.CDLL, registers: RegisterFile, context: Mapping[str, int], raised: str | None
    ) -> None:
        """Begin to keep answers. `context` has the registers that they depend on, at most 8, and which bits of them.

        `raised` is the first of these registers if the others can only be read while it is not 0: then it is 1
        meanwhile.
        """
        state, self._live = self._words, registers
        numbers, buffers = (ctypes.c_int * len(context))(), (ctypes.c_void_p * len(context))()
        for index, (name, bits) in enumerate(context.items()):
            slot, place = registers.slot(name), _REGISTERS + _WORDS_OF_REGISTER * index
            buffer = ctypes.create_string_buffer(slot.template, len(slot.template))
            numbers[index], buffers[index] = slot.number, ctypes.addressof(buffer)
            state[place], state[place + 1] = ctypes.addressof(buffer) + slot.offset, bits
            self._places[name] = place + 2
            self._compared.append((ctypes.addressof(self._state) + 8 * (place + 2), place + 2))
            self._buffers.append(buffer)
        self._buffers += numbers, buffers
        state[_NUMBERS], state[_BUFFERS], state[_COUNT] = (
            ctypes.addressof(numbers),
            ctypes.addressof(buffers),
            len(context),
        )
        state[_RAISED] = 0 if raised is None else registers.slot(raised).number
        for place, function in ((_READ, library.uc_reg_read_batch), (_WRITE, library.uc_reg_write)):
            state[place] = ctypes.cast(function, ctypes.c_void_p).value or 0
        self.is_off = False

    @property
    def is_off(self) -> bool:
        """Whether the callback answers everything, and nothing is kept."""
        return self._words[_IS_OFF] != 0

    @is_off.setter
    def is_off(self, wanted: bool) -> None:
        # Misses are not noted meanwhile: the last one's registers are not theirs, nor is its row for their answers.
        self._words[_IS_OFF], self._words[_ROW] = wanted, 0

    @property
    def registers(self) -> Registers:
        """The CPU's registers, for the walk that answers a miss: of those that are compared, the bits that count."""
        return self if self._words[_ROW] else self._live

    def get(self, name: str) -> int:
        """A register as it was read for the miss that is being answered, which is five times faster."""
        place = self._places.get(name)
        return self._live.get(name) if place is None else self._words[place]

    def set(self, name: str, value: int) -> None:
        """Change a register of the CPU."""
        self._live.set(name, value)

    def keep(self, physical: int, permissions: int, words: Sequence[int]) -> None:
        """Give this answer again to the miss that is being answered, as long as words of the host's memory have the
        same values. `words` are their addresses, each followed by the value."""
        state, row = self._words, self._words[_ROW]
        count = len(words) // 2 + len(self._compared)
        if not row or count > _MOST_WORDS:
            return
        compared = [word for address, index in self._compared for word in (address, state[index])]
        start = row - state[_TABLE]
        _HEAD.pack_into(self._table, start, state[_KEY], physical, permissions, count)
        _WORDS[count].pack_into(self._table, start + _HEAD.size, *compared, *words)
        state[_ROW] = 0
        self._is_empty = False

    def ask(self, translate: Callable[[int], int | None], address: int) -> int | None:
        """What `translate` finds for an address; if it misses the TLB, the physical address that is kept for its page
        and for reading. Unicorn gets no translation then, as if there were none."""
        words = self._words
        words[_ASKS], words[_ANSWER] = 1, _NO_ANSWER
        try:
            found = translate(address)
        finally:
            words[_ASKS] = words[_ROW] = 0
        answer = words[_ANSWER]
        return found if answer == _NO_ANSWER else answer

    def forget(self) -> None:
        """Keep nothing of what was kept."""
        if not self._is_empty:
            self._table[:] = bytes(len(self._table))
            self._is_empty = True
