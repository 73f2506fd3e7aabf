"""Assembly of riscv64, an instruction at a time -> bytes: RV64IM, Zaamo, Zicsr, some of C, and the pseudoinstructions.

keystone has no RISC-V. Opcodes and fields: unprivileged ISA, chapter "RV32/64G Instruction Set Listings"; compressed
ones: table 16.5 to 16.7. Immediates are checked here; nothing is cut. Targets of jumps and branches are addresses.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from kinst.targets.arch.riscv64 import RISCV64
from kinst.targets.errors import UsageError

MACHINE: Final = RISCV64.name
_OPERAND: Final = re.compile(r"(?P<offset>[^()]*)\((?P<base>[^()]+)\)")
_NUMBER: Final = re.compile(r"-?(0x[0-9a-f]+|[0-9]+)")
_ZERO, _RA, _T1 = 0, 1, 6
_REGISTERS: Final = RISCV64.operand_registers

# Mnemonic -> (opcode, funct3, funct7).
_R: Final = {
    name: (opcode, funct3, funct7)
    for opcode, funct7, names in (
        (0x33, 0x00, "add sll slt sltu xor srl or and"),
        (0x33, 0x01, "mul mulh mulhsu mulhu div divu rem remu"),
        (0x3B, 0x01, "mulw - - - divw divuw remw remuw"),
        (0x3B, 0x00, "addw sllw - - - srlw"),
    )
    for funct3, name in enumerate(names.split())
} | {"sub": (0x33, 0, 0x20), "sra": (0x33, 5, 0x20), "subw": (0x3B, 0, 0x20), "sraw": (0x3B, 5, 0x20)}
_I: Final = {
    "addi": (0x13, 0), "slti": (0x13, 2), "sltiu": (0x13, 3), "xori": (0x13, 4), "ori": (0x13, 6), "andi": (0x13, 7),
    "addiw": (0x1B, 0),
}  # fmt: skip
# Shifts by a constant: opcode, funct3, what is above the amount, and its bits.
_SHIFTS: Final = {
    "slli": (0x13, 1, 0, 6), "srli": (0x13, 5, 0, 6), "srai": (0x13, 5, 0x400, 6),
    "slliw": (0x1B, 1, 0, 5), "srliw": (0x1B, 5, 0, 5), "sraiw": (0x1B, 5, 0x400, 5),
}  # fmt: skip
# Mnemonic -> funct3.
_LOADS: Final = {"lb": 0, "lh": 1, "lw": 2, "ld": 3, "lbu": 4, "lhu": 5, "lwu": 6}
_STORES: Final = {"sb": 0, "sh": 1, "sw": 2, "sd": 3}
# Mnemonic -> funct5 and funct3.
_ATOMICS: Final = {
    f"amo{name}.{width}": (funct5, funct3)
    for name, funct5 in (
        ("add", 0x00), ("swap", 0x01), ("xor", 0x04), ("or", 0x08), ("and", 0x0C),
        ("min", 0x10), ("max", 0x14), ("minu", 0x18), ("maxu", 0x1C),
    )
    for width, funct3 in (("w", 2), ("d", 3))
}  # fmt: skip
_BRANCHES: Final = {"beq": 0, "bne": 1, "blt": 4, "bge": 5, "bltu": 6, "bgeu": 7}
_CSR: Final = {"csrrw": 1, "csrrs": 2, "csrrc": 3, "csrrwi": 5, "csrrsi": 6, "csrrci": 7}
_CSR_NAMES: Final = {
    "cycle": 0xC00, "time": 0xC01, "instret": 0xC02,
    "sstatus": 0x100, "sie": 0x104, "stvec": 0x105, "scounteren": 0x106, "sscratch": 0x140, "sepc": 0x141,
    "scause": 0x142, "stval": 0x143, "sip": 0x144, "satp": 0x180, "mvendorid": 0xF11, "marchid": 0xF12,
    "mimpid": 0xF13, "mhartid": 0xF14, "mstatus": 0x300, "misa": 0x301, "medeleg": 0x302, "mideleg": 0x303,
    "mie": 0x304, "mtvec": 0x305, "mcounteren": 0x306, "mscratch": 0x340, "mepc": 0x341, "mcause": 0x342,
    "mtval": 0x343, "mip": 0x344,
}  # fmt: skip
_ALONE: Final = {
    "nop": 0x13, "ret": 0x8067, "ecall": 0x73, "ebreak": 0x100073, "wfi": 0x10500073, "mret": 0x30200073,
    "sret": 0x10200073, "fence": 0x0FF0000F, "fence.i": 0x100F, "sfence.vma": 0x12000073, "unimp": 0xC0001073,
}  # fmt: skip
_COMPRESSED: Final = {"c.nop": 0x0001, "c.ebreak": 0x9002}

# Pseudoinstructions: how many operands, and what they stand for.
_PSEUDO: Final[Mapping[tuple[str, int], str]] = {
    ("mv", 2): "addi {0}, {1}, 0", ("not", 2): "xori {0}, {1}, -1", ("neg", 2): "sub {0}, zero, {1}",
    ("negw", 2): "subw {0}, zero, {1}", ("sext.w", 2): "addiw {0}, {1}, 0", ("seqz", 2): "sltiu {0}, {1}, 1",
    ("snez", 2): "sltu {0}, zero, {1}", ("sltz", 2): "slt {0}, {1}, zero", ("sgtz", 2): "slt {0}, zero, {1}",
    ("beqz", 2): "beq {0}, zero, {1}", ("bnez", 2): "bne {0}, zero, {1}", ("blez", 2): "bge zero, {0}, {1}",
    ("bgez", 2): "bge {0}, zero, {1}", ("bltz", 2): "blt {0}, zero, {1}", ("bgtz", 2): "blt zero, {0}, {1}",
    ("bgt", 3): "blt {1}, {0}, {2}", ("ble", 3): "bge {1}, {0}, {2}", ("bgtu", 3): "bltu {1}, {0}, {2}",
    ("bleu", 3): "bgeu {1}, {0}, {2}", ("j", 1): "jal zero, {0}", ("jal", 1): "jal ra, {0}",
    ("jr", 1): "jalr zero, 0({0})", ("jalr", 1): "jalr ra, 0({0})", ("csrr", 2): "csrrs {0}, {1}, zero",
    ("csrw", 2): "csrrw zero, {0}, {1}", ("csrs", 2): "csrrs zero, {0}, {1}", ("csrc", 2): "csrrc zero, {0}, {1}",
    ("csrwi", 2): "csrrwi zero, {0}, {1}", ("csrsi", 2): "csrrsi zero, {0}, {1}",
    ("csrci", 2): "csrrci zero, {0}, {1}",
}  # fmt: skip


def encode(text: str, address: int) -> bytes:
    """The bytes of one instruction: 2 or 4, or 8 for pseudoinstructions that take two.

    Raises:
        UsageError: the instruction is unknown here, or an operand does not fit.
    """
    try:
        return _encoded(text, address)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}") from None


def _encoded(text: str, address: int) -> bytes:
    mnemonic, _, rest = text.strip().lower().partition(" ")
    operands = [one.strip() for one in rest.split(",")] if rest.strip() else []
    template = _PSEUDO.get((mnemonic, len(operands)))
    if template is not None:
        return _encoded(template.format(*operands), address)
    form = next((form for names, form in _FORMS if mnemonic in names), None)
    if form is None:
        raise ValueError("not among the riscv64 instructions known here: write its bytes, hex:...")
    return form(mnemonic, operands, address)


def _word(value: int) -> bytes:
    return value.to_bytes(4, "little")


def _half(value: int) -> bytes:
    return value.to_bytes(2, "little")


def _register(text: str) -> int:
    if text not in _REGISTERS:
        raise ValueError(f"{text!r} is no register")
    return _REGISTERS[text]


def _number(text: str, low: int, high: int, step: int = 1) -> int:
    """A number from `low` to `high`, a multiple of `step`."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is no number")
    value = int(text, 0)
    if not low <= value <= high or value % step:
        raise ValueError(f"{value:#x} does not fit: {low:#x} to {high:#x}{f', a multiple of {step}' * (step > 1)}")
    return value


