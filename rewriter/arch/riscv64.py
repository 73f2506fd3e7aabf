"""riscv64: code bytes -> classified instructions; sites -> trampolines.

Chapters "RV32I", "Zicsr", ... are of The RISC-V Instruction Set Manual (20240411), volume I; "Privileged" is volume II.
Instructions are 2 or 4 bytes, told apart by their lowest two bits, so boundaries come first (`_starts`).
"""

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.dissector import Trampolines
from kinst.rewriter.arch.exclusive import Exclusives
from kinst.rewriter.arch.patterns import Immediate, Pattern, PatternTable
from kinst.rewriter.arch.sweep import Block, Rules, sweep, units, units_at
from kinst.rewriter.relocations import References, no_references
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.riscv64 import C_NOP, EBREAK, RISCV64, Kind
from kinst.targets.instruction import Flow, Instructions, Reason, Verdict

IMM_I = Immediate(((20, 12, 0),), 12)
IMM_S = Immediate(((7, 5, 0), (25, 7, 5)), 12)
IMM_B = Immediate(((8, 4, 1), (25, 6, 5), (7, 1, 11), (31, 1, 12)), 13)  # branches: +-4 KiB
IMM_U = Immediate(((12, 20, 12),), 32)
IMM_J = Immediate(((21, 10, 1), (20, 1, 11), (12, 8, 12), (31, 1, 20)), 21)  # jal: +-1 MiB
IMM_CJ = Immediate(((3, 3, 1), (11, 1, 4), (2, 1, 5), (7, 1, 6), (6, 1, 7), (9, 2, 8), (8, 1, 10), (12, 1, 11)), 12)
IMM_CB = Immediate(((3, 2, 1), (10, 2, 3), (2, 1, 5), (5, 2, 6), (12, 1, 8)), 9)
IMM_CI = Immediate(((2, 5, 0), (12, 1, 5)), 6)  # c.addi, c.li; c.lui has it 12 bits higher


def _emulated(name: str, encoding: str, kind: Kind, flow: Flow = Flow.NEXT, target: Immediate | None = None) -> Pattern:
    return Pattern(name, encoding, kind, Verdict.EMULATE, Reason.NONE, flow, target)


def _copied(name: str, encoding: str, kind: Kind = Kind.OTHER) -> Pattern:
    return Pattern(name, encoding, kind)


def _refused(name: str, encoding: str, kind: Kind, reason: Reason, flow: Flow = Flow.NEXT) -> Pattern:
    return Pattern(name, encoding, kind, Verdict.REFUSE, reason, flow)


# RV32I 2.5 Control transfer, 2.4 Integer computational instructions; RV64I 4.3 Loads and stores
#
#   31  30      21   20   19      12 11 7 6     0        31 30    25 24 20 19 15 14    12 11   8   7   6     0
#  |20 | imm10:1  | 11 | imm19:12  | rd | 1101111 |     |12 | imm10:5 | rs2 | rs1 | funct3 | imm4:1 | 11 | 1100011 |
#
#   31    20 19 15 14 12 11 7 6     0                     31      12 11 7 6     0
#  | imm11:0 | rs1 | 000 | rd | 1100111 |  jalr          | imm31:12 | rd | 0010111 |  auipc
#
# ra (x1) is the link register; a jalr by t0 (x5), the alternate one, returns from millicode to inside a function. lpad
# (Zicfilp) is auipc x0: after an indirect jump hardware takes nothing else.
_CONTROL = (
    _emulated("j", "-:20 00000 1101111", Kind.JAL, Flow.JUMP, IMM_J),
    _emulated("jal", "-:20 rd:5 1101111", Kind.JAL, Flow.CALL, IMM_J),
    _emulated("ret", "000000000000 00001 000 00000 1100111", Kind.JALR, Flow.RETURN),
    _emulated("jr", "imm:12 rs1:5 000 00000 1100111", Kind.JALR, Flow.INDIRECT_JUMP),
    _emulated("jalr", "imm:12 rs1:5 000 rd:5 1100111", Kind.JALR, Flow.INDIRECT_CALL),
    _emulated("beq", "imm:7 rs2:5 rs1:5 000 imm:5 1100011", Kind.BEQ, Flow.BRANCH, IMM_B),
    _emulated("bne", "imm:7 rs2:5 rs1:5 001 imm:5 1100011", Kind.BNE, Flow.BRANCH, IMM_B),
    _emulated("blt", "imm:7 rs2:5 rs1:5 100 imm:5 1100011", Kind.BLT, Flow.BRANCH, IMM_B),
    _emulated("bge", "imm:7 rs2:5 rs1:5 101 imm:5 1100011", Kind.BGE, Flow.BRANCH, IMM_B),
    _emulated("bltu", "imm:7 rs2:5 rs1:5 110 imm:5 1100011", Kind.BLTU, Flow.BRANCH, IMM_B),
    _emulated("bgeu", "imm:7 rs2:5 rs1:5 111 imm:5 1100011", Kind.BGEU, Flow.BRANCH, IMM_B),
    _refused("reserved branch", "-:25 1100011", Kind.UNDECODABLE, Reason.UNDECODABLE, Flow.STOP),
    _refused("reserved jump", "-:25 1100111", Kind.UNDECODABLE, Reason.UNDECODABLE, Flow.STOP),
    _refused("lpad", "imm:20 00000 0010111", Kind.LANDING_PAD, Reason.LANDING_PAD),
    _emulated("auipc", "imm:20 rd:5 0010111", Kind.AUIPC),
    _emulated("addi", "imm:12 rs1:5 000 rd:5 0010011", Kind.ADDI),
    _emulated("lui", "imm:20 rd:5 0110111", Kind.LUI),
    _emulated("sd to the stack", "imm:7 rs2:5 00010 011 imm:5 0100011", Kind.SD_SP),
)

