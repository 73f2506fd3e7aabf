"""What the engine does at the start of every block of code, as machine code of the host, and the words it works with.

It is Unicorn's callback for blocks. Blocks that begin or end at marks are looked at; the run may end; and a block that
begins at a site is counted, if the run does not end there. A block that has a site behind its first instruction ends
the run, too: what would be executed there could not be counted.
"""

from typing import Final

# The callback's arguments are uc, address, size, state. `state` has the words of `kinst.runtime.engine.native_hooks`,
# and behind them, to count: the size of the last block, where there was something else to do; a bit for each address
# from the first one on, 1 at a site, or 0 if nothing is counted; how many addresses these are; the first of them, for
# two places at which the code is; the table by distance from there, and the number of its rows less one; the running
# CPU's cells; and the block that ended the run because of a site inside it.
SIZE, BITS, SPAN, FIRST, SECOND, ROWS, MASK, CELLS, INSIDE = range(15, 24)
WORDS: Final = 24
SLACK: Final = 1 << 13  # addresses: no block is longer


def _words(*words: int) -> bytes:
    return b"".join(word.to_bytes(4, "little") for word in words)


HOST_CODE: Final = {
    "x86_64": bytes.fromhex(
        "48833900"  # cmp qword [rcx], 0
        "0f84b6000000"  # je count
        "4c8b4970"  # mov r9, [rcx + 112]
        "48897170"  # mov [rcx + 112], rsi
        "48895178"  # mov [rcx + 120], rdx
        "4889f0"  # mov rax, rsi
        "482b4108"  # sub rax, [rcx + 8]
        "483b4110"  # cmp rax, [rcx + 16]
        "0f8286000000"  # jb in_trampolines
        "83790400"  # cmp dword [rcx + 4], 0
        "7437"  # je stopping
        "488b4158"  # mov rax, [rcx + 88]
        "4189f0"  # mov r8d, esi
        "4181e0ffff0f00"  # and r8d, 0xfffff
        "42803c0000"  # cmp byte [rax + r8], 0
        "7519"  # jne watched
        "448d0416"  # lea r8d, [rsi + rdx]
        "4181e0ffff0f00"  # and r8d, 0xfffff
        "42803c0000"  # cmp byte [rax + r8], 0
        "7507"  # jne watched
        "4883796000"  # cmp qword [rcx + 96], 0
        "7409"  # je stopping
        "51"  # watched: push rcx
        "57"  # push rdi
        "56"  # push rsi
        "ff5168"  # call [rcx + 104]
        "5e"  # pop rsi
        "5f"  # pop rdi
        "59"  # pop rcx
        "8b01"  # stopping: mov eax, [rcx]
        "83f801"  # cmp eax, 1
        "7437"  # je stop
        "724b"  # jb again
        "4883792800"  # cmp qword [rcx + 40], 0
        "740a"  # je look
        "48c7412800000000"  # mov qword [rcx + 40], 0
        "eb3a"  # jmp again
        "51"  # look: push rcx
        "57"  # push rdi
        "4883ec08"  # sub rsp, 8
        "8b7138"  # mov esi, [rcx + 56]
        "488d5140"  # lea rdx, [rcx + 64]
        "ff5130"  # call [rcx + 48]
        "4883c408"  # add rsp, 8
        "5f"  # pop rdi
        "59"  # pop rcx
        "488b4140"  # mov rax, [rcx + 64]
        "48334150"  # xor rax, [rcx + 80]
        "48854148"  # test [rcx + 72], rax
        "7416"  # jz again
        "48c7412001000000"  # stop: mov qword [rcx + 32], 1
        "ff6118"  # jmp [rcx + 24]
        "4939f1"  # in_trampolines: cmp r9, rsi
        "7560"  # jne done
        "833901"  # cmp dword [rcx], 1
        "74eb"  # je stop
        "c3"  # ret
        "488b7170"  # again: mov rsi, [rcx + 112]
        "488b5178"  # mov rdx, [rcx + 120]
        "4c8b8180000000"  # count: mov r8, [rcx + 128]
        "4d85c0"  # test r8, r8
        "7446"  # jz done
        "4889f0"  # mov rax, rsi
        "482b8190000000"  # sub rax, [rcx + 144]
        "483b8188000000"  # cmp rax, [rcx + 136]
        "7213"  # jb near_sites
        "4889f0"  # mov rax, rsi
        "482b8198000000"  # sub rax, [rcx + 152]
        "483b8188000000"  # cmp rax, [rcx + 136]
        "7320"  # jae done
        "4989ca"  # near_sites: mov r10, rcx
        "4989c1"  # mov r9, rax
        "49c1e903"  # shr r9, 3
        "4f8b0c08"  # mov r9, [r8 + r9]
        "89c1"  # mov ecx, eax
        "83e107"  # and ecx, 7
        "49d3e9"  # shr r9, cl
        "4d85c9"  # test r9, r9
        "7506"  # jnz closer
        "83fa39"  # cmp edx, 57
        "7701"  # ja closer
        "c3"  # done: ret
        "49895278"  # closer: mov [r10 + 120], rdx
        "4c8d5801"  # lea r11, [rax + 1]
        "ffca"  # dec edx
        "41f6c101"  # test r9b, 1
        "4989c1"  # mov r9, rax
        "48c7c0ffffffff"  # mov rax, -1
        "743e"  # jz behind
        "49bb157c4a7fb979379e"  # movabs r11, 0x9e3779b97f4a7c15
        "4d0fafd9"  # imul r11, r9
        "49c1eb20"  # shr r11, 32
        "4d239aa8000000"  # probe: and r11, [r10 + 168]
        "4c89d9"  # mov rcx, r11
        "48c1e104"  # shl rcx, 4
        "49038aa0000000"  # add rcx, [r10 + 160]
        "49ffc3"  # inc r11
        "4c3909"  # cmp [rcx], r9
        "75e3"  # jne probe
        "8b4108"  # mov eax, [rcx + 8]
        "8b490c"  # mov ecx, [rcx + 12]
        "4d8d5c0901"  # lea r11, [r9 + rcx + 1]
        "29ca"  # sub edx, ecx
        "7ca7"  # jl done
        "85d2"  # behind: test edx, edx
        "7e31"  # jle at_site
        "4d89d9"  # more: mov r9, r11
        "49c1e903"  # shr r9, 3
        "4f8b0c08"  # mov r9, [r8 + r9]
        "4489d9"  # mov ecx, r11d
        "83e107"  # and ecx, 7
        "49d3e9"  # shr r9, cl
        "b938000000"  # mov ecx, 56
        "39ca"  # cmp edx, ecx
        "0f42ca"  # cmovb ecx, edx
        "f7d9"  # neg ecx
        "49d3e1"  # shl r9, cl
        "4d85c9"  # test r9, r9
        "7519"  # jnz inside
        "4983c338"  # add r11, 56
        "83ea38"  # sub edx, 56
        "7fcf"  # jg more
        "4885c0"  # at_site: test rax, rax
        "780a"  # js nothing
        "490382b0000000"  # add rax, [r10 + 176]
        "48ff00"  # inc qword [rax]
        "c3"  # nothing: ret
        "4c89d1"  # inside: mov rcx, r10
        "4889b1b8000000"  # mov [rcx + 184], rsi
        "e9e3feffff"  # jmp stop
    ),
    "aarch64": _words(
        0xF9400065,  # ldr x5, [x3]
        0xB4000725,  # cbz x5, count
        0xF9403868,  # ldr x8, [x3, #112]
        0xA9070861,  # stp x1, x2, [x3, #112]
        0xA9409C66,  # ldp x6, x7, [x3, #8]
        0xCB060026,  # sub x6, x1, x6
        0xEB0700DF,  # cmp x6, x7
        0x540005A3,  # b.lo in_trampolines
        0xD360FCA6,  # lsr x6, x5, #32
        0xB4000226,  # cbz x6, stopping
        0xF9402C66,  # ldr x6, [x3, #88]
        0x92404C27,  # and x7, x1, #0xfffff
        0x386768C7,  # ldrb w7, [x6, x7]
        0x350000E7,  # cbnz w7, watched
        0x0B020027,  # add w7, w1, w2
        0x92404CE7,  # and x7, x7, #0xfffff
        0x386768C7,  # ldrb w7, [x6, x7]
        0x35000067,  # cbnz w7, watched
        0xF9403067,  # ldr x7, [x3, #96]
        0xB40000E7,  # cbz x7, stopping
        0xA9BE7BFD,  # watched: stp x29, x30, [sp, #-32]!
        0xA9010FE0,  # stp x0, x3, [sp, #16]
        0xF9403466,  # ldr x6, [x3, #104]
        0xD63F00C0,  # blr x6
        0xA9410FE0,  # ldp x0, x3, [sp, #16]
        0xA8C27BFD,  # ldp x29, x30, [sp], #32
        0xB9400065,  # stopping: ldr w5, [x3]
        0x340003C5,  # cbz w5, again
        0x710004BF,  # cmp w5, #1
        0x54000260,  # b.eq stop
        0xF9401465,  # ldr x5, [x3, #40]
        0xB4000065,  # cbz x5, look
        0xF900147F,  # str xzr, [x3, #40]
        0x14000018,  # b again
        0xA9BE7BFD,  # look: stp x29, x30, [sp, #-32]!
        0xA9010FE0,  # stp x0, x3, [sp, #16]
        0xB9403861,  # ldr w1, [x3, #56]
        0x91010062,  # add x2, x3, #64
        0xF9401865,  # ldr x5, [x3, #48]
        0xD63F00A0,  # blr x5
        0xA9410FE0,  # ldp x0, x3, [sp, #16]
        0xA8C27BFD,  # ldp x29, x30, [sp], #32
        0xF9402065,  # ldr x5, [x3, #64]
        0xF9402866,  # ldr x6, [x3, #80]
        0xCA0600A5,  # eor x5, x5, x6
        0xF9402466,  # ldr x6, [x3, #72]
        0xEA0600BF,  # tst x5, x6
        0x54000140,  # b.eq again
        0xD2800025,  # stop: mov x5, #1
        0xF9001065,  # str x5, [x3, #32]
        0xF9400C65,  # ldr x5, [x3, #24]
        0xD61F00A0,  # br x5
        0xEB01011F,  # in_trampolines: cmp x8, x1
        0x540002A1,  # b.ne done
        0x710004BF,  # cmp w5, #1
        0x54FFFF20,  # b.eq stop
        0xD65F03C0,  # ret
        0xA9470861,  # again: ldp x1, x2, [x3, #112]
        0xA9481464,  # count: ldp x4, x5, [x3, #128]
        0xB40001E4,  # cbz x4, done
        0xA9491C66,  # ldp x6, x7, [x3, #144]
        0xCB060026,  # sub x6, x1, x6
        0xEB0500DF,  # cmp x6, x5
        0x54000083,  # b.lo near_sites
        0xCB070026,  # sub x6, x1, x7
        0xEB0500DF,  # cmp x6, x5
        0x54000102,  # b.hs done
        0xD343FCC7,  # near_sites: lsr x7, x6, #3
        0xF8676888,  # ldr x8, [x4, x7]
        0x924008C7,  # and x7, x6, #7
        0x9AC72508,  # lsr x8, x8, x7
        0xB5000088,  # cbnz x8, closer
        0x7100E45F,  # cmp w2, #57
        0x54000048,  # b.hi closer
        0xD65F03C0,  # done: ret
        0xF9003C62,  # closer: str x2, [x3, #120]
        0x910004C9,  # add x9, x6, #1
        0x5100044A,  # sub w10, w2, #1
        0x9280000C,  # mov x12, #-1
        0x36000268,  # tbz w8, #0, behind
        0xD28F82A7,  # movz x7, #0x7c15
        0xF2AFE947,  # movk x7, #0x7f4a, lsl #16
        0xF2CF3727,  # movk x7, #0x79b9, lsl #32
        0xF2F3C6E7,  # movk x7, #0x9e37, lsl #48
        0x9B067CE7,  # mul x7, x7, x6
        0xD360FCE7,  # lsr x7, x7, #32
        0xA94A2468,  # ldp x8, x9, [x3, #160]
        0x8A0900E7,  # probe: and x7, x7, x9
        0x8B07110B,  # add x11, x8, x7, lsl #4
        0x910004E7,  # add x7, x7, #1
        0xF940016C,  # ldr x12, [x11]
        0xEB06019F,  # cmp x12, x6
        0x54FFFF61,  # b.ne probe
        0x29411D6C,  # ldp w12, w7, [x11, #8]
        0x8B0700C9,  # add x9, x6, x7
        0x91000529,  # add x9, x9, #1
        0x6B07014A,  # subs w10, w10, w7
        0x54FFFD2B,  # b.lt done
        0x5280070B,  # behind: mov w11, #56
        0x7100015F,  # cmp w10, #0
        0x540001AD,  # b.le at_site
        0xD343FD27,  # more: lsr x7, x9, #3
        0xF8676888,  # ldr x8, [x4, x7]
        0x92400927,  # and x7, x9, #7
        0x9AC72508,  # lsr x8, x8, x7
        0x6B0B015F,  # cmp w10, w11
        0x1A8B3147,  # csel w7, w10, w11, lo
        0x4B0703E7,  # neg w7, w7
        0x9AC72108,  # lsl x8, x8, x7
        0xB5000148,  # cbnz x8, inside
        0x9100E129,  # add x9, x9, #56
        0x7100E14A,  # subs w10, w10, #56
        0x54FFFEAC,  # b.gt more
        0xB7F800AC,  # at_site: tbnz x12, #63, nothing
        0xF940586B,  # ldr x11, [x3, #176]
        0xF86C696A,  # ldr x10, [x11, x12]
        0x9100054A,  # add x10, x10, #1
        0xF82C696A,  # str x10, [x11, x12]
        0xD65F03C0,  # nothing: ret
        0xF9005C61,  # inside: str x1, [x3, #184]
        0x17FFFFB8,  # b stop
    ),
}
