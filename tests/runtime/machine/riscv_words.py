"""RISC-V instructions as words, for guests of a few lines: keystone has no RISC-V and a user no cross compiler."""

ZERO, RA, SP, T0, T1, T2, S0, S1, A0, A1, A2, A3 = 0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13
S2, S3, S4, S5, S6 = 18, 19, 20, 21, 22
A6, A7 = 16, 17
NOP, WFI, ECALL, EBREAK, MRET, SRET, FENCE_I, SFENCE_VMA = (
    0x13, 0x10500073, 0x73, 0x100073, 0x30200073, 0x10200073, 0x100F, 0x12000073,
)  # fmt: skip
CSR = {
    "sstatus": 0x100, "sie": 0x104, "stvec": 0x105, "scounteren": 0x106, "sepc": 0x141, "scause": 0x142,
    "stval": 0x143, "sip": 0x144, "satp": 0x180, "mstatus": 0x300, "medeleg": 0x302, "mideleg": 0x303, "mie": 0x304,
    "mtvec": 0x305, "mcounteren": 0x306, "mepc": 0x341, "mcause": 0x342, "mtval": 0x343, "mip": 0x344, "time": 0xC01,
    "mhartid": 0xF14,
}  # fmt: skip


def code(*words: int) -> bytes:
    """Little-endian instructions one after the other."""
    return b"".join(word.to_bytes(4, "little") for word in words)


def addi(rd: int, rs1: int, immediate: int) -> int:
    return (immediate & 0xFFF) << 20 | rs1 << 15 | rd << 7 | 0x13


def lui(rd: int, upper: int) -> int:
    """`upper` is the value: its low 12 bits are zero."""
    return upper & 0xFFFFF000 | rd << 7 | 0x37


def li(rd: int, value: int) -> tuple[int, int]:
    """A 32-bit value, sign-extended."""
    low = (value & 0xFFF) - ((value & 0x800) << 1)
    return lui(rd, value - low & 0xFFFFFFFF), addiw(rd, rd, low)


def la(rd: int, address: int) -> tuple[int, int, int, int]:
    """An address below 4 GiB, not sign-extended."""
    return (*li(rd, address), shift(rd, rd, 32, left=True), shift(rd, rd, 32, left=False))


def addiw(rd: int, rs1: int, immediate: int) -> int:
    return (immediate & 0xFFF) << 20 | rs1 << 15 | rd << 7 | 0x1B


def shift(rd: int, rs1: int, amount: int, *, left: bool) -> int:
    return amount << 20 | rs1 << 15 | (1 if left else 5) << 12 | rd << 7 | 0x13


def xor(rd: int, rs1: int, rs2: int) -> int:
    return rs2 << 20 | rs1 << 15 | 4 << 12 | rd << 7 | 0x33


def load(rd: int, base: int, offset: int = 0, *, size: int = 3) -> int:
    """`size` is log2 of the bytes."""
    return (offset & 0xFFF) << 20 | base << 15 | size << 12 | rd << 7 | 0x03


def store(source: int, base: int, offset: int = 0, *, size: int = 3) -> int:
    high, low = (offset & 0xFFF) >> 5, offset & 31
    return high << 25 | source << 20 | base << 15 | size << 12 | low << 7 | 0x23


def jal(rd: int, displacement: int) -> int:
    value = displacement & 0x1FFFFF
    bits = (value >> 20) << 31 | (value >> 1 & 0x3FF) << 21 | (value >> 11 & 1) << 20 | (value >> 12 & 0xFF) << 12
    return bits | rd << 7 | 0x6F


def jalr(rd: int, rs1: int, offset: int = 0) -> int:
    return (offset & 0xFFF) << 20 | rs1 << 15 | rd << 7 | 0x67


def bne(rs1: int, rs2: int, displacement: int) -> int:
    value = displacement & 0x1FFF
    bits = (value >> 12) << 31 | (value >> 5 & 0x3F) << 25 | (value >> 1 & 15) << 8 | (value >> 11 & 1) << 7
    return bits | rs2 << 20 | rs1 << 15 | 1 << 12 | 0x63


def csrw(name: str, rs1: int) -> int:
    return CSR[name] << 20 | rs1 << 15 | 1 << 12 | 0x73


def csrs(name: str, rs1: int) -> int:
    return CSR[name] << 20 | rs1 << 15 | 2 << 12 | 0x73


def csrc(name: str, rs1: int) -> int:
    return CSR[name] << 20 | rs1 << 15 | 3 << 12 | 0x73


def csrr(rd: int, name: str) -> int:
    return CSR[name] << 20 | 2 << 12 | rd << 7 | 0x73