# "A" 14.2 Load-reserved/store-conditional: a trap between the two may clear the reservation, and the store-conditional
# never succeeds. An amo does everything at once.
_ATOMICS = (
    _refused("lr", "00010 aq:1 rl:1 00000 rs1:5 01. rd:5 0101111", Kind.LOAD_RESERVED, Reason.EXCLUSIVE),
    _refused("sc", "00011 aq:1 rl:1 rs2:5 rs1:5 01. rd:5 0101111", Kind.STORE_CONDITIONAL, Reason.EXCLUSIVE),
    _copied("amo", "-:25 0101111", Kind.ATOMIC),
)

# Privileged 3.3, 10.4; Zicsr 6.1
#
#   31      20 19 15 14    12 11 7 6     0
#  | funct12  | rs1 | funct3 | rd | 1110011 |    funct3: 0 privileged, 4 hypervisor loads and stores and mop, else csr*
#
# sfence.vma and its kin are copied: the trampoline is mapped wherever the site is. So is wfi: it wakes for an interrupt
# that is masked globally, which is taken when the trampoline is left. The status registers hold the interrupt flag,
# which is clear in a trampoline. csrrs and csrrc with rs1 = x0 (or an immediate of 0) only read.
_SYSTEM = (
    _refused("ecall", "000000000000 00000 000 00000 1110011", Kind.SYSTEM_CALL, Reason.SYSTEM_CALL),
    _refused("ebreak", "000000000001 00000 000 00000 1110011", Kind.BREAKPOINT, Reason.BREAKPOINT),
    _copied("wfi", "000100000101 00000 000 00000 1110011", Kind.WAIT),
    *(
        _refused(name, f"{funct12} 00000 000 00000 1110011", Kind.EXCEPTION_RETURN, Reason.PRIVILEGED_FLOW, Flow.STOP)
        for name, funct12 in (
            ("uret", "000000000010"),
            ("sret", "000100000010"),
            ("mret", "001100000010"),
            ("mnret", "011100000010"),
            ("dret", "011110110010"),
        )
    ),
    *(
        _refused(f"csr* {name}", f"{csr} rs1:5 {funct3} rd:5 1110011", Kind.STATUS_CSR, Reason.INTERRUPT_FLAG)
        for name, csr in (
            ("ustatus", "000000000000"),
            ("sstatus", "000100000000"),
            ("vsstatus", "001000000000"),
            ("mstatus", "001100000000"),
            ("mnstatus", "011101000100"),
        )
        for funct3 in (".01", ".1.")
    ),
    _copied("csr read", "csr:12 00000 .1. rd:5 1110011"),
    # What assemblers emit for unimp: a write to the read-only counter cycle.
    _refused("unimp", "110000000000 00000 001 00000 1110011", Kind.UNDECODABLE, Reason.UNDECODABLE, Flow.STOP),
    *(
        _refused(f"csr write {name}", f"{csr} rs1:5 {funct3} rd:5 1110011", Kind.TRANSLATION_CSR, Reason.TRANSLATION)
        for name, csr in (("satp", "000110000000"), ("vsatp", "001010000000"), ("hgatp", "011010000000"))
        for funct3 in (".01", ".1.")
    ),
    *(
        _refused(f"csr write {name}", f"{csr} rs1:5 {funct3} rd:5 1110011", Kind.VECTOR_CSR, Reason.TRAP_PATH)
        for name, csr in (("stvec", "000100000101"), ("vstvec", "001000000101"), ("mtvec", "001100000101"))
        for funct3 in (".01", ".1.")
    ),
)

