"""arm64 vectors. `REGISTERS` holds what x0..x30 and sp held; vector n held (n mod 8) nibbles ``1`` repeated."""

from kinst.targets.arch.arm64 import Kind
from kinst.targets.instruction import Flow, Reason
from tests.vectors.rows import Group, copy, emulate, refuse

_MASK = (1 << 64) - 1
_SPECIAL = (
    {0: 0, 1: 1 << 32, 2: 1 << 63, 3: 5}  # what cbz and tbz look at
    | {9: 0x1F0000, 10: 0x2000, 16: 0x3FFFFC, 17: 0x110000, 30: 0x123450}  # addresses to go to
    | {29: 0x200040, 31: 0x200000}  # frame pointer and sp
)
REGISTERS = tuple(_SPECIAL.get(n, (n + 1) * 0x0123456789ABCDEF & _MASK) for n in range(32))

GROUPS: tuple[Group, ...] = (
    emulate(
        Kind.B,
        Flow.JUMP,
        """
        00000014 | b .          |    | pc=100000
        01000014 | b .+4        |    | pc=100004
        ffffff17 | b .-4        |    | pc=ffffc
        00040014 | b .+0x1000   |    | pc=101000
        00c0ff17 | b .-0x10000  |    | pc=f0000
        ffff0314 | b .+0xffffc  |    | pc=1ffffc
        0000fc17 | b .-0x100000 |    | pc=0
        00c00b14 | b .+0x2f0000 |    | pc=3f0000
        """,
    ),
    emulate(
        Kind.B_COND,
        Flow.BRANCH,
        """
        00020054 | b.eq .+0x40      |  4 | pc=100040
        00020054 | b.eq .+0x40      | 11 | pc=100004
        01feff54 | b.ne .-0x40      |  4 | pc=100004
        01feff54 | b.ne .-0x40      | 11 | pc=fffc0
        02020054 | b.cs .+0x40      |  2 | pc=100040
        02020054 | b.cs .+0x40      | 13 | pc=100004
        03020054 | b.cc .+0x40      |  2 | pc=100004
        03020054 | b.cc .+0x40      | 13 | pc=100040
        04feff54 | b.mi .-0x40      |  8 | pc=fffc0
        04feff54 | b.mi .-0x40      |  7 | pc=100004
        05020054 | b.pl .+0x40      |  8 | pc=100004
        05020054 | b.pl .+0x40      |  7 | pc=100040
        06020054 | b.vs .+0x40      |  1 | pc=100040
        06020054 | b.vs .+0x40      | 14 | pc=100004
        07020054 | b.vc .+0x40      |  1 | pc=100004
        07020054 | b.vc .+0x40      | 14 | pc=100040
        08020054 | b.hi .+0x40      |  2 | pc=100040
        08020054 | b.hi .+0x40      |  6 | pc=100004
        08020054 | b.hi .+0x40      |    | pc=100004
        09020054 | b.ls .+0x40      |  2 | pc=100004
        09020054 | b.ls .+0x40      |  6 | pc=100040
        09020054 | b.ls .+0x40      |    | pc=100040
        0a020054 | b.ge .+0x40      |  9 | pc=100040
        0a020054 | b.ge .+0x40      |  8 | pc=100004
        0a020054 | b.ge .+0x40      |  1 | pc=100004
        0a020054 | b.ge .+0x40      |    | pc=100040
        0b020054 | b.lt .+0x40      |  9 | pc=100004
        0b020054 | b.lt .+0x40      |  8 | pc=100040
        0b020054 | b.lt .+0x40      |  1 | pc=100040
        0b020054 | b.lt .+0x40      |    | pc=100004
        0c020054 | b.gt .+0x40      |  9 | pc=100040
        0c020054 | b.gt .+0x40      | 13 | pc=100004
        0c020054 | b.gt .+0x40      |    | pc=100040
        0c020054 | b.gt .+0x40      |  4 | pc=100004
        0c020054 | b.gt .+0x40      |  8 | pc=100004
        0d020054 | b.le .+0x40      |  9 | pc=100004
        0d020054 | b.le .+0x40      | 13 | pc=100040
        0d020054 | b.le .+0x40      |    | pc=100004
        0d020054 | b.le .+0x40      |  4 | pc=100040
        0d020054 | b.le .+0x40      |  8 | pc=100040
        0e020054 | b.al .+0x40      |    | pc=100040
        0e020054 | b.al .+0x40      | 15 | pc=100040
        0f020054 | b.nv .+0x40      |    | pc=100040
        0f020054 | b.nv .+0x40      | 15 | pc=100040
        10020054 | bc.eq .+0x40     |  4 | pc=100040
        11020054 | bc.ne .+0x40     |  4 | pc=100004
        e0ff7f54 | b.eq .+0xffffc   |  4 | pc=1ffffc
        00008054 | b.eq .-0x100000  |  4 | pc=0
        """,
    ),
    emulate(
        Kind.BL,
        Flow.CALL,
        """
        01000094 | bl .+4        |    | x30=100004 pc=100004
        ffffff97 | bl .-4        |    | x30=100004 pc=ffffc
        00000294 | bl .+0x80000  |    | x30=100004 pc=180000
        0000fc97 | bl .-0x100000 |    | x30=100004 pc=0
        ffff0b94 | bl .+0x2ffffc |    | x30=100004 pc=3ffffc
        """,
    ),
    emulate(
        Kind.BR,
        Flow.INDIRECT_JUMP,
        """
        00001fd6 | br x0  |    | pc=0
        20011fd6 | br x9  |    | pc=1f0000
        40011fd6 | br x10 |    | pc=2000
        00021fd6 | br x16 |    | pc=3ffffc
        20021fd6 | br x17 |    | pc=110000
        a0031fd6 | br x29 |    | pc=200040
        c0031fd6 | br x30 |    | pc=123450
        e0031fd6 | br xzr |    | pc=0
        """,
    ),
    emulate(
        Kind.BLR,
        Flow.INDIRECT_CALL,
        """
        00003fd6 | blr x0  |    | x30=100004 pc=0
        20013fd6 | blr x9  |    | x30=100004 pc=1f0000
        40013fd6 | blr x10 |    | x30=100004 pc=2000
        00023fd6 | blr x16 |    | x30=100004 pc=3ffffc
        20023fd6 | blr x17 |    | x30=100004 pc=110000
        a0033fd6 | blr x29 |    | x30=100004 pc=200040
        c0033fd6 | blr x30 |    | x30=100004 pc=123450
        e0033fd6 | blr xzr |    | x30=100004 pc=0
        """,
    ),
    emulate(
        Kind.RET,
        Flow.RETURN,
        """
        00005fd6 | ret x0  |    | pc=0
        20015fd6 | ret x9  |    | pc=1f0000
        40015fd6 | ret x10 |    | pc=2000
        00025fd6 | ret x16 |    | pc=3ffffc
        20025fd6 | ret x17 |    | pc=110000
        a0035fd6 | ret x29 |    | pc=200040
        c0035fd6 | ret x30 |    | pc=123450
        e0035fd6 | ret xzr |    | pc=0
        """,
    ),
    emulate(
        Kind.CBZ,
        Flow.BRANCH,
        """
        000800b4 | cbz x0, .+0x100    |    | pc=100100
        00080034 | cbz w0, .+0x100    |    | pc=100100
        010800b4 | cbz x1, .+0x100    |    | pc=100004
        01080034 | cbz w1, .+0x100    |    | pc=100100
        020800b4 | cbz x2, .+0x100    |    | pc=100004
        02080034 | cbz w2, .+0x100    |    | pc=100100
        030800b4 | cbz x3, .+0x100    |    | pc=100004
        03080034 | cbz w3, .+0x100    |    | pc=100004
        1e0800b4 | cbz x30, .+0x100   |    | pc=100004
        1e080034 | cbz w30, .+0x100   |    | pc=100004
        1f0800b4 | cbz xzr, .+0x100   |    | pc=100100
        1f080034 | cbz wzr, .+0x100   |    | pc=100100
        000080b4 | cbz x0, .-0x100000 |    | pc=0
        e3ff7fb4 | cbz x3, .+0xffffc  |    | pc=100004
        """,
    ),
    emulate(
        Kind.CBNZ,
        Flow.BRANCH,
        """
        000800b5 | cbnz x0, .+0x100    |    | pc=100004
        00080035 | cbnz w0, .+0x100    |    | pc=100004
        010800b5 | cbnz x1, .+0x100    |    | pc=100100
        01080035 | cbnz w1, .+0x100    |    | pc=100004
        020800b5 | cbnz x2, .+0x100    |    | pc=100100
        02080035 | cbnz w2, .+0x100    |    | pc=100004
        030800b5 | cbnz x3, .+0x100    |    | pc=100100
        03080035 | cbnz w3, .+0x100    |    | pc=100100
        1e0800b5 | cbnz x30, .+0x100   |    | pc=100100
        1e080035 | cbnz w30, .+0x100   |    | pc=100100
        1f0800b5 | cbnz xzr, .+0x100   |    | pc=100004
        1f080035 | cbnz wzr, .+0x100   |    | pc=100004
        000080b5 | cbnz x0, .-0x100000 |    | pc=100004
        e3ff7fb5 | cbnz x3, .+0xffffc  |    | pc=1ffffc
        """,
    ),
    emulate(
        Kind.TBZ,
        Flow.BRANCH,
        """
        010400b6 | tbz x1, #32, .+0x80   |    | pc=100004
        0104f836 | tbz x1, #31, .+0x80   |    | pc=100080
        010408b6 | tbz x1, #33, .+0x80   |    | pc=100080
        0204f8b6 | tbz x2, #63, .+0x80   |    | pc=100004
        0204f0b6 | tbz x2, #62, .+0x80   |    | pc=100080
        03040036 | tbz w3, #0, .+0x80    |    | pc=100004
        03040836 | tbz w3, #1, .+0x80    |    | pc=100080
        03041036 | tbz w3, #2, .+0x80    |    | pc=100004
        0304f836 | tbz w3, #31, .+0x80   |    | pc=100080
        0004f8b6 | tbz x0, #63, .+0x80   |    | pc=100080
        1f0440b6 | tbz xzr, #40, .+0x80  |    | pc=100080
        1f042836 | tbz wzr, #5, .+0x80   |    | pc=100080
        1e042036 | tbz x30, #4, .+0x80   |    | pc=100004
        1e042836 | tbz x30, #5, .+0x80   |    | pc=100080
        040478b6 | tbz x4, #47, .+0x80   |    | pc=100080
        0200fcb6 | tbz x2, #63, .-0x8000 |    | pc=100004
        e2fffbb6 | tbz x2, #63, .+0x7ffc |    | pc=100004
        """,
    ),
    emulate(
        Kind.TBNZ,
        Flow.BRANCH,
        """
        010400b7 | tbnz x1, #32, .+0x80   |    | pc=100080
        0104f837 | tbnz x1, #31, .+0x80   |    | pc=100004
        010408b7 | tbnz x1, #33, .+0x80   |    | pc=100004
        0204f8b7 | tbnz x2, #63, .+0x80   |    | pc=100080
        0204f0b7 | tbnz x2, #62, .+0x80   |    | pc=100004
        03040037 | tbnz w3, #0, .+0x80    |    | pc=100080
        03040837 | tbnz w3, #1, .+0x80    |    | pc=100004
        03041037 | tbnz w3, #2, .+0x80    |    | pc=100080
        0304f837 | tbnz w3, #31, .+0x80   |    | pc=100004
        0004f8b7 | tbnz x0, #63, .+0x80   |    | pc=100004
        1f0440b7 | tbnz xzr, #40, .+0x80  |    | pc=100004
        1f042837 | tbnz wzr, #5, .+0x80   |    | pc=100004
        1e042037 | tbnz x30, #4, .+0x80   |    | pc=100080
        1e042837 | tbnz x30, #5, .+0x80   |    | pc=100004
        040478b7 | tbnz x4, #47, .+0x80   |    | pc=100004
        0200fcb7 | tbnz x2, #63, .-0x8000 |    | pc=f8000
        e2fffbb7 | tbnz x2, #63, .+0x7ffc |    | pc=107ffc
        """,
    ),
    emulate(
        Kind.ADR,
        Flow.NEXT,
        """
        00000010 | adr x0, .          |    | x0=100000 pc=100004
        05000030 | adr x5, .+1        |    | x5=100001 pc=100004
        e6ffff70 | adr x6, .-1        |    | x6=fffff pc=100004
        e7ff7f70 | adr x7, .+0xfffff  |    | x7=1fffff pc=100004
        08008010 | adr x8, .-0x100000 |    | x8=0 pc=100004
        be910010 | adr x30, .+0x1234  |    | x30=101234 pc=100004
        5f000010 | adr xzr, .+8       |    | pc=100004
        """,
    ),
    emulate(
        Kind.ADRP,
        Flow.NEXT,
        """
        00000090 | adrp x0, .            |    | x0=100000 pc=100004
        010000b0 | adrp x1, .+0x1000     |    | x1=101000 pc=100004
        e2fffff0 | adrp x2, .-0x1000     |    | x2=ff000 pc=100004
        e3ff3ff0 | adrp x3, .+0x7ffff000 |    | x3=800ff000 pc=100004
        1e020090 | adrp x30, .+0x40000   |    | x30=140000 pc=100004
        1f0000b0 | adrp xzr, .+0x1000    |    | pc=100004
        e4fffff0 | .inst 0xf0ffffe4      |    | x4=ff000 pc=100004
        05008090 | .inst 0x90800005      |    | x5=ffffffff00100000 pc=100004
        """,
    ),
    emulate(
        Kind.LDR_LITERAL_W,
        Flow.NEXT,
        """
        41000018 | ldr w1, .+8        |    | x1=9c77522d pc=100004
        c2ffff18 | ldr w2, .-8        |    | x2=411cf7d2 pc=100004
        feff7f18 | ldr w30, .+0xffffc |    | x30=d5b08b66 pc=100004
        1f080018 | ldr wzr, .+0x100   |    | pc=100004
        03008018 | ldr w3, .-0x100000 |    | x3=744f2a05 pc=100004
        """,
    ),
    emulate(
        Kind.LDR_LITERAL_X,
        Flow.NEXT,
        """
        41000058 | ldr x1, .+8        |    | x1=300be6c19c77522d pc=100004
        c2ffff58 | ldr x2, .-8        |    | x2=d5b08b66411cf7d2 pc=100004
        deff7f58 | ldr x30, .+0xffff8 |    | x30=d5b08b66411cf7d2 pc=100004
        1f080058 | ldr xzr, .+0x100   |    | pc=100004
        03008058 | ldr x3, .-0x100000 |    | x3=8e3be99744f2a05 pc=100004
        64000058 | ldr x4, .+12       |    | x4=c49f7a55300be6c1 pc=100004
        """,
    ),
    emulate(
        Kind.LDRSW_LITERAL,
        Flow.NEXT,
        """
        41000098 | ldrsw x1, .+8       |    | x1=ffffffff9c77522d pc=100004
        e2010098 | ldrsw x2, .+0x3c    |    | x2=20fbd6b1 pc=100004
        1e80ff98 | ldrsw x30, .-0x1000 |    | x30=ffffffffc49f7a55 pc=100004
        3f000098 | ldrsw xzr, .+4      |    | pc=100004
        e5030098 | ldrsw x5, .+0x7c    |    | x5=603b16f1 pc=100004
        """,
    ),
    emulate(
        Kind.LDR_LITERAL_S,
        Flow.NEXT,
        """
        4000001c | ldr s0, .+8      |    | v0=9c77522d pc=100004
        c7ffff1c | ldr s7, .-8      |    | v7=411cf7d2 pc=100004
        1f20001c | ldr s31, .+0x400 |    | v31=a07b5631 pc=100004
        """,
    ),
    emulate(
        Kind.LDR_LITERAL_D,
        Flow.NEXT,
        """
        4000005c | ldr d0, .+8       |    | v0=300be6c19c77522d pc=100004
        0f80ff5c | ldr d15, .-0x1000 |    | v15=58330ee9c49f7a55 pc=100004
        3f20005c | ldr d31, .+0x404  |    | v31=c8a37e59340feac5 pc=100004
        """,
    ),
    emulate(
        Kind.LDR_LITERAL_Q,
        Flow.NEXT,
        """
        8000009c | ldr q0, .+16       |    | v0=805b3611ecc7a27d58330ee9c49f7a55 pc=100004
        1000ff9c | ldr q16, .-0x2000  |    | v16=d0ab86613c17f2cda8835e3914efcaa5 pc=100004
        9fff7f9c | ldr q31, .+0xffff0 |    | v31=d5b08b66411cf7d2ad88633e19f4cfaa pc=100004
        """,
    ),
    emulate(
        Kind.PRFM_LITERAL,
        Flow.NEXT,
        """
        400000d8 | prfm pldl1keep, .+8        |    | pc=100004
        110080d8 | prfm pstl1strm, .-0x100000 |    | pc=100004
        """,
    ),
    emulate(
        Kind.NOP,
        Flow.NEXT,
        """
        1f2003d5 | nop |    | pc=100004
        """,
    ),
    emulate(
        Kind.MOV_REGISTER,
        Flow.NEXT,
        """
        e00304aa | mov x0, x4  |    | x0=5b05b05b05b05ab pc=100004
        e003042a | mov w0, w4  |    | x0=b05b05ab pc=100004
        fe0305aa | mov x30, x5 |    | x30=6d3a06d3a06d39a pc=100004
        e5031eaa | mov x5, x30 |    | x5=123450 pc=100004
        e6031faa | mov x6, xzr |    | x6=0 pc=100004
        e6031f2a | mov w6, wzr |    | x6=0 pc=100004
        ff0306aa | mov xzr, x6 |    | pc=100004
        e703022a | mov w7, w2  |    | x7=0 pc=100004
        fd0301aa | mov x29, x1 |    | x29=100000000 pc=100004
        """,
    ),
    emulate(
        Kind.MOVZ,
        Flow.NEXT,
        """
        200080d2 | mov x0, #1                |    | x0=1 pc=100004
        e1ffbfd2 | movz x1, #0xffff, lsl #16 |    | x1=ffff0000 pc=100004
        0200f0d2 | movz x2, #0x8000, lsl #48 |    | pc=100004
        8346c2d2 | movz x3, #0x1234, lsl #32 |    | x3=123400000000 pc=100004
        e4ff9f52 | movz w4, #0xffff          |    | x4=ffff pc=100004
        a579b552 | movz w5, #0xabcd, lsl #16 |    | x5=abcd0000 pc=100004
        ff0080d2 | movz xzr, #7              |    | pc=100004
        1e0080d2 | movz x30, #0              |    | x30=0 pc=100004
        """,
    ),
    emulate(
        Kind.MOVN,
        Flow.NEXT,
        """
        00008092 | movn x0, #0               |    | x0=ffffffffffffffff pc=100004
        e1ffbf92 | movn x1, #0xffff, lsl #16 |    | x1=ffffffff0000ffff pc=100004
        e2ffef92 | movn x2, #0x7fff, lsl #48 |    | x2=8000ffffffffffff pc=100004
        03008012 | movn w3, #0               |    | x3=ffffffff pc=100004
        8446a212 | movn w4, #0x1234, lsl #16 |    | x4=edcbffff pc=100004
        3e02c092 | movn x30, #0x11, lsl #32  |    | x30=ffffffeeffffffff pc=100004
        3f008092 | movn xzr, #1              |    | pc=100004
        """,
    ),
    emulate(
        Kind.ADD_IMMEDIATE,
        Flow.NEXT,
        """
        20040091 | add x0, x1, #1              |    | x0=100000001 pc=100004
        00fc3f91 | add x0, x0, #0xfff          |    | x0=fff pc=100004
        42fc7f91 | add x2, x2, #0xfff, lsl #12 |    | x2=8000000000fff000 pc=100004
        83400011 | add w3, w4, #0x10           |    | x3=b05b05bb pc=100004
        45000011 | add w5, w2, #0              |    | x5=0 pc=100004
        fd030091 | mov x29, sp                 |    | x29=200000 pc=100004
        fd430091 | add x29, sp, #0x10          |    | x29=200010 pc=100004
        ff830091 | add sp, sp, #0x20           |    | sp=200020 pc=100004
        ff074091 | add sp, sp, #1, lsl #12     |    | sp=201000 pc=100004
        bf030091 | mov sp, x29                 |    | sp=200040 pc=100004
        de130091 | add x30, x30, #4            |    | x30=123454 pc=100004
        bf030011 | add wsp, w29, #0            |    | sp=200040 pc=100004
        e6230011 | add w6, wsp, #8             |    | x6=200008 pc=100004
        """,
    ),
    emulate(
        Kind.SUB_IMMEDIATE,
        Flow.NEXT,
        """
        000400d1 | sub x0, x0, #1              |    | x0=ffffffffffffffff pc=100004
        81fc3fd1 | sub x1, x4, #0xfff          |    | x1=5b05b05b05af5ac pc=100004
        42fc7fd1 | sub x2, x2, #0xfff, lsl #12 |    | x2=7fffffffff001000 pc=100004
        63180051 | sub w3, w3, #6              |    | x3=ffffffff pc=100004
        00040051 | sub w0, w0, #1              |    | x0=ffffffff pc=100004
        ff0301d1 | sub sp, sp, #0x40           |    | sp=1fffc0 pc=100004
        ff4340d1 | sub sp, sp, #0x10, lsl #12  |    | sp=1f0000 pc=100004
        fd2300d1 | sub x29, sp, #8             |    | x29=1ffff8 pc=100004
        bfc300d1 | sub sp, x29, #0x30          |    | sp=200010 pc=100004
        de1300d1 | sub x30, x30, #4            |    | x30=12344c pc=100004
        ff430051 | sub wsp, wsp, #16           |    | sp=1ffff0 pc=100004
        """,
    ),
    emulate(
        Kind.STP_PRE_SP,
        Flow.NEXT,
        """
        fd7bbfa9 | stp x29, x30, [sp, #-16]!  |    | sp=1ffff0 pc=100004 [1ffff0]=200040 [1ffff8]=123450
        fd7ba0a9 | stp x29, x30, [sp, #-512]! |    | sp=1ffe00 pc=100004 [1ffe00]=200040 [1ffe08]=123450
        fdfb9fa9 | stp x29, x30, [sp, #504]!  |    | sp=2001f8 pc=100004 [2001f8]=200040 [200200]=123450
        f353bea9 | stp x19, x20, [sp, #-32]! | | sp=1fffe0 pc=100004 [1fffe0]=16c16c16c16c16ac [1fffe8]=17e4b17e4b17e49b
        ff7bbfa9 | stp xzr, x30, [sp, #-16]!  |    | sp=1ffff0 pc=100004 [1ffff0]=0 [1ffff8]=123450
        e07fbda9 | stp x0, xzr, [sp, #-48]!   |    | sp=1fffd0 pc=100004 [1fffd0]=0 [1fffd8]=0
        e10780a9 | stp x1, x1, [sp, #0]!      |    | pc=100004 [200000]=100000000 [200008]=100000000
        """,
    ),
    emulate(
        Kind.LDP_POST_SP,
        Flow.NEXT,
        """
        fd7bc1a8 | ldp x29, x30, [sp], #16   |    | x29=8e3be99744f2a05 x30=300be6c19c77522d sp=200010 pc=100004
        fdfbdfa8 | ldp x29, x30, [sp], #504  |    | x29=8e3be99744f2a05 x30=300be6c19c77522d sp=2001f8 pc=100004
        fd7be0a8 | ldp x29, x30, [sp], #-512 |    | x29=8e3be99744f2a05 x30=300be6c19c77522d sp=1ffe00 pc=100004
        f353c2a8 | ldp x19, x20, [sp], #32   |    | x19=8e3be99744f2a05 x20=300be6c19c77522d sp=200020 pc=100004
        ff7bc1a8 | ldp xzr, x30, [sp], #16   |    | x30=300be6c19c77522d sp=200010 pc=100004
        e07fc3a8 | ldp x0, xzr, [sp], #48    |    | x0=8e3be99744f2a05 sp=200030 pc=100004
        e313c0a8 | ldp x3, x4, [sp], #0      |    | x3=8e3be99744f2a05 x4=300be6c19c77522d pc=100004
        """,
    ),
    copy(
        Kind.WAIT,
        """
        7f2003d5 | wfi              |    |
        5f2003d5 | wfe              |    |
        051003d5 | .inst 0xd5031005 |    |
        201003d5 | .inst 0xd5031020 |    |
        """,
    ),
    copy(
        Kind.PACIXSP,
        """
        3f2303d5 | paciasp |    |
        7f2303d5 | pacibsp |    |
        """,
    ),
    copy(
        Kind.CLREX,
        """
        5f3f03d5 | clrex    |    |
        5f3303d5 | clrex #3 |    |
        """,
    ),
    copy(
        Kind.OTHER,
        """
        bf2303d5 | autiasp                          |    |
        ff2303d5 | autibsp                          |    |
        1f2103d5 | pacia1716                        |    |
        9f2103d5 | autia1716                        |    |
        ff2003d5 | xpaclri                          |    |
        e343c1da | xpaci x3                         |    |
        4100c1da | pacia x1, x2                     |    |
        8318c1da | autda x3, x4                     |    |
        e923c1da | paciza x9                        |    |
        3f2003d5 | yield                            |    |
        9f2003d5 | sev                              |    |
        bf2003d5 | sevl                             |    |
        1f2203d5 | esb                              |    |
        3f2203d5 | psb csync                        |    |
        9f2203d5 | csdb                             |    |
        df2203d5 | .inst 0xd50322df                 |    |
        9f3f03d5 | dsb sy                           |    |
        9f3a03d5 | dsb ishst                        |    |
        bf3b03d5 | dmb ish                          |    |
        df3f03d5 | isb                              |    |
        ff3003d5 | sb                               |    |
        3f3203d5 | .inst 0xd503323f                 |    |
        9f3003d5 | ssbb                             |    |
        bf4100d5 | msr spsel, #1                    |    |
        9f4100d5 | msr pan, #1                      |    |
        7f4000d5 | msr uao, #0                      |    |
        5f4103d5 | msr dit, #1                      |    |
        9f4103d5 | msr tco, #1                      |    |
        1f4000d5 | cfinv                            |    |
        5f4000d5 | axflag                           |    |
        404238d5 | mrs x0, currentel                |    |
        01423bd5 | mrs x1, nzcv                     |    |
        02421bd5 | msr nzcv, x2                     |    |
        031038d5 | mrs x3, sctlr_el1                |    |
        042038d5 | mrs x4, ttbr0_el1                |    |
        05c038d5 | mrs x5, vbar_el1                 |    |
        264018d5 | msr elr_el1, x6                  |    |
        274038d5 | mrs x7, elr_el1                  |    |
        084018d5 | msr spsr_el1, x8                 |    |
        095238d5 | mrs x9, esr_el1                  |    |
        8ad018d5 | msr tpidr_el1, x10               |    |
        0b4138d5 | mrs x11, sp_el0                  |    |
        2cd018d5 | msr contextidr_el1, x12          |    |
        0da218d5 | msr mair_el1, x13                |    |
        4e1018d5 | msr cpacr_el1, x14               |    |
        2f1018d5 | msr actlr_el1, x15               |    |
        50e03bd5 | mrs x16, cntvct_el0              |    |
        51e31bd5 | msr cntv_cval_el0, x17           |    |
        120038d5 | mrs x18, midr_el1                |    |
        532038d5 | mrs x19, tcr_el1                 |    |
        1f8708d5 | tlbi vmalle1                     |    |
        208308d5 | tlbi vae1is, x0                  |    |
        217e0bd5 | dc civac, x1                     |    |
        22740bd5 | dc zva, x2                       |    |
        23750bd5 | ic ivau, x3                      |    |
        1f7508d5 | ic iallu                         |    |
        047808d5 | at s1e1r, x4                     |    |
        25740bd5 | sys #3, c7, c4, #1, x5           |    |
        067128d5 | sysl x6, #0, c7, c1, #0          |    |
        200080f2 | movk x0, #1                      |    |
        e1ffbf72 | movk w1, #0xffff, lsl #16        |    |
        200400b1 | adds x0, x1, #1                  |    |
        5f0c00f1 | cmp x2, #3                       |    |
        e34300f1 | subs x3, sp, #16                 |    |
        9f040031 | cmn w4, #1                       |    |
        c51c4092 | and x5, x6, #0xff                |    |
        ff000072 | tst w7, #1                       |    |
        e80340b2 | orr x8, xzr, #1                  |    |
        490d7cd2 | eor x9, x10, #0xf0               |    |
        8b1943d3 | ubfx x11, x12, #3, #4            |    |
        cd111e13 | sbfiz w13, w14, #2, #5           |    |
        0f067fb3 | bfi x15, x16, #1, #2             |    |
        511ed393 | extr x17, x18, x19, #7           |    |
        b40e9513 | ror w20, w21, #3                 |    |
        20088191 | addg x0, x1, #16, #2             |    |
        620482d1 | subg x2, x3, #32, #1             |    |
        2000028b | add x0, x1, x2                   |    |
        e363248b | add x3, sp, x4, uxtx             |    |
        c50c074b | sub w5, w6, w7, lsl #3           |    |
        28d12aab | adds x8, x9, w10, sxtw #4        |    |
        eb030ccb | neg x11, x12                     |    |
        cd010faa | orr x13, x14, x15                |    |
        f00711aa | orr x16, xzr, x17, lsl #1        |    |
        f20333aa | mvn x18, x19                     |    |
        b40216ea | ands x20, x21, x22               |    |
        1703390a | bic w23, w24, w25                |    |
        2000029a | adc x0, x1, x2                   |    |
        8300057a | sbcs w3, w4, w5                  |    |
        e600889a | csel x6, x7, x8, eq              |    |
        e9079f1a | cset w9, ne                      |    |
        44b14bfa | ccmp x10, x11, #4, lt            |    |
        80a9433a | ccmn w12, #3, #0, ge             |    |
        cd7d0f9b | mul x13, x14, x15                |    |
        304e121b | madd w16, w17, w18, w19          |    |
        b47e569b | smulh x20, x21, x22              |    |
        170bd99a | udiv x23, x24, x25               |    |
        7a23dc9a | lslv x26, x27, x28               |    |
        200cc0da | rev x0, x1                       |    |
        6210c05a | clz w2, w3                       |    |
        a400c0da | rbit x4, x5                      |    |
        e648c81a | crc32w w6, w7, w8                |    |
        2010df9a | irg x0, x1                       |    |
        200040f9 | ldr x0, [x1]                     |    |
        e20740f9 | ldr x2, [sp, #8]                 |    |
        835865b8 | ldr w3, [x4, w5, uxtw #2]        |    |
        e61c4038 | ldrb w6, [x7, #1]!               |    |
        28258078 | ldrsh x8, [x9], #2               |    |
        6a792cf8 | str x10, [x11, x12, lsl #3]      |    |
        bf010039 | strb wzr, [x13]                  |    |
        0e3e40a9 | ldp x14, x15, [x16]              |    |
        714abfa9 | stp x17, x18, [x19, #-16]!       |    |
        f457be29 | stp w20, w21, [sp, #-16]!        |    |
        f65fc128 | ldp w22, w23, [sp], #8           |    |
        fd7b01a9 | stp x29, x30, [sp, #16]          |    |
        fd7b41a9 | ldp x29, x30, [sp, #16]          |    |
        e827bf6d | stp d8, d9, [sp, #-16]!          |    |
        400440a8 | ldnp x0, x1, [x2]                |    |
        a3104069 | ldpsw x3, x4, [x5]               |    |
        c00080f9 | prfm pldl1keep, [x6]             |    |
        07f15ff8 | ldur x7, [x8, #-1]               |    |
        490900f8 | sttr x9, [x10]                   |    |
        8b0940b8 | ldtr w11, [x12]                  |    |
        cdfddfc8 | ldar x13, [x14]                  |    |
        0ffe9f88 | stlr w15, [x16]                  |    |
        51c2bff8 | ldapr x17, [x18]                 |    |
        937edf88 | ldlar w19, [x20]                 |    |
        d57e9fc8 | stllr x21, [x22]                 |    |
        17c3bf38 | ldaprb w23, [x24]                |    |
        594340d9 | ldapur x25, [x26, #4]            |    |
        417ca0c8 | cas x0, x1, [x2]                 |    |
        a4fce388 | casal w3, w4, [x5]               |    |
        487d2648 | casp x6, x7, x8, x9, [x10]       |    |
        ccfd6a08 | caspal w10, w11, w12, w13, [x14] |    |
        30022ff8 | ldadd x15, x16, [x17]            |    |
        9302f2b8 | ldaddal w18, w19, [x20]          |    |
        f68235f8 | swp x21, x22, [x23]              |    |
        593338f8 | ldset x24, x25, [x26]            |    |
        9f033bb8 | stadd w27, [x28]                 |    |
        414020f8 | ldsmax x0, x1, [x2]              |    |
        20d03ff8 | .inst 0xf83fd020                 |    |
        620820d9 | stg x2, [x3]                     |    |
        a40060d9 | ldg x4, [x5]                     |    |
        2028621e | fadd d0, d1, d2                  |    |
        2000669e | fmov x0, d1                      |    |
        4020231e | fcmp s2, s3                      |    |
        a400c03d | ldr q4, [x5]                     |    |
        e60700fd | str d6, [sp, #8]                 |    |
        0771404c | ld1 {v7.16b}, [x8]               |    |
        a909004c | st4 {v9.4s-v12.4s}, [x13]        |    |
        ee85b04e | add v14.4s, v15.4s, v16.4s       |    |
        5102789e | fcvtzs x17, d18                  |    |
        934a284e | aese v19.16b, v20.16b            |    |
        d542175e | sha256h q21, q22, v23.4s         |    |
        380f024e | dup v24.8h, w25                  |    |
        1ae4006f | movi v26.2d, #0                  |    |
        9b7b5d1f | fmadd d27, d28, d29, d30         |    |
        2000e204 | add z0.d, z1.d, z2.d             |    |
        e0e31825 | ptrue p0.b                       |    |
        83a0e0a5 | ld1d {z3.d}, p0/z, [x4]          |    |
        2550bf04 | rdvl x5, #1                      |    |
        7f4703d5 | smstart                          |    |
        """,
    ),
    refuse(
        Kind.BRK,
        Flow.NEXT,
        Reason.BREAKPOINT,
        """
        000020d4 | brk #0      |    |
        a08120d4 | brk #0x40d  |    |
        000021d4 | brk #0x800  |    |
        e0ff3fd4 | brk #0xffff |    |
        """,
    ),
    refuse(
        Kind.HLT,
        Flow.NEXT,
        Reason.BREAKPOINT,
        """
        000040d4 | hlt #0      |    |
        00005ed4 | hlt #0xf000 |    |
        """,
    ),
    refuse(
        Kind.SYSTEM_CALL,
        Flow.NEXT,
        Reason.SYSTEM_CALL,
        """
        010000d4 | svc #0      |    |
        e1ff1fd4 | svc #0xffff |    |
        020000d4 | hvc #0      |    |
        22d401d4 | hvc #0xea1  |    |
        030000d4 | smc #0      |    |
        230000d4 | smc #1      |    |
        """,
    ),
    refuse(
        Kind.EXCEPTION_RETURN,
        Flow.STOP,
        Reason.PRIVILEGED_FLOW,
        """
        e0039fd6 | eret   |    |
        e003bfd6 | drps   |    |
        ff0b9fd6 | eretaa |    |
        ff0f9fd6 | eretab |    |
        """,
    ),
    refuse(
        Kind.DEBUG_STATE,
        Flow.NEXT,
        Reason.PRIVILEGED_FLOW,
        """
        0100a0d4 | dcps1 |    |
        0200a0d4 | dcps2 |    |
        0300a0d4 | dcps3 |    |
        """,
    ),
    refuse(
        Kind.BTI,
        Flow.NEXT,
        Reason.LANDING_PAD,
        """
        1f2403d5 | bti    |    |
        5f2403d5 | bti c  |    |
        9f2403d5 | bti j  |    |
        df2403d5 | bti jc |    |
        """,
    ),
    refuse(
        Kind.INTERRUPT_MASK,
        Flow.NEXT,
        Reason.INTERRUPT_FLAG,
        """
        df4203d5 | msr daifset, #2  |    |
        df4f03d5 | msr daifset, #15 |    |
        ff4203d5 | msr daifclr, #2  |    |
        ff4f03d5 | msr daifclr, #15 |    |
        20421bd5 | msr daif, x0     |    |
        21423bd5 | mrs x1, daif     |    |
        3f423bd5 | mrs xzr, daif    |    |
        1f4001d5 | .inst 0xd501401f |    |
        1f4101d5 | .inst 0xd501411f |    |
        004318d5 | .inst 0xd5184300 |    |
        014338d5 | .inst 0xd5384301 |    |
        """,
    ),
    refuse(
        Kind.TRANSLATION_CONTROL,
        Flow.NEXT,
        Reason.TRANSLATION,
        """
        001018d5 | msr sctlr_el1, x0  |    |
        01101cd5 | msr sctlr_el2, x1  |    |
        02101ed5 | msr sctlr_el3, x2  |    |
        03101dd5 | msr sctlr_el12, x3 |    |
        042018d5 | msr ttbr0_el1, x4  |    |
        252018d5 | msr ttbr1_el1, x5  |    |
        462018d5 | msr tcr_el1, x6    |    |
        07201cd5 | msr ttbr0_el2, x7  |    |
        48201cd5 | msr tcr_el2, x8    |    |
        09201ed5 | msr ttbr0_el3, x9  |    |
        4a201ed5 | msr tcr_el3, x10   |    |
        0b211cd5 | msr vttbr_el2, x11 |    |
        4c211cd5 | msr vtcr_el2, x12  |    |
        0d111cd5 | msr hcr_el2, x13   |    |
        601018d5 | .inst 0xd5181060   |    |
        002058d5 | .inst 0xd5582000   |    |
        """,
    ),
    refuse(
        Kind.VECTOR_BASE,
        Flow.NEXT,
        Reason.TRAP_PATH,
        """
        00c018d5 | msr vbar_el1, x0  |    |
        01c01cd5 | msr vbar_el2, x1  |    |
        02c01ed5 | msr vbar_el3, x2  |    |
        03c01dd5 | msr vbar_el12, x3 |    |
        """,
    ),
    refuse(
        Kind.BR_AUTHENTICATED,
        Flow.INDIRECT_JUMP,
        Reason.AUTHENTICATED,
        """
        01081fd7 | braa x0, x1 |    |
        430c1fd7 | brab x2, x3 |    |
        9f081fd6 | braaz x4    |    |
        bf0c1fd6 | brabz x5    |    |
        """,
    ),
    refuse(
        Kind.BLR_AUTHENTICATED,
        Flow.INDIRECT_CALL,
        Reason.AUTHENTICATED,
        """
        1f083fd7 | blraa x0, sp |    |
        430c3fd7 | blrab x2, x3 |    |
        9f083fd6 | blraaz x4    |    |
        df0f3fd6 | blrabz x30   |    |
        """,
    ),
    refuse(
        Kind.RET_AUTHENTICATED,
        Flow.RETURN,
        Reason.AUTHENTICATED,
        """
        ff0b5fd6 | retaa            |    |
        ff0f5fd6 | retab            |    |
        1f000055 | .inst 0x5500001f |    |
        ff0f2055 | .inst 0x55200fff |    |
        e30b5fd6 | .inst 0xd65f0be3 |    |
        e40f5fd6 | .inst 0xd65f0fe4 |    |
        """,
    ),
    refuse(
        Kind.OTHER,
        Flow.NEXT,
        Reason.AUTHENTICATED,
        """
        1f0080f3 | .inst 0xf380001f |    |
        ffffa0f3 | .inst 0xf3a0ffff |    |
        fea3c1da | .inst 0xdac1a3fe |    |
        fea7c1da | .inst 0xdac1a7fe |    |
        fe83c1da | .inst 0xdac183fe |    |
        fe87c1da | .inst 0xdac187fe |    |
        """,
    ),
    refuse(
        Kind.TRANSACTION,
        Flow.NEXT,
        Reason.UNSUPPORTED,
        """
        603023d5 | tstart x0  |    |
        613123d5 | ttest x1   |    |
        7f3003d5 | tcommit    |    |
        200060d4 | tcancel #1 |    |
        """,
    ),
    refuse(
        Kind.OTHER,
        Flow.BRANCH,
        Reason.UNSUPPORTED,
        """
        00000074 | .inst 0x74000000 |    |
        414020f5 | .inst 0xf5204041 |    |
        0380c074 | .inst 0x74c08003 |    |
        """,
    ),
    refuse(
        Kind.LOAD_EXCLUSIVE,
        Flow.NEXT,
        Reason.EXCLUSIVE,
        """
        207c5fc8 | ldxr x0, [x1]         |    |
        e27f5f88 | ldxr w2, [sp]         |    |
        83fc5fc8 | ldaxr x3, [x4]        |    |
        c57c5f08 | ldxrb w5, [x6]        |    |
        07fd5f48 | ldaxrh w7, [x8]       |    |
        69297fc8 | ldxp x9, x10, [x11]   |    |
        ccb57f88 | ldaxp w12, w13, [x14] |    |
        207c5f89 | .inst 0x895f7c20      |    |
        """,
    ),
    refuse(
        Kind.STORE_EXCLUSIVE,
        Flow.NEXT,
        Reason.EXCLUSIVE,
        """
        417c00c8 | stxr w0, x1, [x2]          |    |
        a4fc0388 | stlxr w3, w4, [x5]         |    |
        077d0608 | stxrb w6, w7, [x8]         |    |
        6afd0948 | stlxrh w9, w10, [x11]      |    |
        ed392cc8 | stxp w12, x13, x14, [x15]  |    |
        71ca3088 | stlxp w16, w17, w18, [x19] |    |
        207c0389 | .inst 0x89037c20           |    |
        """,
    ),
    refuse(
        Kind.OTHER,
        Flow.NEXT,
        Reason.SEQUENCE,
        """
        40040119 | cpyfp [x0]!, [x1]!, x2! |    |
        40044119 | cpyfm [x0]!, [x1]!, x2! |    |
        4004811d | cpye [x0]!, [x1]!, x2!  |    |
        4004c119 | setp [x0]!, x2!, x1     |    |
        4044c11d | setgm [x0]!, x2!, x1    |    |
        """,
    ),
    refuse(
        Kind.UNALLOCATED,
        Flow.STOP,
        Reason.UNDECODABLE,
        """
        00000000 | udf #0           |    |
        adde0000 | udf #0xdead      |    |
        00000100 | .inst 0x00010000 |    |
        00000002 | .inst 0x02000000 |    |
        01000060 | .inst 0x60000001 |    |
        00000026 | .inst 0x26000000 |    |
        ffffffe7 | .inst 0xe7ffffff |    |
        00004012 | .inst 0x12400000 |    |
        0000c032 | .inst 0x32c00000 |    |
        0000c052 | .inst 0x52c00000 |    |
        00000093 | .inst 0x93000000 |    |
        0080000a | .inst 0x0a008000 |    |
        0000c08b | .inst 0x8bc00000 |    |
        0018208b | .inst 0x8b201800 |    |
        000000dc | .inst 0xdc000000 |    |
        00000056 | .inst 0x56000000 |    |
        000000d6 | .inst 0xd6000000 |    |
        00041fd6 | .inst 0xd61f0400 |    |
        000000d4 | .inst 0xd4000000 |    |
        010020d4 | .inst 0xd4200001 |    |
        000000d5 | .inst 0xd5000000 |    |
        1f0000d5 | .inst 0xd500001f |    |
        000000d7 | .inst 0xd7000000 |    |
        0008801a | .inst 0x1a800800 |    |
        """,
    ),
)
