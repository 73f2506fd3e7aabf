"""What the engine does at a breakpoint by itself, as machine code of the host, and the words that the code works with.

It is Unicorn's callback for exceptions: it looks the PC up in a table, and what it does not find there it passes on to
the callback in Python. Where a hit is told, it calls a function of Python's itself: the registers were read, and where
the CPU goes on is written, so that Python makes no call into Unicorn, each of which would take half a microsecond.
"""

from typing import Final

# The callback's arguments are uc, number, state. `state` has the callback in Python; the number of a breakpoint's
# event; where the CPU has its PC; how far the PC is behind the breakpoint; the table, and the number of its rows less
# one; the running CPU's cells; and the word for credits.
CALLBACK, NUMBER, PC = range(3)
BIAS, TABLE, MASK, CELLS, CREDIT = range(6, 11)
# For hits that are recorded: where the next record goes, and where there is no room any more; the numbers of those
# registers that are read, how many there are, and the addresses of their places in the next record; uc_reg_read_batch;
# the running CPU; the bytes of a record, and those of the addresses for one; and the callback when there is no room.
NEXT, END, NUMBERS, COUNT, PLACES, READ_BATCH, CPU, RECORD_SIZE, STEP, FULL = range(11, 21)
# For hits that are told: the callback for them; the numbers of those registers of the frame that are read, how many
# there are, and the addresses of their places; the PC's place; whether the CPU stays where the callback put it; and
# where the registers are that are copied, how many there are, and the frame, which begins with them.
TELL, FRAME_NUMBERS, FRAME_COUNT, FRAME_PLACES, FRAME_PC, STAYS, GENERAL, GENERAL_COUNT, FRAME = range(21, 30)
# The time of a record is the word at CLOCK less FACTOR times the word for credits; if GETTIME is not 0, the host's time
# is added, which clock_gettime(CLOCK_MONOTONIC) leaves here.
CLOCK, FACTOR, GETTIME, SECONDS, NANOSECONDS = range(30, 35)
# For records with the key of a thread: a table of keys; where in a record the stack pointer is, and a register that
# identifies what runs; and the bits of it that count.
KEYS, STACK_POINTER, IDENTITY, IDENTITY_MASK = range(35, 39)
# For hits that are recorded: the addresses of the registers that are copied, and how many there are.
SOURCES, SOURCE_COUNT = range(39, 41)
WORDS: Final = 41

# A row of the table: the breakpoint's address, where the CPU goes on, the offset of the cell in bytes, or one of these,
# and the credit: 1 if the breakpoint, which was counted as an instruction, is followed by the displaced one, which will
# be. A hit that is told has the address of the callback's argument in the rest of the word; if where the CPU goes on is
# 0, the callback leaves that in the frame's PC.
RECORDED: Final = 1 << 63
TOLD: Final = 3 << 62
KEYED: Final = 1 << 61  # recorded with the key of the thread: if the table does not have it, the hit is passed on
# A row of the table of keys, which the page of the byte below the stack pointer chooses. It is what has the stack
# pointer above LOW and up to HIGH, that identity, and these values at two places of the host's memory.
LOW, HIGH, IDENTITY_IS, FIRST_AT, FIRST_IS, SECOND_AT, SECOND_IS, KEY = range(8)
KEY_WORDS: Final = 8
KEY_ROWS: Final = 1 << 10


def _words(*words: int) -> bytes:
    return b"".join(word.to_bytes(4, "little") for word in words)


