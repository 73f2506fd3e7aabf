"""arm64: code bytes -> classified instructions; sites -> trampolines. Sections "C4.x" are of the Arm ARM, DDI 0487.

Bits 28..25 of a word select one of the groups below. The branch and system group is listed in full: a word that is not
in the list may depend on its own address on some newer CPU, and is refused.
"""

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.arch.dissector import Trampolines
from kinst.rewriter.arch.exclusive import Exclusives
from kinst.rewriter.arch.patterns import Immediate, Pattern, PatternTable
from kinst.rewriter.arch.sweep import Block, Rules, sweep, units, units_at
from kinst.rewriter.relocations import References, no_references
from kinst.targets.arch.arm64 import ARM64, Kind
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.instruction import Flow, Instructions, Reason, Verdict

IMM26 = Immediate(((0, 26, 2),), 28)  # b, bl: +-128 MiB
IMM19 = Immediate(((5, 19, 2),), 21)  # b.cond, cbz, literal loads: +-1 MiB
IMM14 = Immediate(((5, 14, 2),), 16)  # tbz: +-32 KiB
IMM21 = Immediate(((29, 2, 0), (5, 19, 2)), 21)  # adr: immhi:immlo
IMM21_PAGE = Immediate(((29, 2, 12), (5, 19, 14)), 33, page=4096)  # adrp


def _emulated(
    name: str, encoding: str, kind: Kind, flow: Flow = Flow.NEXT, target: Immediate | None = None, reads: int = 0
) -> Pattern:
    return Pattern(name, encoding, kind, Verdict.EMULATE, Reason.NONE, flow, target, reads)


def _copied(name: str, encoding: str, kind: Kind = Kind.OTHER) -> Pattern:
    return Pattern(name, encoding, kind)


def _refused(name: str, encoding: str, kind: Kind, reason: Reason, flow: Flow = Flow.NEXT) -> Pattern:
    return Pattern(name, encoding, kind, Verdict.REFUSE, reason, flow)


# C4.1.93 Branches, exception generating and system instructions (bits 28..26 = 101)
#
#   31 30    26 25                        0        31     25 24 23          5  4  3  0
#  | op | 00101 |          imm26           |      | 0101010 | 0 |   imm19   | C | cond |  C: bc.cond, a hint only
#
#   31  30   25  24  23           5 4   0          31  30   25  24  23 19 18        5 4   0
#  | sf | 011010 | op |   imm19    | Rt  |        | b5 | 011011 | op | b40 |  imm14  |  Rt |
_IMMEDIATE_BRANCHES = (
    _emulated("b", "0 00101 imm26:26", Kind.B, Flow.JUMP, IMM26),
    _emulated("bl", "1 00101 imm26:26", Kind.BL, Flow.CALL, IMM26),
    _emulated("b.cond", "0101010 0 imm19:19 C:1 cond:4", Kind.B_COND, Flow.BRANCH, IMM19),
    _emulated("cbz", "sf:1 011010 0 imm19:19 Rt:5", Kind.CBZ, Flow.BRANCH, IMM19),
    _emulated("cbnz", "sf:1 011010 1 imm19:19 Rt:5", Kind.CBNZ, Flow.BRANCH, IMM19),
    _emulated("tbz", "b5:1 011011 0 b40:5 imm14:14 Rt:5", Kind.TBZ, Flow.BRANCH, IMM14),
    _emulated("tbnz", "b5:1 011011 1 b40:5 imm14:14 Rt:5", Kind.TBNZ, Flow.BRANCH, IMM14),
    # FEAT_CMPBR (Armv9.6): compares two registers, or one with an immediate, and branches.
    _refused("cb<cond>", "sf:1 111010 -:25", Kind.OTHER, Reason.UNSUPPORTED, Flow.BRANCH),
)