# RV32/64G opcode map: 11010 is reserved. custom-0 to custom-3 may hold a vendor's branches. Everything else runs the
# same at any address.
_REST = (
    _refused("custom-0, custom-1", "-:25 0.01011", Kind.OTHER, Reason.UNSUPPORTED),
    _refused("custom-2, custom-3", "-:25 1.11011", Kind.OTHER, Reason.UNSUPPORTED),
    _refused("reserved opcode", "-:25 1101011", Kind.UNDECODABLE, Reason.UNDECODABLE, Flow.STOP),
    _copied("other", "-:32"),
)
TABLE = PatternTable((*_CONTROL, *_ATOMICS, *_SYSTEM, *_REST), width=32, key=((0, 7), (12, 3), (7, 5)))

# "C" 26.2..26.8 Compressed instructions
#
#   15  13 12                      2 1  0        15  13 12     10 9  7 6           2 1  0
#  | funct3 | imm11|4|9:8|10|6|7|3:1|5 | 01 |    | funct3 | imm8|4:3 | rs1' | imm7:6|2:1|5 | 01 |
#    c.j                                           c.beqz, c.bnez
#
#   15  13  12   11 7 6      2 1  0               15  12 11  7 6   2 1  0
#  | funct3 | imm5 | rd | imm4:0 | op |          | funct4 | rd | rs2 | 10 |
#    c.addi, c.li, c.lui                           c.jr, c.mv, c.jalr, c.add
#
# c.jal does not exist on RV64. What a later extension may define (Zcb, Zcmop) is copied: the CPU decides.
COMPRESSED = PatternTable(
    (
        _refused("illegal", "000 00000000 000 00", Kind.UNDECODABLE, Reason.UNDECODABLE, Flow.STOP),
        _refused("reserved c.addi4spn", "000 00000000 rd:3 00", Kind.UNDECODABLE, Reason.UNDECODABLE, Flow.STOP),
        _emulated("c.addi4spn", "000 imm:8 rd:3 00", Kind.C_ADDI4SPN),
        _emulated("c.nop", "000 imm:1 00000 imm:5 01", Kind.C_NOP),
        _emulated("c.addi", "000 imm:1 rd:5 imm:5 01", Kind.C_ADDI),
        _refused("reserved c.addiw", "001 imm:1 00000 imm:5 01", Kind.UNDECODABLE, Reason.UNDECODABLE, Flow.STOP),
        _emulated("c.li", "010 imm:1 rd:5 imm:5 01", Kind.C_LI),
        _copied("c.mop", "011 0 00 n:2 1 00000 01"),
        _refused("reserved c.lui", "011 0 rd:5 00000 01", Kind.UNDECODABLE, Reason.UNDECODABLE, Flow.STOP),
        _emulated("c.addi16sp", "011 imm:1 00010 imm:5 01", Kind.C_ADDI16SP),
        _emulated("c.lui", "011 imm:1 rd:5 imm:5 01", Kind.C_LUI),
        _emulated("c.j", "101 imm:11 01", Kind.C_J, Flow.JUMP, IMM_CJ),
        _emulated("c.beqz", "110 imm:3 rs1:3 imm:5 01", Kind.C_BEQZ, Flow.BRANCH, IMM_CB),
        _emulated("c.bnez", "111 imm:3 rs1:3 imm:5 01", Kind.C_BNEZ, Flow.BRANCH, IMM_CB),
        _refused("reserved c.lwsp", "010 imm:1 00000 imm:5 10", Kind.UNDECODABLE, Reason.UNDECODABLE, Flow.STOP),
        _refused("reserved c.ldsp", "011 imm:1 00000 imm:5 10", Kind.UNDECODABLE, Reason.UNDECODABLE, Flow.STOP),
        _refused("reserved c.jr", "100 0 00000 00000 10", Kind.UNDECODABLE, Reason.UNDECODABLE, Flow.STOP),
        _emulated("c.jr ra", "100 0 00001 00000 10", Kind.C_JR, Flow.RETURN),
        _emulated("c.jr", "100 0 rs1:5 00000 10", Kind.C_JR, Flow.INDIRECT_JUMP),
        _emulated("c.mv", "100 0 rd:5 rs2:5 10", Kind.C_MV),
        _refused("c.ebreak", "100 1 00000 00000 10", Kind.BREAKPOINT, Reason.BREAKPOINT),
        _emulated("c.jalr", "100 1 rs1:5 00000 10", Kind.C_JALR, Flow.INDIRECT_CALL),
        _emulated("c.sdsp", "111 imm:6 rs2:5 10", Kind.C_SDSP),
        # 1.5 Base instruction-length encoding: ``11111`` begins 48 bits and more, of which none is defined. Other first
        # halves appear here only if the function ends before the second half.
        _refused("long", "-:11 111 11", Kind.UNDECODABLE, Reason.UNDECODABLE, Flow.STOP),
        _refused("cut off", "-:14 11", Kind.UNDECODABLE, Reason.UNDECODABLE, Flow.STOP),
        _copied("other", "-:16"),
    ),
    width=16,
    key=((0, 16),),
)

