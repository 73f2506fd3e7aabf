"""The effects of amd64's opcodes, as the manual writes them (Intel SDM volume 2), compiled to lookup arrays.

Operands: ``G`` is ModRM.reg, ``E`` ModRM.rm where it is a register, ``O`` the register in the opcode, and registers by
their names. Flags are C P A Z S O. Those that the manual calls undefined are neither read nor written, except A after
logic and shifts, which all processors write. What has no row reads everything: x87, VEX, system instructions.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.amd64_opcodes import Prefix, opcode_cells
from kinst.targets.arch.amd64 import GENERAL
from kinst.targets.values import dataclass

FLAGS: Final = {name: 1 << 16 + number for number, name in enumerate("CPAZSO")}
ARITHMETIC: Final = "CPAZSO"
_REGISTERS: Final = {name: 1 << number for number, name in enumerate(GENERAL)}
# What the condition in an opcode's low bits reads: o, b, e, be, s, p, l, le, and each with its opposite.
_CONDITIONS: Final = ("O", "C", "Z", "CZ", "S", "P", "SO", "ZSO")


@dataclass(frozen=True, slots=True)
class Form:
    """Opcodes with the same effects. `byte` names operands of one byte: writing one leaves the rest of the register."""

    code: str  # as in `kinst.rewriter.arch.amd64_opcodes`
    reads: str = ""
    writes: str = ""
    tests: str = ""  # flags that are read
    sets: str = ""  # flags that are written
    byte: str = ""
    needs: Prefix = Prefix.NONE  # one of these
    forbids: Prefix = Prefix.NONE
    is_counted: bool = False  # flags are written if the immediate, a shift count, is not 0
    has_address: bool = True  # a memory operand's registers are read


def _arithmetic() -> list[Form]:
    found = []
    for number in range(8):  # add, or, adc, sbb, and, sub, xor, cmp
        base, tests, keeps = number << 3, "C" if number in (2, 3) else "", number == 7
        for low, reads, byte in ((0, "E G", "E G"), (1, "E G", ""), (2, "G E", "E G"), (3, "G E", "")):
            target = "" if keeps else reads[0]
            found.append(Form(f"{base + low:02x}", reads, target, tests, ARITHMETIC, byte))
        found.append(Form(f"{base + 4:02x}-{base + 5:02x}", "rax", "", tests, ARITHMETIC))
        for code, byte in (("80", "E"), ("81", ""), ("83", "")):
            found.append(Form(f"{code} /{number}", "E", "" if keeps else "E", tests, ARITHMETIC, byte))
    return found


def _conditional() -> list[Form]:
    found = []
    for number, tests in enumerate(_CONDITIONS):
        low = 2 * number  # a condition and its opposite
        found.append(Form(f"{0x70 + low:02x}-{0x71 + low:02x}", tests=tests))
        found.append(Form(f"0f {0x40 + low:02x}-{0x41 + low:02x}", "G E", "G", tests))
        found.append(Form(f"0f {0x80 + low:02x}-{0x81 + low:02x}", tests=tests))
        found.append(Form(f"0f {0x90 + low:02x}-{0x91 + low:02x}", "", "E", tests, byte="E"))
    return found


def _shifts() -> list[Form]:
    found = []
    for code, byte, reads, is_counted, sets in (
        ("c0", "E", "E", True, ARITHMETIC),
        ("c1", "", "E", True, ARITHMETIC),
        ("d0", "E", "E", False, ARITHMETIC),
        ("d1", "", "E", False, ARITHMETIC),
        ("d2", "E", "E rcx", False, ""),
        ("d3", "", "E rcx", False, ""),
    ):
        found += [Form(f"{code} /{digit}", reads, "E", byte=byte) for digit in (0, 1)]  # rol, ror
        found += [Form(f"{code} /{digit}", reads, "E", "C", byte=byte) for digit in (2, 3)]  # rcl, rcr
        found += [Form(f"{code} /{digit}", reads, "E", "", sets, byte, is_counted=is_counted) for digit in (4, 5, 6, 7)]
    return found


_MOVES: Final = (
    Form("50-57", "O"),
    Form("58-5f", "", "O"),
    Form("63", "E", "G"),
    Form("68"),
    Form("6a"),
    Form("84", "E G", "", "", ARITHMETIC, "E G"),
    Form("85", "E G", "", "", ARITHMETIC),
    Form("86", "E G", "E G", byte="E G"),
    Form("87", "E G", "E G"),
    Form("88", "G", "E", byte="E G"),
    Form("89", "G", "E"),
    Form("8a", "E", "G", byte="E G"),
    Form("8b", "E", "G"),
    Form("8d", "", "G"),
    Form("90", forbids=Prefix.REX_B),
    Form("91-97", "O rax", "O rax"),
    Form("98", "rax", "rax"),
    Form("99", "rax", "rdx"),
    Form("9c", "", "", ARITHMETIC),
    Form("9d", "", "", "", ARITHMETIC),
    Form("b0-b7", "", "O", byte="O"),
    Form("b8-bf", "", "O"),
    Form("c6 /0", "", "E", byte="E"),
    Form("c7 /0", "", "E"),
    Form("c9", "rbp", "rbp"),
    Form("0f b6", "E", "G", byte="E"),
    Form("0f b7", "E", "G"),
    Form("0f be", "E", "G", byte="E"),
    Form("0f bf", "E", "G"),
    Form("0f c3", "G", "E"),
    Form("0f c8-cf", "O", "O"),
)
_STRINGS: Final = (
    Form("a4-a5", "rsi rdi rcx"),
    Form("a6-a7", "rsi rdi rcx"),
    Form("aa-ab", "rax rdi rcx"),
    Form("ac-ad", "rax rsi rcx"),
    Form("ae-af", "rax rdi rcx"),
)
_NUMBERS: Final = (
    Form("69", "E", "G", "", "CO"),
    Form("6b", "E", "G", "", "CO"),
    Form("a8-a9", "rax", "", "", ARITHMETIC),
    Form("f6 /0-1", "E", "", "", ARITHMETIC, "E"),
    Form("f6 /2", "E", "E", byte="E"),
    Form("f6 /3", "E", "E", "", ARITHMETIC, "E"),
    Form("f6 /4-5", "E rax", "", "", "CO", "E"),
    Form("f6 /6-7", "E rax", byte="E"),
    Form("f7 /0-1", "E", "", "", ARITHMETIC),
    Form("f7 /2", "E", "E"),
    Form("f7 /3", "E", "E", "", ARITHMETIC),
    Form("f7 /4-5", "E rax", "rax rdx", "", "CO"),
    Form("f7 /6-7", "E rax rdx", "rax rdx"),
    Form("fe /0-1", "E", "E", "", "PAZSO", "E"),
    Form("ff /0-1", "E", "E", "", "PAZSO"),
    Form("f5", "", "", "C", "C"),
    Form("f8-f9", "", "", "", "C"),
    Form("fa-fd"),  # cli, sti, cld, std
    Form("0f a3", "E G", "", "", "C"),
    Form("0f ab", "E G", "E", "", "C"),
    Form("0f b3", "E G", "E", "", "C"),
    Form("0f bb", "E G", "E", "", "C"),
    Form("0f ba /4", "E", "", "", "C"),
    Form("0f ba /5-7", "E", "E", "", "C"),
    Form("0f a4", "E G", "E"),
    Form("0f ac", "E G", "E"),
    Form("0f a5", "E G rcx", "E"),
    Form("0f ad", "E G rcx", "E"),
    Form("0f af", "G E", "G", "", "CO"),
    Form("0f b0", "E G rax", "E", "", ARITHMETIC, "E G"),
    Form("0f b1", "E G rax", "", "", ARITHMETIC),
    Form("0f c0", "E G", "E G", "", ARITHMETIC, "E G"),
    Form("0f c1", "E G", "E G", "", ARITHMETIC),
    Form("0f c7 /1 mem", "rax rbx rcx rdx", "", "", "Z"),
    Form("0f b8", "E", "G", "", ARITHMETIC, needs=Prefix.REP),  # popcnt
    Form("0f bc-bd", "G E", "G", "", "Z"),  # bsf and bsr leave the register if there is no bit; tzcnt, lzcnt
)
_CONTROL: Final = (
    Form("e0-e1", "rcx", "rcx", "Z"),
    Form("e2", "rcx", "rcx"),
    Form("e3", "rcx"),
    Form("e8-e9"),
    Form("eb"),
    Form("ff /2", "E"),
    Form("ff /4", "E"),
    Form("ff /6", "E"),
    Form("ec", "rdx rax"),
    Form("ed", "rdx rax", "rax"),
    Form("ee-ef", "rdx rax"),
    Form("0f 0d", has_address=False),
    Form("0f 18-1f", has_address=False),  # hints, endbr64, nop
    Form("0f 31", "", "rax rdx"),  # rdtsc
    Form("0f a2", "rax rcx", "rax rbx rcx rdx"),  # cpuid
    Form("0f ae e8-ff", forbids=Prefix.REP | Prefix.REPNE | Prefix.OPERAND),  # fences
    Form("0f 01 f9", "", "rax rcx rdx"),  # rdtscp
)
# SSE, where no general register is but in the address.
_VECTORS: Final = (
    Form("0f 10-17"),
    Form("0f 28-29"),
    Form("0f 2a", "E"),
    Form("0f 2c-2d", "", "G", needs=Prefix.REP | Prefix.REPNE),
    Form("0f 2e-2f", "", "", "", ARITHMETIC),
    Form("0f 51-6d"),
    Form("0f 6e", "E"),
    Form("0f 6f-76"),
    Form("0f 7e", "", "E", forbids=Prefix.REP),
    Form("0f 7f"),
    Form("0f c2"),
    Form("0f c6"),
    Form("0f d0-d6"),
    Form("0f d8-f6"),
    Form("0f f8-fe"),
)
_FORMS: Final = (
    Form("", "unknown"),
    *_arithmetic(), *_conditional(), *_shifts(), *_MOVES, *_STRINGS, *_NUMBERS, *_CONTROL, *_VECTORS,
)  # fmt: skip


def _lookup() -> NDArray[np.uint16]:
    """Opcode and ModRM -> the row of their form; 0 is none."""
    found = np.zeros_like(opcode_cells("00"), np.uint16)
    for row in range(len(_FORMS) - 1, 0, -1):
        for code in _codes(_FORMS[row].code):
            found[opcode_cells(code)] = row
    return found.reshape(-1)


def _codes(code: str) -> list[str]:
    """One code for each digit of a range ``/first-last``."""
    head, _, digits = code.partition(" /")
    first, dash, last = digits.partition("-")
    if not dash:
        return [code]
    last, _, rest = last.partition(" ")
    return [f"{head} /{digit} {rest}".strip() for digit in range(int(first), int(last) + 1)]


def _fixed(texts: list[str]) -> NDArray[np.uint32]:
    return np.array([sum(_REGISTERS[word] for word in text.split() if word in _REGISTERS) for text in texts], np.uint32)


def _flags(texts: list[str]) -> NDArray[np.uint32]:
    return np.array([sum(FLAGS[letter] for letter in text) for text in texts], np.uint32)


_LOOKUP: Final = _lookup()
_NEEDS: Final = np.array([form.needs for form in _FORMS], np.uint16)
_FORBIDS: Final = np.array([form.forbids for form in _FORMS], np.uint16)
# By the row of a form: fixed registers, flags, whether the flags depend on an immediate, whether the address is read.
READS: Final = _fixed([form.reads for form in _FORMS])
WRITES: Final = _fixed([form.writes for form in _FORMS])
TESTS: Final = _flags([form.tests for form in _FORMS])
SETS: Final = _flags([form.sets for form in _FORMS])
IS_COUNTED: Final = np.array([form.is_counted for form in _FORMS])
HAS_ADDRESS: Final = np.array([form.has_address for form in _FORMS])
OPERANDS: Final = "EGO"
# By operand and row: whether it is read, written, one byte wide.
IS_READ, IS_WRITTEN, IS_BYTE = (
    np.array([[name in text.split() for text in texts] for name in OPERANDS])
    for texts in zip(*((form.reads, form.writes, form.byte) for form in _FORMS), strict=True)
)


def form_rows(opcode: NDArray[np.intp], modrm: NDArray[np.uint8], prefixes: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """The row of each instruction's form; 0 where nothing is known."""
    found = _LOOKUP.take(opcode << 8 | modrm)
    wrong = (_NEEDS.take(found) != 0) & ((_NEEDS.take(found) & prefixes) == 0)
    wrong |= (_FORBIDS.take(found) & prefixes) != 0
    found[wrong] = 0
    return found