#   31     25 24  21 20   16 15     10 9  5 4   0
#  | 1101011 |  opc | 11111 |   op3   | Rn |  op4 |    op3 = 00001M: pointer authentication with key A or B
#
# The authenticating forms check a signature with keys that a trap frame does not hold, by an algorithm that differs
# from CPU to CPU: computed as plain branches they would let a forged pointer pass, copied they would never come back
# from the trampoline.
_REGISTER_BRANCHES = (
    _emulated("br", "1101011 0000 11111 000000 Rn:5 00000", Kind.BR, Flow.INDIRECT_JUMP),
    _emulated("blr", "1101011 0001 11111 000000 Rn:5 00000", Kind.BLR, Flow.INDIRECT_CALL),
    _emulated("ret", "1101011 0010 11111 000000 Rn:5 00000", Kind.RET, Flow.RETURN),
    *(
        _refused(name, encoding, kind, Reason.AUTHENTICATED, flow)
        for name, encoding, kind, flow in (
            ("braaz", "1101011 0000 11111 00001 M:1 Rn:5 11111", Kind.BR_AUTHENTICATED, Flow.INDIRECT_JUMP),
            ("braa", "1101011 1000 11111 00001 M:1 Rn:5 Rm:5", Kind.BR_AUTHENTICATED, Flow.INDIRECT_JUMP),
            ("blraaz", "1101011 0001 11111 00001 M:1 Rn:5 11111", Kind.BLR_AUTHENTICATED, Flow.INDIRECT_CALL),
            ("blraa", "1101011 1001 11111 00001 M:1 Rn:5 Rm:5", Kind.BLR_AUTHENTICATED, Flow.INDIRECT_CALL),
            # FEAT_PAuth_LR: Rm other than 31 is retaasppcr; retaasppc encodes how far back the pointer was signed.
            ("retaa", "1101011 0010 11111 00001 M:1 11111 Rm:5", Kind.RET_AUTHENTICATED, Flow.RETURN),
            ("retaasppc", "0101010 1 00 M:1 imm16:16 11111", Kind.RET_AUTHENTICATED, Flow.RETURN),
        )
    ),
    _refused("eret", "1101011 0100 11111 000000 11111 00000", Kind.EXCEPTION_RETURN, Reason.PRIVILEGED_FLOW, Flow.STOP),
    _refused(
        "eretaa", "1101011 0100 11111 00001. 11111 11111", Kind.EXCEPTION_RETURN, Reason.PRIVILEGED_FLOW, Flow.STOP
    ),
    _refused("drps", "1101011 0101 11111 000000 11111 00000", Kind.EXCEPTION_RETURN, Reason.PRIVILEGED_FLOW, Flow.STOP),
)

#   31      24 23 21 20    5 4 2 1 0
#  | 11010100 | opc | imm16 | op2 |LL |   an exception is taken at the trampoline but its return address is the site's
_EXCEPTIONS = (
    _refused("svc", "11010100 000 imm16:16 000 01", Kind.SYSTEM_CALL, Reason.SYSTEM_CALL),
    _refused("hvc, smc", "11010100 000 imm16:16 000 1.", Kind.SYSTEM_CALL, Reason.SYSTEM_CALL),
    _refused("brk", "11010100 001 imm16:16 000 00", Kind.BRK, Reason.BREAKPOINT),
    _refused("hlt", "11010100 010 imm16:16 000 00", Kind.HLT, Reason.BREAKPOINT),
    _refused("tcancel", "11010100 011 imm16:16 000 00", Kind.TRANSACTION, Reason.UNSUPPORTED),
    _refused("dcps", "11010100 101 imm16:16 000 LL:2", Kind.DEBUG_STATE, Reason.PRIVILEGED_FLOW),
)