# Both tables as one: rows of COMPRESSED follow those of TABLE.
_SHORT = len(TABLE.patterns)
_KIND, _VERDICT, _REASON, _FLOW = (
    np.concatenate((getattr(TABLE, column), getattr(COMPRESSED, column)))
    for column in ("kind", "verdict", "reason", "flow")
)
_EXCLUSIVES = Exclusives(opens=(Kind.LOAD_RESERVED,), closes=(Kind.STORE_CONDITIONAL,))
_RULES = Rules(unit=2, data=Kind.UNDECODABLE, exclusives=_EXCLUSIVES)


class Riscv64Dissector:
    """The dissector of RV64GC: one row per instruction of 2 or 4 bytes."""

    @property
    def facts(self) -> ArchFacts:
        """The facts of riscv64."""
        return RISCV64

    def dissect(self, code: NDArray[np.uint8], address: int, ranges: NDArray[np.int64]) -> Instructions:
        """Classify every instruction of `ranges`; see `Dissector.dissect`."""
        return sweep(_decode, _RULES, code, address, ranges)

    def slot_counts(self, sites: Instructions, span: tuple[int, int]) -> NDArray[np.uint8]:
        """One each: a breakpoint that ends a trampoline does so wherever it is."""
        return np.ones(len(sites), np.uint8)

    def trampolines(self, sites: Instructions, original: NDArray[np.uint8], slots: NDArray[np.uint64]) -> Trampolines:
        """``[insn][ebreak]`` or ``[insn][c.nop][ebreak]``: the breakpoint is at +4. Of an emulated one: all ebreak."""
        code = np.tile(np.frombuffer(EBREAK, np.uint8), (len(sites), 2))
        copied = sites.verdict == Verdict.COPY
        code[copied, :2] = original[copied, :2]
        code[copied & (sites.size == 2), 2:4] = np.frombuffer(C_NOP, np.uint8)
        whole = copied & (sites.size == 4)
        code[whole, 2:4] = original[whole, 2:4]
        return Trampolines(code, np.zeros(len(sites), np.uint8))

    def references(self, sites: NDArray[np.void]) -> References:
        """None: what is copied refers to no place, and a breakpoint ends the trampoline."""
        return no_references()