def _signed(text: str, bits: int) -> int:
    return _number(text, -(1 << bits - 1), (1 << bits - 1) - 1)


def _distance(text: str, address: int, bits: int) -> int:
    """From an address to the one in `text`: signed, even, and of at most `bits` bits."""
    distance = (_number(text, 0, (1 << 64) - 1) - address + (1 << 63)) % (1 << 64) - (1 << 63)
    if not -(1 << bits - 1) <= distance < 1 << bits - 1 or distance % 2:
        raise ValueError(f"{text} is out of reach, {distance:#x} bytes away, or odd")
    return distance


def _memory(text: str) -> tuple[int, int]:
    """``8(sp)``: the offset and the register."""
    found = _OPERAND.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not like 8(sp)")
    return _signed(found["offset"].strip() or "0", 12), _register(found["base"].strip())


def _take(operands: list[str], count: int) -> list[str]:
    if len(operands) != count:
        raise ValueError(f"takes {count} operands")
    return operands


def _r_type(name: str, operands: list[str], _address: int) -> bytes:
    opcode, funct3, funct7 = _R[name]
    rd, rs1, rs2 = map(_register, _take(operands, 3))
    return _word(funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode)


def _i(opcode: int, funct3: int, rd: int, rs1: int, immediate: int) -> bytes:
    return _word((immediate & 0xFFF) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode)