HOST_CODE: Final = {
    "x86_64": bytes.fromhex(
        "3b7208"  # cmp esi, dword [rdx + 8]
        "7543"  # jne python
        "4c8b5a10"  # mov r11, qword [rdx + 16]
        "498b03"  # mov rax, qword [r11]
        "4989c0"  # mov r8, rax
        "4c2b4230"  # sub r8, qword [rdx + 48]
        "4983f8fe"  # cmp r8, -2
        "732f"  # jae python
        "48b9157c4a7fb979379e"  # movabs rcx, 0x9e3779b97f4a7c15
        "490fafc8"  # imul rcx, r8
        "48c1e920"  # shr rcx, 32
        "48234a40"  # probe: and rcx, qword [rdx + 64]
        "4989c9"  # mov r9, rcx
        "49c1e105"  # shl r9, 5
        "4c034a38"  # add r9, qword [rdx + 56]
        "4d3901"  # cmp qword [r9], r8
        "740b"  # je found
        "48ffc1"  # inc rcx
        "498339ff"  # cmp qword [r9], -1
        "75e3"  # jne probe
        "ff22"  # python: jmp qword [rdx]
        "498b4910"  # found: mov rcx, qword [r9 + 16]
        "4885c9"  # test rcx, rcx
        "781a"  # js record
        "48034a48"  # add rcx, qword [rdx + 72]
        "48ff01"  # inc qword [rcx]
        "488b4a50"  # go_on: mov rcx, qword [rdx + 80]
        "4d8b5118"  # mov r10, qword [r9 + 24]
        "4c0111"  # add qword [rcx], r10
        "498b4908"  # mov rcx, qword [r9 + 8]
        "49890b"  # mov qword [r11], rcx
        "c3"  # ret
        "4801c9"  # record: add rcx, rcx
        "0f885e010000"  # js told
        "4c8b4258"  # mov r8, qword [rdx + 88]
        "4c3b4260"  # cmp r8, qword [rdx + 96]
        "0f844a010000"  # je full
        "498900"  # mov qword [r8], rax
        "488b8a88000000"  # mov rcx, qword [rdx + 136]
        "49894808"  # mov qword [r8 + 8], rcx
        "488b4a50"  # mov rcx, qword [rdx + 80]
        "488b09"  # mov rcx, qword [rcx]
        "480faf8af8000000"  # imul rcx, qword [rdx + 248]
        "4c8b92f0000000"  # mov r10, qword [rdx + 240]
        "4d8b12"  # mov r10, qword [r10]
        "4929ca"  # sub r10, rcx
        "4d895010"  # mov qword [r8 + 16], r10
        "8b8a40010000"  # mov ecx, dword [rdx + 320]
        "488bb238010000"  # mov rsi, qword [rdx + 312]
        "85c9"  # test ecx, ecx
        "7411"  # je copied
        "488b44cef8"  # copy: mov rax, qword [rsi + rcx*8 - 8]
        "488b00"  # mov rax, qword [rax]
        "498944c818"  # mov qword [r8 + rcx*8 + 24], rax
        "ffc9"  # dec ecx
        "75ef"  # jne copy
        "57"  # copied: push rdi
        "52"  # push rdx
        "4151"  # push r9
        "8b4a70"  # mov ecx, dword [rdx + 112]
        "85c9"  # test ecx, ecx
        "7416"  # je read
        "488b7268"  # mov rsi, qword [rdx + 104]
        "488b8280000000"  # mov rax, qword [rdx + 128]
        "488b5278"  # mov rdx, qword [rdx + 120]
        "ffd0"  # call rax
        "488b542408"  # mov rdx, qword [rsp + 8]
        "488b8200010000"  # read: mov rax, qword [rdx + 256]
        "4885c0"  # test rax, rax
        "742d"  # je clocked
        "bf01000000"  # mov edi, 1
        "488db208010000"  # lea rsi, [rdx + 264]
        "ffd0"  # call rax
        "488b542408"  # mov rdx, qword [rsp + 8]
        "48698a0801000000ca9a3b"  # imul rcx, qword [rdx + 264], 1000000000
        "48038a10010000"  # add rcx, qword [rdx + 272]
        "4c8b4258"  # mov r8, qword [rdx + 88]
        "49014810"  # add qword [r8 + 16], rcx
        "4159"  # clocked: pop r9
        "5a"  # pop rdx
        "5f"  # pop rdi
        "4c8b4258"  # mov r8, qword [rdx + 88]
        "498b4910"  # mov rcx, qword [r9 + 16]
        "48c1e102"  # shl rcx, 2
        "796a"  # jns recorded
        "488b8a20010000"  # mov rcx, qword [rdx + 288]
        "498b0c08"  # mov rcx, qword [r8 + rcx]
        "4c8b9228010000"  # mov r10, qword [rdx + 296]
        "4f8b1410"  # mov r10, qword [r8 + r10]
        "4c8d59ff"  # lea r11, [rcx - 1]
        "49c1eb0c"  # shr r11, 12
        "4181e3ff030000"  # and r11d, 1023
        "49c1e306"  # shl r11, 6
        "4c039a18010000"  # add r11, qword [rdx + 280]
        "493b0b"  # cmp rcx, qword [r11]
        "7654"  # jbe unknown
        "493b4b08"  # cmp rcx, qword [r11 + 8]
        "774e"  # ja unknown
        "4d335310"  # xor r10, qword [r11 + 16]
        "4c859230010000"  # test qword [rdx + 304], r10
        "7541"  # jne unknown
        "498b4b18"  # mov rcx, qword [r11 + 24]
        "488b09"  # mov rcx, qword [rcx]
        "493b4b20"  # cmp rcx, qword [r11 + 32]
        "7534"  # jne unknown
        "498b4b28"  # mov rcx, qword [r11 + 40]
        "488b09"  # mov rcx, qword [rcx]
        "493b4b30"  # cmp rcx, qword [r11 + 48]
        "7527"  # jne unknown
        "498b4b38"  # mov rcx, qword [r11 + 56]
        "49894818"  # mov qword [r8 + 24], rcx
        "488b8a90000000"  # recorded: mov rcx, qword [rdx + 144]
        "48014a58"  # add qword [rdx + 88], rcx
        "488b8a98000000"  # mov rcx, qword [rdx + 152]
        "48014a78"  # add qword [rdx + 120], rcx
        "4c8b5a10"  # mov r11, qword [rdx + 16]
        "e991feffff"  # jmp go_on
        "8b7208"  # unknown: mov esi, dword [rdx + 8]
        "ff22"  # jmp qword [rdx]
        "ffa2a0000000"  # full: jmp qword [rdx + 160]
        "4801c9"  # told: add rcx, rcx
        "48c1e902"  # shr rcx, 2
        "57"  # push rdi
        "52"  # push rdx
        "50"  # push rax
        "41ff7118"  # push qword [r9 + 24]
        "41ff7108"  # push qword [r9 + 8]
        "4150"  # push r8
        "51"  # push rcx
        "488bb2d8000000"  # mov rsi, qword [rdx + 216]
        "8b8ae0000000"  # mov ecx, dword [rdx + 224]
        "488bbae8000000"  # mov rdi, qword [rdx + 232]
        "f348a5"  # rep movsq
        "8b8ab8000000"  # mov ecx, dword [rdx + 184]
        "85c9"  # test ecx, ecx
        "741c"  # je filled
        "488b7c2430"  # mov rdi, qword [rsp + 48]
        "488bb2b0000000"  # mov rsi, qword [rdx + 176]
        "488b8280000000"  # mov rax, qword [rdx + 128]
        "488b92c0000000"  # mov rdx, qword [rdx + 192]
        "ffd0"  # call rax
        "5f"  # filled: pop rdi
        "4158"  # pop r8
        "488b542418"  # mov rdx, qword [rsp + 24]
        "488b8ac8000000"  # mov rcx, qword [rdx + 200]
        "4c8901"  # mov qword [rcx], r8
        "ff92a8000000"  # call qword [rdx + 168]
        "58"  # pop rax
        "415a"  # pop r10
        "4158"  # pop r8
        "5a"  # pop rdx
        "5f"  # pop rdi
        "4883bad000000000"  # cmp qword [rdx + 208], 0
        "751e"  # jne stay
        "488b4a50"  # mov rcx, qword [rdx + 80]
        "4c0111"  # add qword [rcx], r10
        "4885c0"  # test rax, rax
        "750a"  # jne go
        "488b8ac8000000"  # mov rcx, qword [rdx + 200]
        "488b01"  # mov rax, qword [rcx]
        "488b4a10"  # go: mov rcx, qword [rdx + 16]
        "488901"  # mov qword [rcx], rax
        "c3"  # ret
        "48c782d000000000000000"  # stay: mov qword [rdx + 208], 0
        "c3"  # ret
    ),
    "aarch64": _words(
        0xF9400449,  # ldr x9, [x2, #8]
        0xEB21413F,  # cmp x9, w1, uxtw
        0x540002C1,  # b.ne python
        0xF940084B,  # ldr x11, [x2, #16]
        0xF9400163,  # ldr x3, [x11]
        0xF9401844,  # ldr x4, [x2, #48]
        0xCB040064,  # sub x4, x3, x4
        0xB100089F,  # cmn x4, #2
        0x54000202,  # b.hs python
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
        0x540000C0,  # b.eq found
        0x910004A5,  # add x5, x5, #1
        0xB100053F,  # cmn x9, #1
        0x54FFFF21,  # b.ne probe
        0xF9400049,  # python: ldr x9, [x2]
        0xD61F0120,  # br x9
        0xA9411905,  # found: ldp x5, x6, [x8, #16]
        0xB7F80165,  # tbnz x5, #63, record
        0xA944A447,  # ldp x7, x9, [x2, #72]
        0xF86568EA,  # ldr x10, [x7, x5]
        0x9100054A,  # add x10, x10, #1
        0xF82568EA,  # str x10, [x7, x5]
        0xF940012A,  # go_on: ldr x10, [x9]
        0x8B06014A,  # add x10, x10, x6
        0xF900012A,  # str x10, [x9]
        0xF940050A,  # ldr x10, [x8, #8]
        0xF900016A,  # str x10, [x11]
        0xD65F03C0,  # ret
        0xB7F00BA5,  # record: tbnz x5, #62, told
        0xA945AC4A,  # ldp x10, x11, [x2, #88]
        0xEB0B015F,  # cmp x10, x11
        0x54000B00,  # b.eq full
        0xF940444B,  # ldr x11, [x2, #136]
        0xA9002D43,  # stp x3, x11, [x10]
        0xF940284B,  # ldr x11, [x2, #80]
        0xF940016B,  # ldr x11, [x11]
        0xA94F344C,  # ldp x12, x13, [x2, #240]
        0x9B0D7D6B,  # mul x11, x11, x13
        0xF940018C,  # ldr x12, [x12]
        0xCB0B018C,  # sub x12, x12, x11
        0xF900094C,  # str x12, [x10, #16]
        0xB941404B,  # ldr w11, [x2, #320]
        0xF9409C4C,  # ldr x12, [x2, #312]
        0x9100814D,  # add x13, x10, #32
        0x340000CB,  # cbz w11, copied
        0xF8408589,  # word: ldr x9, [x12], #8
        0xF9400129,  # ldr x9, [x9]
        0xF80085A9,  # str x9, [x13], #8
        0x7100056B,  # subs w11, w11, #1
        0x54FFFF81,  # b.ne word
        0xA9BD7BFD,  # copied: stp x29, x30, [sp, #-48]!
        0xA9010BE0,  # stp x0, x2, [sp, #16]
        0xF90013E8,  # str x8, [sp, #32]
        0xB9407043,  # ldr w3, [x2, #112]
        0x340000C3,  # cbz w3, read
        0xF9403441,  # ldr x1, [x2, #104]
        0xF9404049,  # ldr x9, [x2, #128]
        0xF9403C42,  # ldr x2, [x2, #120]
        0xD63F0120,  # blr x9
        0xF9400FE2,  # ldr x2, [sp, #24]
        0xF9408049,  # read: ldr x9, [x2, #256]
        0xB40001A9,  # cbz x9, clocked
        0x52800020,  # mov w0, #1
        0x91042041,  # add x1, x2, #264
        0xD63F0120,  # blr x9
        0xF9400FE2,  # ldr x2, [sp, #24]
        0xA950A849,  # ldp x9, x10, [x2, #264]
        0xD299400B,  # movz x11, #0xca00
        0xF2A7734B,  # movk x11, #0x3b9a, lsl #16
        0x9B0B2929,  # madd x9, x9, x11, x10
        0xF9402C4A,  # ldr x10, [x2, #88]
        0xF940094B,  # ldr x11, [x10, #16]
        0x8B09016B,  # add x11, x11, x9
        0xF900094B,  # str x11, [x10, #16]
        0xF94013E8,  # clocked: ldr x8, [sp, #32]
        0xA9410BE0,  # ldp x0, x2, [sp, #16]
        0xA8C37BFD,  # ldp x29, x30, [sp], #48
        0xF9402C4A,  # ldr x10, [x2, #88]
        0xF9400909,  # ldr x9, [x8, #16]
        0xB6E80369,  # tbz x9, #61, recorded
        0xA952304B,  # ldp x11, x12, [x2, #288]
        0xF86B694B,  # ldr x11, [x10, x11]
        0xF86C694C,  # ldr x12, [x10, x12]
        0xF9408C45,  # ldr x5, [x2, #280]
        0xF9409846,  # ldr x6, [x2, #304]
        0xD1000567,  # sub x7, x11, #1
        0xD34C54E7,  # ubfx x7, x7, #12, #10
        0x8B0718A7,  # add x7, x5, x7, lsl #6
        0xA94024E5,  # ldp x5, x9, [x7]
        0xEB05017F,  # cmp x11, x5
        0x54000349,  # b.ls unknown
        0xEB09017F,  # cmp x11, x9
        0x54000308,  # b.hi unknown
        0xA94124E5,  # ldp x5, x9, [x7, #16]
        0xCA05018C,  # eor x12, x12, x5
        0xEA06019F,  # tst x12, x6
        0x54000281,  # b.ne unknown
        0xF9400129,  # ldr x9, [x9]
        0xA9422CE5,  # ldp x5, x11, [x7, #32]
        0xEB05013F,  # cmp x9, x5
        0x54000201,  # b.ne unknown
        0xF940016B,  # ldr x11, [x11]
        0xA94324E5,  # ldp x5, x9, [x7, #48]
        0xEB05017F,  # cmp x11, x5
        0x54000181,  # b.ne unknown
        0xF9000D49,  # str x9, [x10, #24]
        0xA9491C4B,  # recorded: ldp x11, x7, [x2, #144]
        0x8B0B014A,  # add x10, x10, x11
        0xF9002C4A,  # str x10, [x2, #88]
        0xF9403C4A,  # ldr x10, [x2, #120]
        0x8B07014A,  # add x10, x10, x7
        0xF9003C4A,  # str x10, [x2, #120]
        0xF940084B,  # ldr x11, [x2, #16]
        0xF9400D06,  # ldr x6, [x8, #24]
        0xF9402849,  # ldr x9, [x2, #80]
        0x17FFFFA3,  # b go_on
        0xB9400841,  # unknown: ldr w1, [x2, #8]
        0xF9400049,  # ldr x9, [x2]
        0xD61F0120,  # br x9
        0xF9405049,  # full: ldr x9, [x2, #160]
        0xD61F0120,  # br x9
        0xA9BB7BFD,  # told: stp x29, x30, [sp, #-80]!
        0xA9010BE0,  # stp x0, x2, [sp, #16]
        0xA90213E3,  # stp x3, x4, [sp, #32]
        0xF9400507,  # ldr x7, [x8, #8]
        0xA9031FE6,  # stp x6, x7, [sp, #48]
        0x9240F4A5,  # and x5, x5, #0x3fffffffffffffff
        0xF90023E5,  # str x5, [sp, #64]
        0xF9406C49,  # ldr x9, [x2, #216]
        0xB940E04B,  # ldr w11, [x2, #224]
        0xF940744A,  # ldr x10, [x2, #232]
        0x340000AB,  # cbz w11, rest
        0xF840852C,  # copy: ldr x12, [x9], #8
        0xF800854C,  # str x12, [x10], #8
        0x7100056B,  # subs w11, w11, #1
        0x54FFFFA1,  # b.ne copy
        0xB940B843,  # rest: ldr w3, [x2, #184]
        0x340000A3,  # cbz w3, filled
        0xF9405841,  # ldr x1, [x2, #176]
        0xF9404049,  # ldr x9, [x2, #128]
        0xF9406042,  # ldr x2, [x2, #192]
        0xD63F0120,  # blr x9
        0xF9400FE2,  # filled: ldr x2, [sp, #24]
        0xF94017E4,  # ldr x4, [sp, #40]
        0xF9406449,  # ldr x9, [x2, #200]
        0xF9000124,  # str x4, [x9]
        0xF94023E0,  # ldr x0, [sp, #64]
        0xF9405449,  # ldr x9, [x2, #168]
        0xD63F0120,  # blr x9
        0xA9410BE0,  # ldp x0, x2, [sp, #16]
        0xF94013E3,  # ldr x3, [sp, #32]
        0xA9431FE6,  # ldp x6, x7, [sp, #48]
        0xA8C57BFD,  # ldp x29, x30, [sp], #80
        0xF9406849,  # ldr x9, [x2, #208]
        0xB5000169,  # cbnz x9, stay
        0xF9402849,  # ldr x9, [x2, #80]
        0xF940012A,  # ldr x10, [x9]
        0x8B06014A,  # add x10, x10, x6
        0xF900012A,  # str x10, [x9]
        0xB5000067,  # cbnz x7, go
        0xF9406449,  # ldr x9, [x2, #200]
        0xF9400127,  # ldr x7, [x9]
        0xF9400849,  # go: ldr x9, [x2, #16]
        0xF9000127,  # str x7, [x9]
        0xD65F03C0,  # ret
        0xF900685F,  # stay: str xzr, [x2, #208]
        0xD65F03C0,  # ret
    ),
}