#   31              19 18 16 15 12 11  8 7  5 4   0
#  | 11010101 00000  | op1  | CRn | CRm | op2 | 11111 |    hints: op1 = 011, CRn = 0010; PSTATE fields: CRn = 0100
#
# bti is a landing pad: hardware checks BTYPE against it. brk passes that check whatever BTYPE is, and paciasp's own
# check is made again in its trampoline, with SPSR.BTYPE intact: so paciasp and pacibsp, where the functions of a
# pac-ret kernel begin, are copied; they depend on x30 and sp only. bti is not worth a probe: the instruction after it
# is as good. wfi and wfe may be copied: they wake for a masked interrupt too, which is then taken when the trampoline
# is left.
_HINTS_AND_BARRIERS = (
    _emulated("nop", "11010101 00000 011 0010 0000 000 11111", Kind.NOP),
    _copied("wfe, wfi", "11010101 00000 011 0010 0000 01. 11111", Kind.WAIT),
    _copied("paciasp, pacibsp", "11010101 00000 011 0010 0011 0.1 11111", Kind.PACIXSP),
    _refused("bti", "11010101 00000 011 0010 0100 ..0 11111", Kind.BTI, Reason.LANDING_PAD),
    _copied("hint", "11010101 00000 011 0010 CRm:4 op2:3 11111"),
    _copied("wfet, wfit", "11010101 00000 011 0001 0000 00. Rd:5", Kind.WAIT),
    _copied("clrex", "11010101 00000 011 0011 CRm:4 010 11111", Kind.CLREX),
    _refused("tcommit", "11010101 00000 011 0011 0000 011 11111", Kind.TRANSACTION, Reason.UNSUPPORTED),
    _copied("dsb nxs", "11010101 00000 011 0011 CRm:2 10 001 11111"),
    _copied("dsb, dmb, isb, sb", "11010101 00000 011 0011 CRm:4 1.. 11111"),
    _refused("tstart, ttest", "11010101 00100 011 0011 000. 011 Rt:5", Kind.TRANSACTION, Reason.UNSUPPORTED),
    _refused(
        "msr daifset, daifclr", "11010101 00000 011 0100 imm:4 11. 11111", Kind.INTERRUPT_MASK, Reason.INTERRUPT_FLAG
    ),
    _refused("msr allint", "11010101 00000 001 0100 000. 000 11111", Kind.INTERRUPT_MASK, Reason.INTERRUPT_FLAG),
    _copied("msr <pstate>", "11010101 00000 op1:3 0100 imm:4 op2:3 11111"),
)

#   31      23 22  21 20 19 18 16 15 12 11  8 7  5 4  0
#  | 11010101 0 | w | L | op0 | op1 | CRn | CRm | op2 | Rt |    op0 = 1: system instructions; 2, 3: registers; L: read
#
# w marks the 128-bit forms (sysp, msrr, mrrs), which reach the same registers. Reading a register that steers the
# machine is harmless. So are tlbi, dc, ic and at: the trampoline is mapped wherever the site is.
_SYSTEM_REGISTERS = (
    _refused("mrs, msr daif", "11010101 00 L:1 11 011 0100 0010 001 Rt:5", Kind.INTERRUPT_MASK, Reason.INTERRUPT_FLAG),
    _refused(
        "mrs, msr allint", "11010101 00 L:1 11 000 0100 0011 000 Rt:5", Kind.INTERRUPT_MASK, Reason.INTERRUPT_FLAG
    ),
    *(
        _refused(f"msr {name}", encoding, Kind.TRANSLATION_CONTROL, Reason.TRANSLATION)
        for name, encoding in (
            ("sctlr", "11010101 0. 0 11 op1:3 0001 0000 000 Rt:5"),
            ("sctlr2", "11010101 0. 0 11 op1:3 0001 0000 011 Rt:5"),
            ("ttbr, tcr", "11010101 0. 0 11 op1:3 0010 0000 0.. Rt:5"),
            ("vttbr, vtcr", "11010101 0. 0 11 100 0010 0001 0.0 Rt:5"),
            ("hcr_el2", "11010101 0. 0 11 100 0001 0001 000 Rt:5"),
        )
    ),
    _refused("msr vbar", "11010101 00 0 11 op1:3 1100 0000 000 Rt:5", Kind.VECTOR_BASE, Reason.TRAP_PATH),
    _copied("sys, sysl, sysp", "11010101 0. L:1 01 op1:3 CRn:4 CRm:4 op2:3 Rt:5"),
    _copied("msr, mrs", "11010101 0. L:1 1 o0:1 op1:3 CRn:4 CRm:4 op2:3 Rt:5"),
)

