"""Operands of static probes: every form of the three machines, any size and sign."""

from collections.abc import Mapping

import pytest

from kinst.runtime.paging.walker import Access, PageFault
from kinst.runtime.providers.operands import Operands
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.runtime.trap.trap_frame import TrapFrame
from kinst.targets.arch.registry import arch_by_name

SYMBOLS = {"counter": 0x5000, "a.b$1": 0x6000, "_high": 0xFFFF_FFFF_8000_0FFC}
MEMORY = {
    0x0FF0: 0x1122_3344_5566_7788, 0x1000: 0xFFFF_FFFF_FFFF_FF80, 0x1008: 0x77, 0x1010: 0x1234, 0x1018: 0x99,
    0x1040: 0xABCD, 0x5000: 0x42, 0x5008: 0x43, 0x6000: 0x44, 0x9000: 0x55, 0x1018 - 24 - 24: 0x66,
}  # fmt: skip


def firing_with(arch: str, registers: Mapping[str, int]) -> Firing:
    facts = arch_by_name(arch)
    regs = [0] * len(facts.registers)
    for name, value in registers.items():
        index = facts.operand_registers[name] if name in facts.operand_registers else facts.registers.index(name)
        regs[index] = value

    def load(address: int, size: int) -> int:
        if address & ~7 not in MEMORY:
            raise PageFault(address, Access.READ, 0)
        return MEMORY[address & ~7] >> 8 * (address & 7) & (1 << 8 * size) - 1

    frame = TrapFrame(regs, load, lambda _a, _s, _v: None, lambda _n, _v: None)
    return Firing(frame, Enabling(0, lambda _firing: None, lambda _firing, _index: 0, 0))


def value(arch: str, text: str, **registers: int) -> int:
    return Operands(arch_by_name(arch), SYMBOLS.get).value(text)(firing_with(arch, registers))


AMD64 = [
    ("-4@%edi", 0xFFFF_FFFE, 0xFFFF_FFFF_FFFF_FFFE),
    ("4@%edi", 0x1_FFFF_FFFE, 0xFFFF_FFFE),
    ("8@%rdi", 0xFFFF_FFFF_0000_0001, 0xFFFF_FFFF_0000_0001),
    ("-8@%rdi", (1 << 64) - 5, (1 << 64) - 5),
    ("1@%dil", 0x1FF, 0xFF),
    ("-1@%dil", 0x1FF, (1 << 64) - 1),
    ("-2@%di", 0x8000, 0xFFFF_FFFF_FFFF_8000),
    ("%rdi", 7, 7),
    ("4@$5", 0, 5),
    ("-4@$-5", 0, (1 << 64) - 5),
    ("4@$-5", 0, 0xFFFF_FFFB),
    ("8@$0x10", 0, 16),
    ("8@$010", 0, 8),
    ("-8@$-00010", 0, (1 << 64) - 8),
    ("8@$0", 0, 0),
    ("8@-020(%rdi)", 0x1000, 0x1122_3344_5566_7788),
    ("8@counter+010(%rip)", 0, 0x43),
    ("8@$counter", 0, 0x5000),
    ("8@$counter+8", 0, 0x5008),
    ("8@-16(%rdi)", 0x1000, 0x1122_3344_5566_7788),
    ("-1@(%rdi)", 0x1000, 0xFFFF_FFFF_FFFF_FF80),
    ("2@16(%rdi)", 0x1000, 0x1234),
    ("1@17(%rdi)", 0x1000, 0x12),
    ("4@(%rdi,%rdi)", 0x800, 0xFFFF_FF80),
    ("8@24(%rdi,%rdi,4)", 0x330, 0x77),
    ("8@4096(,%rdi,8)", 1, 0x77),
    ("8@counter(%rip)", 0, 0x42),
    ("4@counter+8(%rip)", 0, 0x43),
    ("4@a.b$1(%rip)", 0, 0x44),
    ("4@counter", 0, 0x42),
    ("8@counter-8(%rdi)", 8, 0x42),
    ("8@%gs:8(%rdi)", 0, 0x77),
    ("8@%gs:counter(%rip)", 0, 0x44),
    ("8@(%rdi)", 0x7000, None),
]


@pytest.mark.parametrize(("text", "register", "expected"), AMD64)
def test_amd64(text: str, register: int, expected: int | None) -> None:
    if expected is None:
        with pytest.raises(Fault) as caught:
            value("amd64", text, rdi=register, gs_base=0x1000)
        assert caught.value.kind is FaultKind.BADADDR
    else:
        assert value("amd64", text, rdi=register, gs_base=0x1000) == expected