def _decode(code: NDArray[np.uint8], address: int, ranges: NDArray[np.int64]) -> Block:
    offsets, function = units(address, ranges, 2)
    halves = units_at(code, offsets, 2)
    is_long, starts = _boundaries(halves, function)
    at = np.flatnonzero(starts)
    is_long, words, offsets, function = is_long[at], halves[at], offsets[at], function[at]
    words[is_long] |= halves[at[is_long] + 1] << np.uint32(16)
    addresses = offsets.astype(np.uint64) + np.uint64(address)
    rows, target = _match(words, is_long, addresses)
    flow = _FLOW[rows]
    loads, loaded = _join_pairs(words, rows, function, addresses, target, flow)
    found = Instructions(
        address=addresses,
        target=target,
        function=function,
        size=np.where(is_long, np.uint8(4), np.uint8(2)),
        kind=_KIND[rows],
        flow=flow,
        verdict=_VERDICT[rows],
        reason=_REASON[rows],
    )
    return Block(found, loads, loaded)


def _boundaries(halves: NDArray[np.uint32], function: NDArray[np.int32]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which halfwords look like the first half of 4 bytes, and which begin an instruction.

    This needs no loop. After a halfword that does not look like a first half, an instruction always begins. In a run of
    halfwords that all look like a first half, every second one begins an instruction, from the start of the run.
    """
    looks_long = ((halves & 3) == 3) & ((halves & 0x1F) != 0x1F)
    last = np.append(function[1:] != function[:-1], np.True_)[: len(halves)]
    looks_long &= ~last
    place = np.arange(len(halves), dtype=np.int32)
    synchronised = np.ones(len(halves), np.bool_)
    synchronised[1:] = ~looks_long[:-1] | last[:-1]
    run_start = np.maximum.accumulate(np.where(synchronised, place, 0))
    return looks_long, ((place - run_start) & 1) == 0


def _match(
    words: NDArray[np.uint32], is_long: NDArray[np.bool_], addresses: NDArray[np.uint64]
) -> tuple[NDArray[np.uint16], NDArray[np.uint64]]:
    """Rows of the joined tables, and targets."""
    rows, target = np.empty(len(words), np.uint16), np.empty(len(words), np.uint64)
    for table, chosen, first_row in ((TABLE, is_long, 0), (COMPRESSED, ~is_long, _SHORT)):
        at = np.flatnonzero(chosen)
        found = table.match(words[at])
        rows[at] = found + np.uint16(first_row)
        target[at] = table.targets(found, words[at], addresses[at])
    return rows, target


def _join_pairs(
    words: NDArray[np.uint32],
    rows: NDArray[np.uint16],
    function: NDArray[np.int32],
    addresses: NDArray[np.uint64],
    target: NDArray[np.uint64],
    flow: NDArray[np.uint8],
) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    """Fill `target` and `flow` of the second of each auipc pair; return the rows that load, and how many bytes.

    Farther than 1 MiB, a call is ``auipc ra`` and ``jalr ra, imm(ra)``, a tail call the same with t1, a load from a
    constant pool ``auipc`` and ``ld``. Only neighbours are joined: then nothing but the auipc can have set the
    register.
    """
    first = np.flatnonzero((_KIND[rows[:-1]] == Kind.AUIPC) & (function[1:] == function[:-1]))
    second, base = first + 1, words[first]
    word = words[second]
    same = ((base >> np.uint32(7)) & 31) == ((word >> np.uint32(15)) & 31)
    opcode = word & 0x7F
    jumps, loads = same & (_KIND[rows[second]] == Kind.JALR), same & ((opcode == 0b0000011) | (opcode == 0b0000111))
    reached = IMM_U.of(base.astype(np.int64)) + IMM_I.of(word.astype(np.int64))
    address = addresses[first] + reached.view(np.uint64)
    target[second[jumps]] = address[jumps] & ~np.uint64(1)
    target[second[loads]] = address[loads]
    calls = flow[second[jumps]] == Flow.INDIRECT_CALL
    flow[second[jumps]] = np.where(calls, np.uint8(Flow.CALL), np.uint8(Flow.JUMP))
    return second[loads], np.uint8(1) << (word[loads] >> np.uint32(12) & 3).astype(np.uint8)


DISSECTOR = Riscv64Dissector()