# C4.1.92 Data processing, immediate (bits 28..26 = 100)
#
#   31   30 29  28   24 23          5 4  0         31 30 29  28   24  23   22 21     10 9  5 4  0
#  | op | immlo | 10000 |   immhi    | Rd |       | sf | op | S | 100010 | sh |   imm12  | Rn | Rd |
#
#   31  30 29 28    23 22 21 20      5 4  0
#  | sf | opc | 100101 |  hw  |  imm16 | Rd |     sf = 0 with hw<1> is unallocated
_IMMEDIATE_ARITHMETIC = (
    _emulated("adr", "0 immlo:2 10000 immhi:19 Rd:5", Kind.ADR, target=IMM21),
    _emulated("adrp", "1 immlo:2 10000 immhi:19 Rd:5", Kind.ADRP, target=IMM21_PAGE),
    _emulated("add", "sf:1 0 0 100010 sh:1 imm12:12 Rn:5 Rd:5", Kind.ADD_IMMEDIATE),
    _emulated("sub", "sf:1 1 0 100010 sh:1 imm12:12 Rn:5 Rd:5", Kind.SUB_IMMEDIATE),
    _emulated("movn", "1 00 100101 hw:2 imm16:16 Rd:5", Kind.MOVN),
    _emulated("movn w", "0 00 100101 0 hw:1 imm16:16 Rd:5", Kind.MOVN),
    _emulated("movz", "1 10 100101 hw:2 imm16:16 Rd:5", Kind.MOVZ),
    _emulated("movz w", "0 10 100101 0 hw:1 imm16:16 Rd:5", Kind.MOVZ),
    # FEAT_PAuth_LR: the address of the signing instruction is part of the signature.
    _refused("autiasppc", "1 11 100111 0 M:1 imm16:16 11111", Kind.OTHER, Reason.AUTHENTICATED),
    _refused("paciasppc", "11011010110 00001 10100 M:1 11111 11110", Kind.OTHER, Reason.AUTHENTICATED),
    _refused("pacnbiasppc", "11011010110 00001 10000 M:1 11111 11110", Kind.OTHER, Reason.AUTHENTICATED),
)

