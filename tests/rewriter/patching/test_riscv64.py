"""Instructions of riscv64 beside what GNU as makes of them, and operands that do not fit."""

import pytest

from kinst.rewriter.disassemble import disassemble
from kinst.rewriter.patching.riscv64 import encode
from kinst.targets.arch.riscv64 import RISCV64
from kinst.targets.errors import UsageError

AT = 0x8000_0000
# As GNU as 2.40 (-march=rv64gc, norelax; norvc where there is no c.) and ld encode them at AT.
ENCODED = """
3385c500         add a0, a1, a2
b3027340         sub t0, t1, t2
3bd42441         sraw s0, s1, s2
3bf5c502         remuw a0, a1, a2
33a5c502         mulhsu a0, a1, a2
33b5c500         sltu a0, a1, a2
130101ff         addi sp, sp, -16
1b05f57f         addiw a0, a0, 2047
13350580         sltiu a0, a0, -2048
1375f500         andi a0, a0, 15
1315f503         slli a0, a0, 63
1355f543         srai a0, a0, 63
1b55f541         sraiw a0, a0, 31
1b553500         srliw a0, a0, 3
0305f1ff         lb a0, -1(sp)
83bdff7f         ld s11, 2047(t6)
03e50500         lwu a0, (a1)
23341100         sd ra, 8(sp)
2380a180         sb a0, -2048(gp)
2fb06200         amoadd.d zero, t1, (t0)
2f25b6e0         amomaxu.w a0, a1, (a2)
6300b510         beq a0, a1, 0x80000100
e35fa07e         blez a0, 0x80000ffe
e3e0a500         bgtu a0, a1, 0x80000800
e3000580         beqz a0, 0x7ffff800
6f00f07f         j 0x80000ffe
eff0ff7f         jal 0x800ffffe
ef020080         jal t0, 0x7ff00000
67800000         jr ra
e7000500         jalr a0
e7004500         jalr ra, 4(a0)
67800000         ret
13000000         nop
13850500         mv a0, a1
13c5f5ff         not a0, a1
3305b040         neg a0, a1
1b850500         sext.w a0, a1
13b51500         seqz a0, a1
3335b000         snez a0, a1
3325b000         sgtz a0, a1
13050000         li a0, 0
1305f0ff         li a0, -1
375534121b058567 li a0, 0x12345678
37050080         li a0, -2147483648
370500801b05f5ff li a0, 0x7fffffff
37150000         li a0, 0x1000
371500001b050580 li a0, 2048
37f5ffff         lui a0, 0xfffff
17150000         auipc a0, 1
97301200e780e045 call 0x8012345e
170300ff67000300 tail 0x7f000000
1725000013052580 la a0, 0x80001802
732540f1         csrr a0, mhartid
73105530         csrw mtvec, a0
73600110         csrsi sstatus, 2
7395057c         csrrw a0, 0x7c0, a1
73f54f30         csrrci a0, mie, 31
73000000         ecall
73005010         wfi
73002030         mret
0f00f00f         fence
0f100000         fence.i
73000012         sfence.vma
731000c0         unimp
0100             c.nop
0290             c.ebreak
0155             c.li a0, -32
2101             c.addi sp, 8
2e85             c.mv a0, a1
2e95             c.add a0, a1
8280             c.jr ra
8297             c.jalr a5
fdaf             c.j 0x800007fe
01b0             c.j 0x7ffff800
"""
ROWS = [tuple(line.split(None, 1)) for line in ENCODED.split("\n") if line]


@pytest.mark.parametrize(("code", "text"), ROWS, ids=[text for _, text in ROWS])
def test_instructions_are_encoded_as_by_gnu_as(code: str, text: str) -> None:
    assert encode(text, AT).hex() == code
    lines = disassemble(RISCV64, bytes.fromhex(code), AT)
    assert not any(line.text.startswith(".byte") for line in lines)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("addi a0, a0, 2048", "0x800 does not fit: -0x800 to 0x7ff"),
        ("addi a0, a0, -2049", "does not fit"),
        ("slliw a0, a0, 32", "0x20 does not fit"),
        ("ld a0, 2048(sp)", "does not fit"),
        ("ld a0, sp", "'sp' is not like 8(sp)"),
        ("amoadd.d a0, a1, 8(a2)", "8(a2) has an offset"),
        ("beq a0, a1, 0x80001000", "out of reach"),
        ("beqz a0, 0x80000001", "or odd"),
        ("j 0x80100000", "out of reach"),
        ("call 0x100000000", "out of reach"),
        ("call 0x7ffff800", None),
        ("call 0xfffff800", "out of reach"),
        ("li a0, 0x80000000", "more than two instructions"),
        ("lui a0, 0x100000", "does not fit"),
        ("csrrwi a0, mie, 32", "does not fit"),
        ("c.li a0, 32", "does not fit"),
        ("c.addi a0, 0", "is a hint"),
        ("c.mv a0, zero", "takes no zero"),
        ("c.jr zero", "takes no zero"),
        ("c.j 0x80000800", "out of reach"),
        ("add a0, a1", "takes 3 operands"),
        ("add a0, a1, a9", "'a9' is no register"),
        ("ret a0", "takes 0 operands"),
        ("j there", "'there' is no number"),
        ("frobnicate", "not among the riscv64 instructions known here: write its bytes, hex:..."),
        ("- a0", "not among the riscv64 instructions"),
    ],
)
def test_nothing_is_cut(text: str, why: str | None) -> None:
    if why is None:
        assert len(encode(text, AT)) == 8
        return
    with pytest.raises(UsageError) as error:
        encode(text, AT)
    assert why in str(error.value) and str(error.value).startswith(repr(text))