@pytest.mark.parametrize(
    "name",
    ["rax eax ax al", "rsp esp sp spl", "rsi esi si sil", "rbx ebx bx bl", "r8 r8d r8w r8b", "r15 r15d r15w r15b"],
)
def test_parts_of_amd64_registers(name: str) -> None:
    whole, *parts = name.split()
    sizes = (8, 4, 2, 1)
    for part, size in zip((whole, *parts), sizes, strict=True):
        assert value("amd64", f"{size}@%{part}", **{whole: 0x1122_3344_5566_7788}) == (
            0x1122_3344_5566_7788 & (1 << 8 * size) - 1
        )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-4@w0", 0xFFFF_FFFF_8000_0000),
        ("8@x0", 0x1_8000_0000),
        ("8@sp", 0x1000),
        ("4@wzr", 0),
        ("8@xzr", 0),
        ("4@5", 5),
        ("-4@-1", (1 << 64) - 1),
        ("8@#5", 5),
        ("8@[sp, 16]", 0x1234),
        ("8@[sp, #:lo12:counter+8]", 0x77),
        ("2@[sp, #16]", 0x1234),
        ("8@[sp,-16]", 0x1122_3344_5566_7788),
        ("-1@[sp]", 0xFFFF_FFFF_FFFF_FF80),
        ("8@[sp, x1]", 0x77),
        ("8@[sp, x1, lsl 3]", 0xABCD),
        ("8@[sp, x1, lsl #3]", 0xABCD),
        ("8@[x2, w3, sxtw 3]", 0xFFFF_FFFF_FFFF_FF80),
        ("8@[x2, w3, uxtw]", None),
        ("8@[x30, 8]", 0x77),
    ],
)
def test_arm64(text: str, expected: int | None) -> None:
    registers = {"x0": 0x1_8000_0000, "sp": 0x1000, "x1": 8, "x2": 0x1008, "x3": 0xFFFF_FFFF, "x30": 0x1000}
    if expected is None:
        with pytest.raises(Fault):
            value("arm64", text, **registers)
    else:
        assert value("arm64", text, **registers) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-4@a0", 0xFFFF_FFFF_8000_0000),
        ("8@a0", 0x8000_0000),
        ("4@x10", 0x8000_0000),
        ("8@zero", 0),
        ("1@7", 7),
        ("8@-24(s0)", 0x66),
        ("8@-24(fp)", 0x66),
        ("4@0(sp)", 0xFFFF_FF80),
        ("8@%lo(counter)(a5)", 0x42),
        ("8@%lo(_high)(a4)", 0x1122_3344_5566_7788),
    ],
)
def test_riscv64(text: str, expected: int) -> None:
    registers = {"a0": 0x8000_0000, "s0": 0x1018 - 24, "sp": 0x1000, "a5": 0x5000, "a4": 0xFF4}
    assert value("riscv64", text, **registers) == expected


@pytest.mark.parametrize(
    ("arch", "text"),
    [
        ("amd64", "4f@%xmm0"),
        ("amd64", "16@%xmm0"),
        ("amd64", "8@%xmm0"),
        ("amd64", "8@"),
        ("amd64", "8@$08"),
        ("amd64", "8@$0000000000000000009"),
        ("amd64", "8@counter+09(%rip)"),
        ("amd64", ""),
        ("amd64", "8@nowhere(%rip)"),
        ("amd64", "8@$nowhere"),
        ("amd64", "8@(%rdi,%rdi,3)"),
        ("amd64", "8@(%rdi,%rdi,4,5)"),
        ("amd64", "8@(()"),
        ("amd64", "8@((((((((((((((((((("),
        ("amd64", "8@%fs:%gs:"),
        ("arm64", "8@[sp, 16]!"),
        ("arm64", "8@[]"),
        ("arm64", "8@[sp, 08]"),
        ("arm64", "8@[x0, x1, ror 3]"),
        ("arm64", "8@[x0, x1, lsl 3, 4]"),
        ("arm64", "8@%gs:0"),
        ("riscv64", "8@%lo(nowhere)(a5)"),
        ("riscv64", "8@fa0"),
    ],
)
def test_what_is_not_known_faults_when_it_is_asked_for(arch: str, text: str) -> None:
    operands = Operands(arch_by_name(arch), SYMBOLS.get)
    argument = operands.compile(("8@5", text) if arch != "amd64" else ("8@$5", text))
    firing = firing_with(arch, {})
    assert argument(firing, 0) == 5
    assert argument(firing, 2) == 0
    with pytest.raises(Fault) as caught:
        argument(firing, 1)
    if caught.value.kind is FaultKind.ILLOP:
        name = next((one for one in ("nowhere", "fa0") if one in text), "")
        why = f"the file has no symbol {name}, as the symbol table says" if name else f"not an operand syntax of {arch}"
        assert caught.value.text == f"operand {text!r} of a static probe: {why}"
    else:
        pytest.fail(f"{caught.value}")


def test_a_label_of_the_assembler_is_told() -> None:
    argument = Operands(arch_by_name("arm64"), SYMBOLS.get).compile(["-4@[x8, #:lo12:.LANCHOR2]"])
    with pytest.raises(Fault) as caught:
        argument(firing_with("arm64", {}), 0)
    assert "the file has no symbol .LANCHOR2, a label that only the assembler knew" in caught.value.text
