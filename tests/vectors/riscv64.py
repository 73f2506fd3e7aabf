"""riscv64 vectors. `REGISTERS` holds what x0..x31 held."""

from kinst.targets.arch.riscv64 import Kind
from kinst.targets.instruction import Flow, Reason
from tests.vectors.rows import Group, copy, emulate, refuse

_MASK = (1 << 64) - 1
_SPECIAL = (
    {0: 0, 6: 1 << 63 | 5, 7: 5, 8: 0, 9: _MASK, 12: _MASK, 13: 1, 14: 1 << 31, 15: 1 << 63}  # what branches compare
    | {1: 0x123456, 3: 0x3FF001, 5: 0x1F0003, 10: 0x110000, 11: 0x110000, 28: 0x80000}  # addresses to go to
    | {2: 0x200000}  # sp
)
REGISTERS = tuple(_SPECIAL.get(n, (n + 1) * 0x0123456789ABCDEF & _MASK) for n in range(32))

GROUPS: tuple[Group, ...] = (
    emulate(
        Kind.JAL,
        Flow.JUMP,
        """
        6f000000 | jal x0, .          |    | pc=100000
        6f004000 | jal x0, .+4        |    | pc=100004
        6ff0dfff | jal x0, .-4        |    | pc=ffffc
        6ff0ff7f | jal x0, .+0xffffe  |    | pc=1ffffe
        6f000080 | jal x0, .-0x100000 |    | pc=0
        6f003001 | jal x0, .+0x812    |    | pc=100812
        """,
    ),
    emulate(
        Kind.JAL,
        Flow.CALL,
        """
        ef008000 | jal ra, .+8        |    | ra=100004 pc=100008
        eff09fff | jal ra, .-8        |    | ra=100004 pc=ffff8
        eff0ff7f | jal ra, .+0xffffe  |    | ra=100004 pc=1ffffe
        ef000080 | jal ra, .-0x100000 |    | ra=100004 pc=0
        ef020010 | jal t0, .+0x100    |    | t0=100004 pc=100100
        6f050400 | jal a0, .+0x40000  |    | a0=100004 pc=140000
        """,
    ),
    emulate(
        Kind.JALR,
        Flow.RETURN,
        """
        67800000 | jalr x0, 0(ra) |    | pc=123456
        """,
    ),
    emulate(
        Kind.JALR,
        Flow.INDIRECT_JUMP,
        """
        67804000 | jalr x0, 4(ra)      |    | pc=12345a
        67800200 | jalr x0, 0(t0)      |    | pc=1f0002
        67000500 | jalr x0, 0(a0)      |    | pc=110000
        6700f57f | jalr x0, 0x7ff(a0)  |    | pc=1107fe
        67000580 | jalr x0, -0x800(a0) |    | pc=10f800
        67008000 | jalr x0, 8(x0)      |    | pc=8
        67800100 | jalr x0, 0(gp)      |    | pc=3ff000
        67000e00 | jalr x0, 0(t3)      |    | pc=80000
        """,
    ),
    emulate(
        Kind.JALR,
        Flow.INDIRECT_CALL,
        """
        e7800000 | jalr ra, 0(ra)     |    | ra=100004 pc=123456
        e7000500 | jalr ra, 0(a0)     |    | ra=100004 pc=110000
        e700e5ff | jalr ra, -2(a0)    |    | ra=100004 pc=10fffe
        e7820200 | jalr t0, 0(t0)     |    | t0=100004 pc=1f0002
        e7821200 | jalr t0, 1(t0)     |    | t0=100004 pc=1f0004
        e7803112 | jalr ra, 0x123(gp) |    | ra=100004 pc=3ff124
        67050500 | jalr a0, 0(a0)     |    | a0=100004 pc=110000
        e7000001 | jalr ra, 16(x0)    |    | ra=100004 pc=10
        67032e00 | jalr t1, 2(t3)     |    | t1=100004 pc=80002
        """,
    ),
    emulate(
        Kind.BEQ,
        Flow.BRANCH,
        """
        6300b504 | beq a0, a1, .+0x40     |    | pc=100040
        63007504 | beq a0, t2, .+0x40     |    | pc=100004
        63806304 | beq t2, t1, .+0x40     |    | pc=100004
        63007304 | beq t1, t2, .+0x40     |    | pc=100004
        6380d404 | beq s1, a3, .+0x40     |    | pc=100004
        63809604 | beq a3, s1, .+0x40     |    | pc=100004
        6300a004 | beq zero, a0, .+0x40   |    | pc=100004
        63000504 | beq a0, zero, .+0x40   |    | pc=100004
        63000004 | beq zero, zero, .+0x40 |    | pc=100040
        63800404 | beq s1, zero, .+0x40   |    | pc=100004
        63009004 | beq zero, s1, .+0x40   |    | pc=100004
        6300f704 | beq a4, a5, .+0x40     |    | pc=100004
        6380e704 | beq a5, a4, .+0x40     |    | pc=100004
        6380c404 | beq s1, a2, .+0x40     |    | pc=100040
        6300b580 | beq a0, a1, .-0x1000   |    | pc=ff000
        e30f657e | beq a0, t1, .+0xffe    |    | pc=100004
        """,
    ),
    emulate(
        Kind.BNE,
        Flow.BRANCH,
        """
        6310b504 | bne a0, a1, .+0x40     |    | pc=100004
        63107504 | bne a0, t2, .+0x40     |    | pc=100040
        63906304 | bne t2, t1, .+0x40     |    | pc=100040
        63107304 | bne t1, t2, .+0x40     |    | pc=100040
        6390d404 | bne s1, a3, .+0x40     |    | pc=100040
        63909604 | bne a3, s1, .+0x40     |    | pc=100040
        6310a004 | bne zero, a0, .+0x40   |    | pc=100040
        63100504 | bne a0, zero, .+0x40   |    | pc=100040
        63100004 | bne zero, zero, .+0x40 |    | pc=100004
        63900404 | bne s1, zero, .+0x40   |    | pc=100040
        63109004 | bne zero, s1, .+0x40   |    | pc=100040
        6310f704 | bne a4, a5, .+0x40     |    | pc=100040
        6390e704 | bne a5, a4, .+0x40     |    | pc=100040
        6390c404 | bne s1, a2, .+0x40     |    | pc=100004
        6310b580 | bne a0, a1, .-0x1000   |    | pc=100004
        e31f657e | bne a0, t1, .+0xffe    |    | pc=100ffe
        """,
    ),
    emulate(
        Kind.BLT,
        Flow.BRANCH,
        """
        6340b504 | blt a0, a1, .+0x40     |    | pc=100004
        63407504 | blt a0, t2, .+0x40     |    | pc=100004
        63c06304 | blt t2, t1, .+0x40     |    | pc=100004
        63407304 | blt t1, t2, .+0x40     |    | pc=100040
        63c0d404 | blt s1, a3, .+0x40     |    | pc=100040
        63c09604 | blt a3, s1, .+0x40     |    | pc=100004
        6340a004 | blt zero, a0, .+0x40   |    | pc=100040
        63400504 | blt a0, zero, .+0x40   |    | pc=100004
        63400004 | blt zero, zero, .+0x40 |    | pc=100004
        63c00404 | blt s1, zero, .+0x40   |    | pc=100040
        63409004 | blt zero, s1, .+0x40   |    | pc=100004
        6340f704 | blt a4, a5, .+0x40     |    | pc=100004
        63c0e704 | blt a5, a4, .+0x40     |    | pc=100040
        63c0c404 | blt s1, a2, .+0x40     |    | pc=100004
        6340b580 | blt a0, a1, .-0x1000   |    | pc=100004
        e34f657e | blt a0, t1, .+0xffe    |    | pc=100004
        """,
    ),
    emulate(
        Kind.BGE,
        Flow.BRANCH,
        """
        6350b504 | bge a0, a1, .+0x40     |    | pc=100040
        63507504 | bge a0, t2, .+0x40     |    | pc=100040
        63d06304 | bge t2, t1, .+0x40     |    | pc=100040
        63507304 | bge t1, t2, .+0x40     |    | pc=100004
        63d0d404 | bge s1, a3, .+0x40     |    | pc=100004
        63d09604 | bge a3, s1, .+0x40     |    | pc=100040
        6350a004 | bge zero, a0, .+0x40   |    | pc=100004
        63500504 | bge a0, zero, .+0x40   |    | pc=100040
        63500004 | bge zero, zero, .+0x40 |    | pc=100040
        63d00404 | bge s1, zero, .+0x40   |    | pc=100004
        63509004 | bge zero, s1, .+0x40   |    | pc=100040
        6350f704 | bge a4, a5, .+0x40     |    | pc=100040
        63d0e704 | bge a5, a4, .+0x40     |    | pc=100004
        63d0c404 | bge s1, a2, .+0x40     |    | pc=100040
        6350b580 | bge a0, a1, .-0x1000   |    | pc=ff000
        e35f657e | bge a0, t1, .+0xffe    |    | pc=100ffe
        """,
    ),
    emulate(
        Kind.BLTU,
        Flow.BRANCH,
        """
        6360b504 | bltu a0, a1, .+0x40     |    | pc=100004
        63607504 | bltu a0, t2, .+0x40     |    | pc=100004
        63e06304 | bltu t2, t1, .+0x40     |    | pc=100040
        63607304 | bltu t1, t2, .+0x40     |    | pc=100004
        63e0d404 | bltu s1, a3, .+0x40     |    | pc=100004
        63e09604 | bltu a3, s1, .+0x40     |    | pc=100040
        6360a004 | bltu zero, a0, .+0x40   |    | pc=100040
        63600504 | bltu a0, zero, .+0x40   |    | pc=100004
        63600004 | bltu zero, zero, .+0x40 |    | pc=100004
        63e00404 | bltu s1, zero, .+0x40   |    | pc=100004
        63609004 | bltu zero, s1, .+0x40   |    | pc=100040
        6360f704 | bltu a4, a5, .+0x40     |    | pc=100040
        63e0e704 | bltu a5, a4, .+0x40     |    | pc=100004
        63e0c404 | bltu s1, a2, .+0x40     |    | pc=100004
        6360b580 | bltu a0, a1, .-0x1000   |    | pc=100004
        e36f657e | bltu a0, t1, .+0xffe    |    | pc=100ffe
        """,
    ),
    emulate(
        Kind.BGEU,
        Flow.BRANCH,
        """
        6370b504 | bgeu a0, a1, .+0x40     |    | pc=100040
        63707504 | bgeu a0, t2, .+0x40     |    | pc=100040
        63f06304 | bgeu t2, t1, .+0x40     |    | pc=100004
        63707304 | bgeu t1, t2, .+0x40     |    | pc=100040
        63f0d404 | bgeu s1, a3, .+0x40     |    | pc=100040
        63f09604 | bgeu a3, s1, .+0x40     |    | pc=100004
        6370a004 | bgeu zero, a0, .+0x40   |    | pc=100004
        63700504 | bgeu a0, zero, .+0x40   |    | pc=100040
        63700004 | bgeu zero, zero, .+0x40 |    | pc=100040
        63f00404 | bgeu s1, zero, .+0x40   |    | pc=100040
        63709004 | bgeu zero, s1, .+0x40   |    | pc=100004
        6370f704 | bgeu a4, a5, .+0x40     |    | pc=100004
        63f0e704 | bgeu a5, a4, .+0x40     |    | pc=100040
        63f0c404 | bgeu s1, a2, .+0x40     |    | pc=100040
        6370b580 | bgeu a0, a1, .-0x1000   |    | pc=ff000
        e37f657e | bgeu a0, t1, .+0xffe    |    | pc=100004
        """,
    ),
    emulate(
        Kind.AUIPC,
        Flow.NEXT,
        """
        17050000 | auipc a0, 0       |    | a0=100000 pc=100004
        97150000 | auipc a1, 1       |    | a1=101000 pc=100004
        97f0ffff | auipc ra, 0xfffff |    | ra=ff000 pc=100004
        97020080 | auipc t0, 0x80000 |    | t0=ffffffff80100000 pc=100004
        17f4ff7f | auipc s0, 0x7ffff |    | s0=800ff000 pc=100004
        17513412 | auipc sp, 0x12345 |    | sp=12445000 pc=100004
        """,
    ),
    emulate(
        Kind.ADDI,
        Flow.NEXT,
        """
        13000000 | addi x0, x0, 0     |    | pc=100004
        13051000 | addi a0, x0, 1     |    | a0=1 pc=100004
        1305f0ff | addi a0, x0, -1    |    | a0=ffffffffffffffff pc=100004
        93050500 | addi a1, a0, 0     |    | pc=100004
        130101fe | addi sp, sp, -32   |    | sp=1fffe0 pc=100004
        1301017f | addi sp, sp, 2032  |    | sp=2007f0 pc=100004
        13040104 | addi s0, sp, 64    |    | s0=200040 pc=100004
        13061600 | addi a2, a2, 1     |    | a2=0 pc=100004
        13030380 | addi t1, t1, -2048 |    | t1=7ffffffffffff805 pc=100004
        13005500 | addi x0, a0, 5     |    | pc=100004
        93802000 | addi ra, ra, 2     |    | ra=123458 pc=100004
        """,
    ),
    emulate(
        Kind.LUI,
        Flow.NEXT,
        """
        37150000 | lui a0, 1       |    | a0=1000 pc=100004
        b7f5ffff | lui a1, 0xfffff |    | a1=fffffffffffff000 pc=100004
        b7000080 | lui ra, 0x80000 |    | ra=ffffffff80000000 pc=100004
        37500000 | lui x0, 5       |    | pc=100004
        b7ffff7f | lui t6, 0x7ffff |    | t6=7ffff000 pc=100004
        """,
    ),
    emulate(
        Kind.SD_SP,
        Flow.NEXT,
        """
        23341100 | sd ra, 8(sp)     |    | pc=100004 [200008]=123456
        233c11fe | sd ra, -8(sp)    |    | pc=100004 [1ffff8]=123456
        233c817e | sd s0, 2040(sp)  |    | pc=100004 [2007f8]=0
        23300100 | sd x0, 0(sp)     |    | pc=100004 [200000]=0
        23382100 | sd sp, 16(sp)    |    | pc=100004 [200010]=200000
        2330a180 | sd a0, -2048(sp) |    | pc=100004 [1ff800]=110000
        """,
    ),
    emulate(
        Kind.C_NOP,
        Flow.NEXT,
        """
        0100 | c.nop        |    | pc=100002
        0500 | .insn 0x0005 |    | pc=100002
        7d10 | .insn 0x107d |    | pc=100002
        """,
    ),
    emulate(
        Kind.C_ADDI,
        Flow.NEXT,
        """
        0505 | c.addi a0, 1   |    | a0=110001 pc=100002
        0111 | c.addi sp, -32 |    | sp=1fffe0 pc=100002
        fd0f | c.addi t6, 31  |    | t6=2468acf13579bdff pc=100002
        8504 | c.addi s1, 1   |    | s1=0 pc=100002
        fd14 | c.addi s1, -1  |    | s1=fffffffffffffffe pc=100002
        0105 | .insn 0x0501   |    | pc=100002
        8110 | c.addi ra, -32 |    | ra=123436 pc=100002
        """,
    ),
    emulate(
        Kind.C_LI,
        Flow.NEXT,
        """
        0145 | c.li a0, 0   |    | a0=0 pc=100002
        fd55 | c.li a1, -1  |    | a1=ffffffffffffffff pc=100002
        fd4f | c.li t6, 31  |    | t6=1f pc=100002
        0154 | c.li s0, -32 |    | s0=ffffffffffffffe0 pc=100002
        0540 | .insn 0x4005 |    | pc=100002
        8540 | c.li ra, 1   |    | ra=1 pc=100002
        """,
    ),
    emulate(
        Kind.C_LUI,
        Flow.NEXT,
        """
        0565 | c.lui a0, 1       |    | a0=1000 pc=100002
        8575 | c.lui a1, 0xfffe1 |    | a1=fffffffffffe1000 pc=100002
        fd6f | c.lui t6, 31      |    | t6=1f000 pc=100002
        fd70 | c.lui ra, 0xfffff |    | ra=fffffffffffff000 pc=100002
        0560 | .insn 0x6005      |    | pc=100002
        """,
    ),
    emulate(
        Kind.C_ADDI16SP,
        Flow.NEXT,
        """
        7d71 | c.addi16sp sp, -16  |    | sp=1ffff0 pc=100002
        0171 | c.addi16sp sp, -512 |    | sp=1ffe00 pc=100002
        7d61 | c.addi16sp sp, 496  |    | sp=2001f0 pc=100002
        0561 | c.addi16sp sp, 32   |    | sp=200020 pc=100002
        2161 | c.addi16sp sp, 64   |    | sp=200040 pc=100002
        0961 | c.addi16sp sp, 128  |    | sp=200080 pc=100002
        1161 | c.addi16sp sp, 256  |    | sp=200100 pc=100002
        """,
    ),
    emulate(
        Kind.C_ADDI4SPN,
        Flow.NEXT,
        """
        4000 | c.addi4spn s0, sp, 4    |    | s0=200004 pc=100002
        e01f | c.addi4spn s0, sp, 1020 |    | s0=2003fc pc=100002
        3c00 | c.addi4spn a5, sp, 8    |    | a5=200008 pc=100002
        0808 | c.addi4spn a0, sp, 16   |    | a0=200010 pc=100002
        0c10 | c.addi4spn a1, sp, 32   |    | a1=200020 pc=100002
        9000 | c.addi4spn a2, sp, 64   |    | a2=200040 pc=100002
        1401 | c.addi4spn a3, sp, 128  |    | a3=200080 pc=100002
        1804 | c.addi4spn a4, sp, 512  |    | a4=200200 pc=100002
        """,
    ),
    emulate(
        Kind.C_J,
        Flow.JUMP,
        """
        01a0 | c.j .       |    | pc=100000
        09a0 | c.j .+2     |    | pc=100002
        fdbf | c.j .-2     |    | pc=ffffe
        fdaf | c.j .+0x7fe |    | pc=1007fe
        01b0 | c.j .-0x800 |    | pc=ff800
        01a8 | c.j .+0x10  |    | pc=100010
        05a0 | c.j .+0x20  |    | pc=100020
        81a0 | c.j .+0x40  |    | pc=100040
        41a0 | c.j .+0x80  |    | pc=100080
        01a2 | c.j .+0x100 |    | pc=100100
        01a4 | c.j .+0x200 |    | pc=100200
        01a1 | c.j .+0x400 |    | pc=100400
        21a0 | c.j .+8     |    | pc=100008
        11a0 | c.j .+4     |    | pc=100004
        """,
    ),
    emulate(
        Kind.C_BEQZ,
        Flow.BRANCH,
        """
        01c8 | c.beqz s0, .+16  |    | pc=100010
        01d0 | c.beqz s0, .-256 |    | pc=fff00
        7dcc | c.beqz s0, .+254 |    | pc=1000fe
        85c0 | c.beqz s1, .+32  |    | pc=100002
        21c1 | c.beqz a0, .+64  |    | pc=100002
        81c7 | c.beqz a5, .+8   |    | pc=100002
        91c2 | c.beqz a3, .+4   |    | pc=100002
        09c0 | c.beqz s0, .+2   |    | pc=100002
        41c0 | c.beqz s0, .+128 |    | pc=100080
        """,
    ),
    emulate(
        Kind.C_BNEZ,
        Flow.BRANCH,
        """
        01e8 | c.bnez s0, .+16  |    | pc=100002
        01f0 | c.bnez s0, .-256 |    | pc=100002
        7dec | c.bnez s0, .+254 |    | pc=100002
        85e0 | c.bnez s1, .+32  |    | pc=100020
        21e1 | c.bnez a0, .+64  |    | pc=100040
        81e7 | c.bnez a5, .+8   |    | pc=100008
        91e2 | c.bnez a3, .+4   |    | pc=100004
        09e0 | c.bnez s0, .+2   |    | pc=100002
        41e0 | c.bnez s0, .+128 |    | pc=100002
        """,
    ),
    emulate(
        Kind.C_JR,
        Flow.RETURN,
        """
        8280 | c.jr ra |    | pc=123456
        """,
    ),
    emulate(
        Kind.C_JR,
        Flow.INDIRECT_JUMP,
        """
        8282 | c.jr t0 |    | pc=1f0002
        0285 | c.jr a0 |    | pc=110000
        8281 | c.jr gp |    | pc=3ff000
        028e | c.jr t3 |    | pc=80000
        """,
    ),
    emulate(
        Kind.C_JALR,
        Flow.INDIRECT_CALL,
        """
        8290 | c.jalr ra |    | ra=100002 pc=123456
        8292 | c.jalr t0 |    | ra=100002 pc=1f0002
        0295 | c.jalr a0 |    | ra=100002 pc=110000
        8291 | c.jalr gp |    | ra=100002 pc=3ff000
        """,
    ),
    emulate(
        Kind.C_MV,
        Flow.NEXT,
        """
        2e85 | c.mv a0, a1  |    | pc=100002
        8a80 | c.mv ra, sp  |    | ra=200000 pc=100002
        2281 | c.mv sp, s0  |    | sp=0 pc=100002
        fa8f | c.mv t6, t5  |    | t6=23456789abcdeff1 pc=100002
        2e80 | .insn 0x802e |    | pc=100002
        """,
    ),
    emulate(
        Kind.C_SDSP,
        Flow.NEXT,
        """
        06e4 | c.sdsp ra, 8(sp)     |    | pc=100002 [200008]=123456
        22e0 | c.sdsp s0, 0(sp)     |    | pc=100002 [200000]=0
        82ff | c.sdsp zero, 504(sp) |    | pc=100002 [2001f8]=0
        8ae0 | c.sdsp sp, 64(sp)    |    | pc=100002 [200040]=200000
        7ee2 | c.sdsp t6, 256(sp)   |    | pc=100002 [200100]=2468acf13579bde0
        06e1 | c.sdsp ra, 128(sp)   |    | pc=100002 [200080]=123456
        """,
    ),
    copy(
        Kind.WAIT,
        """
        73005010 | wfi |    |
        """,
    ),
    copy(
        Kind.ATOMIC,
        """
        2f25b600 | amoadd.w a0, a1, (a2)       |    |
        2f35b60e | amoswap.d.aqrl a0, a1, (a2) |    |
        2f30b640 | amoor.d x0, a1, (a2)        |    |
        2f25b6e0 | amomaxu.w a0, a1, (a2)      |    |
        """,
    ),
    copy(
        Kind.OTHER,
        """
        3385c500 | add a0, a1, a2             |    |
        3385c540 | sub a0, a1, a2             |    |
        1395f503 | slli a0, a1, 63            |    |
        1bd53540 | sraiw a0, a1, 3            |    |
        13f5f5ff | andi a0, a1, -1            |    |
        1345f5ff | xori a0, a0, -1            |    |
        13a54500 | slti a0, a1, 4             |    |
        1b851500 | addiw a0, a1, 1            |    |
        3385c502 | mul a0, a1, a2             |    |
        33d5c502 | divu a0, a1, a2            |    |
        3be5c502 | remw a0, a1, a2            |    |
        33c5c520 | sh2add a0, a1, a2          |    |
        13d5856b | rev8 a0, a1                |    |
        03b50500 | ld a0, 0(a1)               |    |
        03a5c5ff | lw a0, -4(a1)              |    |
        03451100 | lbu a0, 1(sp)              |    |
        83308100 | ld ra, 8(sp)               |    |
        23b0a500 | sd a0, 0(a1)               |    |
        2322a100 | sw a0, 4(sp)               |    |
        23000500 | sb zero, 0(a0)             |    |
        23341400 | sd ra, 8(s0)               |    |
        07350500 | fld fa0, 0(a0)             |    |
        2734a100 | fsd fa0, 8(sp)             |    |
        87a50500 | flw fa1, 0(a1)             |    |
        53f5c502 | fadd.d fa0, fa1, fa2       |    |
        537525c2 | fcvt.l.d a0, fa0           |    |
        43f5c568 | fmadd.s fa0, fa1, fa2, fa3 |    |
        0f00f00f | fence                      |    |
        0f100000 | fence.i                    |    |
        0f003083 | fence.tso                  |    |
        0f000001 | pause                      |    |
        73000012 | sfence.vma                 |    |
        7300b512 | sfence.vma a0, a1          |    |
        73000022 | hfence.vvma                |    |
        7300b516 | sinval.vma a0, a1          |    |
        73c50568 | hlv.w a0, (a1)             |    |
        7300d000 | .insn 0x00d00073           |    |
        7300d001 | .insn 0x01d00073           |    |
        73250018 | csrr a0, satp              |    |
        73255010 | csrr a0, stvec             |    |
        73255030 | csrr a0, mtvec             |    |
        732540f1 | csrr a0, mhartid           |    |
        73251034 | csrr a0, mepc              |    |
        73101534 | csrw mepc, a0              |    |
        73252014 | csrr a0, scause            |    |
        73101514 | csrw sepc, a0              |    |
        73110134 | csrrw sp, mscratch, sp     |    |
        73120214 | csrrw tp, sscratch, tp     |    |
        73204530 | csrs mie, a0               |    |
        73304510 | csrc sie, a0               |    |
        73254034 | csrr a0, mip               |    |
        73103530 | csrw mideleg, a0           |    |
        7310053a | csrw pmpcfg0, a0           |    |
        7310053b | csrw pmpaddr0, a0          |    |
        732510c0 | rdtime a0                  |    |
        f32500c0 | rdcycle a1                 |    |
        73251030 | csrr a0, misa              |    |
        73503000 | csrrwi x0, fcsr, 0         |    |
        73e51000 | csrrsi a0, fflags, 1       |    |
        73750018 | csrrci a0, satp, 0         |    |
        73102030 | csrw medeleg, zero         |    |
        8841     | c.lw a0, 0(a1)             |    |
        8865     | c.ld a0, 8(a1)             |    |
        c8c1     | c.sw a0, 4(a1)             |    |
        88e9     | c.sd a0, 16(a1)            |    |
        0821     | c.fld fa0, 0(a0)           |    |
        08a1     | c.fsd fa0, 0(a0)           |    |
        0525     | c.addiw a0, 1              |    |
        0125     | .insn 0x2501               |    |
        0581     | c.srli a0, 1               |    |
        7d95     | c.srai a0, 63              |    |
        7d99     | c.andi a0, -1              |    |
        0d8d     | c.sub a0, a1               |    |
        2d8d     | c.xor a0, a1               |    |
        4d8d     | c.or a0, a1                |    |
        6d8d     | c.and a0, a1               |    |
        0d9d     | c.subw a0, a1              |    |
        2d9d     | c.addw a0, a1              |    |
        619d     | .insn 0x9d61               |    |
        0080     | .insn 0x8000               |    |
        8160     | .insn 0x6081               |    |
        0605     | c.slli a0, 1               |    |
        0225     | c.fldsp fa0, 0(sp)         |    |
        0245     | c.lwsp a0, 0(sp)           |    |
        a260     | c.ldsp ra, 8(sp)           |    |
        2e95     | c.add a0, a1               |    |
        2e90     | .insn 0x902e               |    |
        2aa0     | c.fsdsp fa0, 0(sp)         |    |
        2ac0     | c.swsp a0, 0(sp)           |    |
        """,
    ),
    refuse(
        Kind.BREAKPOINT,
        Flow.NEXT,
        Reason.BREAKPOINT,
        """
        73001000 | ebreak   |    |
        0290     | c.ebreak |    |
        """,
    ),
    refuse(
        Kind.SYSTEM_CALL,
        Flow.NEXT,
        Reason.SYSTEM_CALL,
        """
        73000000 | ecall |    |
        """,
    ),
    refuse(
        Kind.EXCEPTION_RETURN,
        Flow.STOP,
        Reason.PRIVILEGED_FLOW,
        """
        73002030 | mret             |    |
        73002010 | sret             |    |
        73002000 | .insn 0x00200073 |    |
        7300207b | .insn 0x7b200073 |    |
        73002070 | .insn 0x70200073 |    |
        """,
    ),
    refuse(
        Kind.LOAD_RESERVED,
        Flow.NEXT,
        Reason.EXCLUSIVE,
        """
        2fa50510 | lr.w a0, (a1)      |    |
        2fb50510 | lr.d a0, (a1)      |    |
        2fa50514 | lr.w.aq a0, (a1)   |    |
        2fb50516 | lr.d.aqrl a0, (a1) |    |
        """,
    ),
    refuse(
        Kind.STORE_CONDITIONAL,
        Flow.NEXT,
        Reason.EXCLUSIVE,
        """
        2f25b618 | sc.w a0, a1, (a2)      |    |
        2f35b618 | sc.d a0, a1, (a2)      |    |
        2f25b61a | sc.w.rl a0, a1, (a2)   |    |
        2f30b61e | sc.d.aqrl x0, a1, (a2) |    |
        """,
    ),
    refuse(
        Kind.STATUS_CSR,
        Flow.NEXT,
        Reason.INTERRUPT_FLAG,
        """
        73250030 | csrr a0, mstatus      |    |
        73100530 | csrw mstatus, a0      |    |
        73200530 | csrs mstatus, a0      |    |
        73300530 | csrc mstatus, a0      |    |
        73600430 | csrsi mstatus, 8      |    |
        73700430 | csrci mstatus, 8      |    |
        73250010 | csrr a0, sstatus      |    |
        73100510 | csrw sstatus, a0      |    |
        73600110 | csrsi sstatus, 2      |    |
        73700110 | csrci sstatus, 2      |    |
        73750110 | csrrci a0, sstatus, 2 |    |
        73950510 | csrrw a0, sstatus, a1 |    |
        73250020 | csrr a0, vsstatus     |    |
        73254074 | .insn 0x74402573      |    |
        73600000 | .insn 0x00006073      |    |
        """,
    ),
    refuse(
        Kind.TRANSLATION_CSR,
        Flow.NEXT,
        Reason.TRANSLATION,
        """
        73100518 | csrw satp, a0      |    |
        73100018 | csrw satp, x0      |    |
        73950518 | csrrw a0, satp, a1 |    |
        73500018 | csrwi satp, 0      |    |
        73200518 | csrs satp, a0      |    |
        73b00518 | csrc satp, a1      |    |
        73100528 | csrw vsatp, a0     |    |
        73100568 | csrw hgatp, a0     |    |
        """,
    ),
    refuse(
        Kind.VECTOR_CSR,
        Flow.NEXT,
        Reason.TRAP_PATH,
        """
        73105530 | csrw mtvec, a0      |    |
        73105510 | csrw stvec, a0      |    |
        73955530 | csrrw a0, mtvec, a1 |    |
        73505010 | csrwi stvec, 0      |    |
        73205530 | csrs mtvec, a0      |    |
        73105520 | csrw vstvec, a0     |    |
        """,
    ),
    refuse(
        Kind.LANDING_PAD,
        Flow.NEXT,
        Reason.LANDING_PAD,
        """
        17000000 | .insn 0x00000017 |    |
        17503412 | .insn 0x12345017 |    |
        """,
    ),
    refuse(
        Kind.OTHER,
        Flow.NEXT,
        Reason.UNSUPPORTED,
        """
        0b009001 | .insn 0x0190000b |    |
        2b000000 | .insn 0x0000002b |    |
        5b000000 | .insn 0x0000005b |    |
        7b000000 | .insn 0x0000007b |    |
        """,
    ),
    refuse(
        Kind.UNDECODABLE,
        Flow.STOP,
        Reason.UNDECODABLE,
        """
        63200000 | .insn 0x00002063 |    |
        63300000 | .insn 0x00003063 |    |
        67100000 | .insn 0x00001067 |    |
        6b000000 | .insn 0x0000006b |    |
        731000c0 | .insn 0xc0001073 |    |
        0000     | .insn 0x0000     |    |
        0400     | .insn 0x0004     |    |
        1c00     | .insn 0x001c     |    |
        0120     | .insn 0x2001     |    |
        0240     | .insn 0x4002     |    |
        0260     | .insn 0x6002     |    |
        0280     | .insn 0x8002     |    |
        0161     | .insn 0x6101     |    |
        0160     | .insn 0x6001     |    |
        0165     | .insn 0x6501     |    |
        ffff     | .insn 0xffff     |    |
        1f00     | .insn 0x001f     |    |
        3f00     | .insn 0x003f     |    |
        7f00     | .insn 0x007f     |    |
        0300     | .insn 0x0003     |    |
        1300     | .insn 0x0013     |    |
        """,
    ),
)