# C4.1.94 Loads and stores (bits 27, 25 = 1, 0); C4.1.95 Data processing, register
#
#   31 30 29  27 26 25 24 23    5 4  0            31 30 29    24 23  22  21 20 16  15 14  10 9  5 4  0
#  | opc | 011 | V | 00 | imm19  | Rt |          | size | 001000 | o2 | L | o1 | Rs | o0 | Rt2 | Rn | Rt |
#
# Exclusives have o2 = 0; o1 makes a pair of them, in sizes 2 and 3 only: casp has sizes 0 and 1. The 001001 space holds
# the unprivileged ones of FEAT_LSUI. A trap clears the monitor, so no store-exclusive after it would ever succeed.
_LOADS_AND_STORES = (
    _emulated("ldr w, literal", "00 011 0 00 imm19:19 Rt:5", Kind.LDR_LITERAL_W, target=IMM19, reads=4),
    _emulated("ldr x, literal", "01 011 0 00 imm19:19 Rt:5", Kind.LDR_LITERAL_X, target=IMM19, reads=8),
    _emulated("ldrsw, literal", "10 011 0 00 imm19:19 Rt:5", Kind.LDRSW_LITERAL, target=IMM19, reads=4),
    _emulated("prfm, literal", "11 011 0 00 imm19:19 Rt:5", Kind.PRFM_LITERAL),
    _emulated("ldr s, literal", "00 011 1 00 imm19:19 Rt:5", Kind.LDR_LITERAL_S, target=IMM19, reads=4),
    _emulated("ldr d, literal", "01 011 1 00 imm19:19 Rt:5", Kind.LDR_LITERAL_D, target=IMM19, reads=8),
    _emulated("ldr q, literal", "10 011 1 00 imm19:19 Rt:5", Kind.LDR_LITERAL_Q, target=IMM19, reads=16),
    *(
        _refused(name, encoding, kind, Reason.EXCLUSIVE)
        for name, encoding, kind in (
            ("ldxr", "size:2 001000 0 1 0 Rs:5 o0:1 Rt2:5 Rn:5 Rt:5", Kind.LOAD_EXCLUSIVE),
            ("ldxp", "1 sz:1 001000 0 1 1 Rs:5 o0:1 Rt2:5 Rn:5 Rt:5", Kind.LOAD_EXCLUSIVE),
            ("ldtxr", "1 sz:1 001001 0 1 0 Rs:5 o0:1 Rt2:5 Rn:5 Rt:5", Kind.LOAD_EXCLUSIVE),
            ("stxr", "size:2 001000 0 0 0 Rs:5 o0:1 Rt2:5 Rn:5 Rt:5", Kind.STORE_EXCLUSIVE),
            ("stxp", "1 sz:1 001000 0 0 1 Rs:5 o0:1 Rt2:5 Rn:5 Rt:5", Kind.STORE_EXCLUSIVE),
            ("sttxr", "1 sz:1 001001 0 0 0 Rs:5 o0:1 Rt2:5 Rn:5 Rt:5", Kind.STORE_EXCLUSIVE),
        )
    ),
    # FEAT_MOPS (Armv8.8): prologue, main and epilogue stand next to each other. A system that moves a task to a CPU of
    # another kind goes back to the prologue: to 4 or 8 bytes before the fault, where a trampoline has something else.
    _refused("cpy*, set*", "-:2 011 o0:1 01 op1:2 0 Rs:5 op2:4 01 Rn:5 Rd:5", Kind.OTHER, Reason.SEQUENCE),
    # The first and the last instruction of a frame; sp may not be misaligned where SCTLR_ELx.SA is set.
    _emulated("stp, pre-index sp", "10 101 0 011 0 imm7:7 Rt2:5 11111 Rt:5", Kind.STP_PRE_SP),
    _emulated("ldp, post-index sp", "10 101 0 001 1 imm7:7 Rt2:5 11111 Rt:5", Kind.LDP_POST_SP),
    _emulated("mov, register", "sf:1 01 01010 00 0 Rm:5 000000 11111 Rd:5", Kind.MOV_REGISTER),
)

