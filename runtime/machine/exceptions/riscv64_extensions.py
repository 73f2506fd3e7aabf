"""A RISC-V instruction that the emulator lacks -> its name and extension, since the disassembler lacks it as well.

Encodings: RISC-V Unprivileged ISA, chapters 28 (Zb), 31 (V), 30 (Zc), and those of Zicond, Zfh, Zacas, Zicbo.
"""

from typing import Final

_OP, _OP_32, _IMMEDIATE, _IMMEDIATE_32 = 0x33, 0x3B, 0x13, 0x1B

# Register and immediate operations: (opcode, funct3, bits 31:25) -> name, extension. Shifts by an immediate of 6 bits
# have its top bit in bit 25: both are listed.
#
#   31      25 24  20 19  15 14  12 11   7 6      0
#  +----------+------+------+------+------+--------+
#  |  funct7  | rs2  | rs1  |funct3|  rd  | opcode |
#  +----------+------+------+------+------+--------+
_BY_FUNCTION: Final = {
    (_OP, 2, 0x10): "sh1add (Zba)", (_OP, 4, 0x10): "sh2add (Zba)", (_OP, 6, 0x10): "sh3add (Zba)",
    (_OP_32, 0, 0x04): "add.uw (Zba)", (_OP_32, 2, 0x10): "sh1add.uw (Zba)", (_OP_32, 4, 0x10): "sh2add.uw (Zba)",
    (_OP_32, 6, 0x10): "sh3add.uw (Zba)", (_IMMEDIATE_32, 1, 0x04): "slli.uw (Zba)",
    (_IMMEDIATE_32, 1, 0x05): "slli.uw (Zba)",
    (_OP, 7, 0x20): "andn (Zbb)", (_OP, 6, 0x20): "orn (Zbb)", (_OP, 4, 0x20): "xnor (Zbb)",
    (_OP, 4, 0x05): "min (Zbb)", (_OP, 5, 0x05): "minu (Zbb)", (_OP, 6, 0x05): "max (Zbb)",
    (_OP, 7, 0x05): "maxu (Zbb)", (_OP, 1, 0x30): "rol (Zbb)", (_OP, 5, 0x30): "ror (Zbb)",
    (_OP_32, 1, 0x30): "rolw (Zbb)", (_OP_32, 5, 0x30): "rorw (Zbb)", (_OP_32, 4, 0x04): "zext.h (Zbb)",
    (_IMMEDIATE, 5, 0x30): "rori (Zbb)", (_IMMEDIATE, 5, 0x31): "rori (Zbb)", (_IMMEDIATE_32, 5, 0x30): "roriw (Zbb)",
    (_OP, 1, 0x05): "clmul (Zbc)", (_OP, 2, 0x05): "clmulr (Zbc)", (_OP, 3, 0x05): "clmulh (Zbc)",
    (_OP, 1, 0x24): "bclr (Zbs)", (_OP, 5, 0x24): "bext (Zbs)", (_OP, 1, 0x34): "binv (Zbs)",
    (_OP, 1, 0x14): "bset (Zbs)",
    (_IMMEDIATE, 1, 0x24): "bclri (Zbs)", (_IMMEDIATE, 1, 0x25): "bclri (Zbs)", (_IMMEDIATE, 5, 0x24): "bexti (Zbs)",
    (_IMMEDIATE, 5, 0x25): "bexti (Zbs)", (_IMMEDIATE, 1, 0x34): "binvi (Zbs)", (_IMMEDIATE, 1, 0x35): "binvi (Zbs)",
    (_IMMEDIATE, 1, 0x14): "bseti (Zbs)", (_IMMEDIATE, 1, 0x15): "bseti (Zbs)",
    (_OP, 5, 0x07): "czero.eqz (Zicond)", (_OP, 7, 0x07): "czero.nez (Zicond)",
}  # fmt: skip
# Operations on one register: (opcode, funct3, bits 31:20).
_BY_IMMEDIATE: Final = {
    (_IMMEDIATE, 1, 0x600): "clz (Zbb)", (_IMMEDIATE, 1, 0x601): "ctz (Zbb)", (_IMMEDIATE, 1, 0x602): "cpop (Zbb)",
    (_IMMEDIATE, 1, 0x604): "sext.b (Zbb)", (_IMMEDIATE, 1, 0x605): "sext.h (Zbb)",
    (_IMMEDIATE_32, 1, 0x600): "clzw (Zbb)", (_IMMEDIATE_32, 1, 0x601): "ctzw (Zbb)",
    (_IMMEDIATE_32, 1, 0x602): "cpopw (Zbb)",
    (_IMMEDIATE, 5, 0x287): "orc.b (Zbb)", (_IMMEDIATE, 5, 0x6B8): "rev8 (Zbb)",
    (0x0F, 2, 0): "cbo.inval (Zicbom)", (0x0F, 2, 1): "cbo.clean (Zicbom)", (0x0F, 2, 2): "cbo.flush (Zicbom)",
    (0x0F, 2, 4): "cbo.zero (Zicboz)",
}  # fmt: skip
_LOAD_FP, _STORE_FP, _AMO, _OP_FP, _OP_V = 0x07, 0x27, 0x2F, 0x53, 0x57
_VECTOR_WIDTHS: Final = frozenset({0, 5, 6, 7})  # in loads and stores; 1 to 4 are scalars of 16 to 128 bits
_HALF: Final = 2  # fmt, bits 26:25
# Compressed operations of Zcb: bits 15:10 and the quadrant.
_ZCB: Final = {
    (0x20, 0): "c.lbu (Zcb)", (0x21, 0): "c.lhu (Zcb)", (0x22, 0): "c.sb (Zcb)", (0x23, 0): "c.sh (Zcb)",
}  # fmt: skip


def extension_instruction(word: int) -> str | None:
    """The name of an instruction of a ratified extension beyond rv64imafdc; None if it is not known here."""
    if word & 3 != 3:
        return _compressed(word & 0xFFFF)
    opcode, function, high = word & 0x7F, word >> 12 & 7, word >> 20
    named = _BY_IMMEDIATE.get((opcode, function, high)) or _BY_FUNCTION.get((opcode, function, high >> 5))
    if named is not None:
        return named
    if opcode == _OP_V or (opcode in (_LOAD_FP, _STORE_FP) and function in _VECTOR_WIDTHS):
        return "a vector instruction (V)"
    if (opcode == _OP_FP and word >> 25 & 3 == _HALF) or (opcode in (_LOAD_FP, _STORE_FP) and function == 1):
        return "a half-precision instruction (Zfh)"
    if opcode == _AMO:
        return (
            "amocas (Zacas)" if word >> 27 == 5 else "an atomic of bytes or halfwords (Zabha)" if function < 2 else None
        )
    return None


def _compressed(word: int) -> str | None:
    """The name of a Zcb instruction: loads and stores of bytes and halfwords, and 100 1 11 rd' 1 x of quadrant 1."""
    if word & 3 == 1 and word >> 10 == 0x27 and word >> 6 & 1:
        is_unary = word >> 5 & 1
        return "a one-register instruction (Zcb)" if is_unary else "c.mul (Zcb)"
    return _ZCB.get((word >> 10, word & 3))