def _i_type(name: str, operands: list[str], _address: int) -> bytes:
    rd, rs1, immediate = _take(operands, 3)
    return _i(*_I[name], _register(rd), _register(rs1), _signed(immediate, 12))


def _shift(name: str, operands: list[str], _address: int) -> bytes:
    opcode, funct3, high, bits = _SHIFTS[name]
    rd, rs1, amount = _take(operands, 3)
    return _i(opcode, funct3, _register(rd), _register(rs1), high | _number(amount, 0, (1 << bits) - 1))


def _load(name: str, operands: list[str], _address: int) -> bytes:
    rd, place = _take(operands, 2)
    offset, base = _memory(place)
    return _i(0x03, _LOADS[name], _register(rd), base, offset)


def _store(name: str, operands: list[str], _address: int) -> bytes:
    source, place = _take(operands, 2)
    offset, base = _memory(place)
    high, low = (offset & 0xFFF) >> 5, offset & 31
    return _word(high << 25 | _register(source) << 20 | base << 15 | _STORES[name] << 12 | low << 7 | 0x23)


def _atomic(name: str, operands: list[str], _address: int) -> bytes:
    """funct5 aq rl rs2 rs1 funct3 rd opcode; neither aq nor rl"""
    funct5, funct3 = _ATOMICS[name]
    rd, source, place = _take(operands, 3)
    offset, base = _memory(place)
    if offset:
        raise ValueError(f"{place} has an offset, which atomic instructions do not")
    return _word(funct5 << 27 | _register(source) << 20 | base << 15 | funct3 << 12 | _register(rd) << 7 | 0x2F)


def _branch(name: str, operands: list[str], address: int) -> bytes:
    """imm[12|10:5] rs2 rs1 funct3 imm[4:1|11] opcode"""
    rs1, rs2, target = _take(operands, 3)
    value = _distance(target, address, 13) & 0x1FFF
    bits = (value >> 12) << 31 | (value >> 5 & 0x3F) << 25 | (value >> 1 & 15) << 8 | (value >> 11 & 1) << 7
    return _word(bits | _register(rs2) << 20 | _register(rs1) << 15 | _BRANCHES[name] << 12 | 0x63)


def _jal(_name: str, operands: list[str], address: int) -> bytes:
    """imm[20|10:1|11|19:12] rd opcode"""
    rd, target = _take(operands, 2)
    value = _distance(target, address, 21) & 0x1F_FFFF
    bits = (value >> 20) << 31 | (value >> 1 & 0x3FF) << 21 | (value >> 11 & 1) << 20 | (value >> 12 & 0xFF) << 12
    return _word(bits | _register(rd) << 7 | 0x6F)


def _jalr(_name: str, operands: list[str], _address: int) -> bytes:
    rd, place = _take(operands, 2)
    offset, base = _memory(place)
    return _i(0x67, 0, _register(rd), base, offset)


def _upper(name: str, operands: list[str], _address: int) -> bytes:
    rd, value = _take(operands, 2)
    return _u(0x37 if name == "lui" else 0x17, _register(rd), _number(value, 0, 0xF_FFFF))


def _u(opcode: int, rd: int, high: int) -> bytes:
    return _word((high & 0xF_FFFF) << 12 | rd << 7 | opcode)


def _li(_name: str, operands: list[str], _address: int) -> bytes:
    rd, text = _take(operands, 2)
    value, register = _number(text, -(1 << 31), (1 << 32) - 1), _register(rd)
    if value >= 1 << 31:
        raise ValueError(f"{text} takes more than two instructions, as all from 0x80000000 on do")
    if -0x800 <= value < 0x800:
        return _i(0x13, 0, register, _ZERO, value)
    low = (value & 0xFFF) - ((value & 0x800) << 1)
    return _u(0x37, register, value - low >> 12) + (_i(0x1B, 0, register, register, low) if low else b"")