# C4.1 Top level: bits 28..25 = 0000 with bit 31 clear is reserved and holds udf, 0001 and 0011 are unallocated; what is
# left of the branch and system group is unallocated too, and so are the larger holes of the other groups. Everything
# else runs the same at any address.
_UNALLOCATED = (
    ("udf", "0 -:2 0000 -:25"),
    ("reserved", "-:3 00.1 -:25"),
    ("branch", "-:3 101. -:25"),
    # C4.1.92: tags and logical need 64 bits, N = sf; mov has no opc 01; bfm no opc 11.
    ("add with tag w", "0 .. 1000110 -:22"),
    ("adds with tag", ". .1 1000110 -:22"),
    ("logical immediate", "0 .. 100100 1 -:22"),
    ("move wide", ". 01 100101 -:23"),
    ("move wide w", "0 .. 100101 1 -:22"),
    ("bitfield", ". 11 100110 -:23"),
    ("bitfield w", "0 .. 100110 1 -:22"),
    ("bitfield x", "1 .. 100110 0 -:22"),
    ("extract", ". 01 100111 -:23"),
    ("extract o0", "... 100111 . 1 -:21"),
    ("extract w", "0 .. 100111 1 -:22"),
    ("extract x", "1 .. 100111 0 -:22"),
    # C4.1.95: shifts of a w register by 32 and more; add has no ror, its extends shift by 4 at most.
    ("logical shifted w", "0 .. 01010 -:8 1 -:15"),
    ("add shifted", "... 01011 11 0 -:21"),
    ("add shifted w", "0 .. 01011 .. 0 -:5 1 -:15"),
    ("add extended", "... 01011 .1 1 -:21"),
    ("add extended", "... 01011 1. 1 -:21"),
    ("add extended by 5", "... 01011 001 -:8 1.1 -:10"),
    ("add extended by 6", "... 01011 001 -:8 11. -:10"),
    ("compare without flags", "..0 11010010 -:21"),
    ("conditional select", "..1 11010100 -:21"),
    ("conditional select op2", "... 11010100 -:9 1 -:11"),
    ("three sources", ". 01 11011 -:24"),
    ("three sources op54", ". 1. 11011 -:24"),
    ("three sources w", "0 .. 11011 1 -:23"),
    # C4.1.94: vector literals have three sizes.
    ("vector literal", "11 011 1 -:26"),
)
_REST = (
    *(_refused(f"unallocated {n}", bits, Kind.UNALLOCATED, Reason.UNDECODABLE, Flow.STOP) for n, bits in _UNALLOCATED),
    _copied("other", "-:32"),
    _refused(
        "data", "-:32", Kind.UNALLOCATED, Reason.DATA, Flow.STOP
    ),  # never matched: a label for words that are read as data
)
TABLE = PatternTable(
    (
        *_IMMEDIATE_BRANCHES,
        *_REGISTER_BRANCHES,
        *_EXCEPTIONS,
        *_HINTS_AND_BARRIERS,
        *_SYSTEM_REGISTERS,
        *_IMMEDIATE_ARITHMETIC,
        *_LOADS_AND_STORES,
        *_REST,
    ),
    width=32,
    key=((20, 12),),
)
_EXCLUSIVES = Exclusives(opens=(Kind.LOAD_EXCLUSIVE,), closes=(Kind.STORE_EXCLUSIVE,), cancels=(Kind.CLREX,))
_RULES = Rules(unit=4, data=Kind.UNALLOCATED, exclusives=_EXCLUSIVES)


class Arm64Dissector:
    """The dissector of A64: one row per word."""

    @property
    def facts(self) -> ArchFacts:
        """The facts of arm64."""
        return ARM64

    def dissect(self, code: NDArray[np.uint8], address: int, ranges: NDArray[np.int64]) -> Instructions:
        """Classify every word of `ranges`; see `Dissector.dissect`."""
        return sweep(_decode, _RULES, code, address, ranges)

    def slot_counts(self, sites: Instructions, span: tuple[int, int]) -> NDArray[np.uint8]:
        """One each: a breakpoint that ends a trampoline does so wherever it is."""
        return np.ones(len(sites), np.uint8)

    def trampolines(self, sites: Instructions, original: NDArray[np.uint8], slots: NDArray[np.uint64]) -> Trampolines:
        """``[insn][brk]``: the breakpoint ends the trampoline. That of an emulated instruction never runs: it is all
        brk."""
        code = np.tile(np.frombuffer(ARM64.breakpoints[4], np.uint8), (len(sites), 2))
        copied = sites.verdict == Verdict.COPY
        code[copied, :4] = original[copied, :4]
        return Trampolines(code, np.zeros(len(sites), np.uint8))

    def references(self, sites: NDArray[np.void]) -> References:
        """None: what is copied refers to no address, and a breakpoint ends the trampoline."""
        return no_references()


def _decode(code: NDArray[np.uint8], address: int, ranges: NDArray[np.int64]) -> Block:
    offsets, function = units(address, ranges, 4)
    words = units_at(code, offsets, 4)
    addresses = offsets.astype(np.uint64) + np.uint64(address)
    rows = TABLE.match(words)
    found = Instructions(
        address=addresses,
        target=TABLE.targets(rows, words, addresses),
        function=function,
        size=np.full(len(words), 4, np.uint8),
        kind=TABLE.kind[rows],
        flow=TABLE.flow[rows],
        verdict=TABLE.verdict[rows],
        reason=TABLE.reason[rows],
    )
    reads = TABLE.reads[rows]
    loads = np.flatnonzero(reads)
    return Block(found, loads, reads[loads])


DISSECTOR = Arm64Dissector()