def _far(rd: int, scratch: int, target: str, address: int) -> bytes:
    """auipc and jalr."""
    distance = _distance(target, address, 32)
    low = (distance & 0xFFF) - ((distance & 0x800) << 1)
    if distance - low >= 1 << 31:
        raise ValueError(f"{target} is out of reach")
    return _u(0x17, scratch, distance - low >> 12) + _i(0x67, 0, rd, scratch, low)


def _call(name: str, operands: list[str], address: int) -> bytes:
    (target,) = _take(operands, 1)
    return _far(_RA, _RA, target, address) if name == "call" else _far(_ZERO, _T1, target, address)


def _la(_name: str, operands: list[str], address: int) -> bytes:
    rd, target = _take(operands, 2)
    register, code = _register(rd), _far(_ZERO, _register(rd), target, address)
    low = int.from_bytes(code[4:], "little") >> 20
    return code[:4] + _i(0x13, 0, register, register, low)


def _csr(name: str, operands: list[str], _address: int) -> bytes:
    rd, register, source = _take(operands, 3)
    number = _CSR_NAMES[register] if register in _CSR_NAMES else _number(register, 0, 0xFFF)
    value = _number(source, 0, 31) if name.endswith("i") else _register(source)
    return _i(0x73, _CSR[name], _register(rd), value, number)


def _alone(name: str, operands: list[str], _address: int) -> bytes:
    _take(operands, 0)
    return _half(_COMPRESSED[name]) if name in _COMPRESSED else _word(_ALONE[name])


def _c_immediate(name: str, operands: list[str], _address: int) -> bytes:
    """c.li, c.addi: funct3 imm[5] rd imm[4:0] 01; not of x0, and c.addi not by 0."""
    rd, text = _take(operands, 2)
    register, value = _register(rd), _signed(text, 6)
    if register == _ZERO or (name == "c.addi" and not value):
        raise ValueError("is a hint: c.nop does nothing")
    return _half((0x4001 if name == "c.li" else 0x0001) | (value >> 5 & 1) << 12 | register << 7 | (value & 31) << 2)


def _c_registers(name: str, operands: list[str], _address: int) -> bytes:
    """c.mv, c.add: funct4 rd rs2 10; neither may be x0."""
    rd, rs2 = map(_register, _take(operands, 2))
    if _ZERO in (rd, rs2):
        raise ValueError("takes no zero")
    return _half((0x8002 if name == "c.mv" else 0x9002) | rd << 7 | rs2 << 2)


def _c_jump_register(name: str, operands: list[str], _address: int) -> bytes:
    (rs1,) = map(_register, _take(operands, 1))
    if rs1 == _ZERO:
        raise ValueError("takes no zero")
    return _half((0x8002 if name == "c.jr" else 0x9002) | rs1 << 7)


def _c_jump(_name: str, operands: list[str], address: int) -> bytes:
    """101 imm[11|4|9:8|10|6|7|3:1|5] 01"""
    (target,) = _take(operands, 1)
    value = _distance(target, address, 12)
    places = ((11, 12), (4, 11), (9, 10), (8, 9), (10, 8), (6, 7), (7, 6), (3, 5), (2, 4), (1, 3), (5, 2))
    bits = sum((value >> bit & 1) << place for bit, place in places)
    return _half(0xA001 | bits)


_Form = Callable[[str, list[str], int], bytes]
_FORMS: Final[tuple[tuple[frozenset[str], _Form], ...]] = tuple(
    (frozenset(names) - {"-"}, form)
    for names, form in (
        (_R, _r_type), (_I, _i_type), (_SHIFTS, _shift), (_LOADS, _load), (_STORES, _store), (_ATOMICS, _atomic),
        (_BRANCHES, _branch),
        (_CSR, _csr), (_ALONE, _alone), (_COMPRESSED, _alone), (("jal",), _jal), (("jalr",), _jalr),
        (("lui", "auipc"), _upper), (("li",), _li), (("la", "lla"), _la), (("call", "tail"), _call),
        (("c.li", "c.addi"), _c_immediate), (("c.mv", "c.add"), _c_registers), (("c.jr", "c.jalr"), _c_jump_register),
        (("c.j",), _c_jump),
    )
)  # fmt: skip
