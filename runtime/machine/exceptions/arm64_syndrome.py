"""The syndrome of an exception: the instruction that caused it -> ESR_ELx.

Unicorn computes a syndrome but its interface does not give it. It is determined by the instruction (DDI 0487: ESR_ELx
in D19.2.37).
"""

from enum import IntEnum

from kinst.runtime.paging.walker import Access


class Class(IntEnum):
    """Exception classes: ESR_ELx.EC, bits 31:26."""

    UNKNOWN = 0x00
    WAIT = 0x01
    SVC = 0x15
    HVC = 0x16
    SMC = 0x17
    SYSTEM_REGISTER = 0x18
    FETCH_LOWER = 0x20
    FETCH_SAME = 0x21
    PC_ALIGNMENT = 0x22
    DATA_LOWER = 0x24
    DATA_SAME = 0x25
    BREAKPOINT_LOWER = 0x30
    BREAKPOINT_SAME = 0x31
    STEP_LOWER = 0x32
    STEP_SAME = 0x33
    WATCHPOINT_LOWER = 0x34
    WATCHPOINT_SAME = 0x35
    BRK = 0x3C


CLASS_SHIFT = 26  # of ESR_ELx.EC
INSTRUCTION_LENGTH = 1 << 25  # IL: every A64 instruction has 32 bits
EXTERNAL_ABORT = 0x10  # fault status codes besides those of the walker
ALIGNMENT_FAULT = 0x21
WRITE_NOT_READ = 1 << 6
CACHE_MAINTENANCE = 1 << 8


def syndrome(exception: Class, specific: int = 0) -> int:
    """ESR_ELx.

     31      26 25 24                     0
    +----------+--+------------------------+
    |    EC    |IL|          ISS           |
    +----------+--+------------------------+
    """
    return exception << CLASS_SHIFT | INSTRUCTION_LENGTH | specific


def immediate16(word: int) -> int:
    """The operand of svc, hvc, smc and brk.

     31            24 23  21 20           5 4     0
    +----------------+------+--------------+-------+
    | 1 1 0 1 0 1 0 0| opc  |    imm16     |op2 LL |
    +----------------+------+--------------+-------+
    """
    return word >> 5 & 0xFFFF


def undefined(word: int, level: int) -> int:
    """The syndrome of an instruction that Unicorn refused, at exception level `level`."""
    if level == 0 and word & 0xFFFFFFDF == 0xD503205F:  # wfe, wfi under SCTLR_EL1.nTWE, nTWI
        return syndrome(Class.WAIT, 0x1E << 20 | (0 if word & 0x20 else 1))
    if level == 0 and _is_trapped_system_access(word):
        return syndrome(Class.SYSTEM_REGISTER, _system_iss(word))
    return syndrome(Class.UNKNOWN)


def _is_trapped_system_access(word: int) -> bool:
    """Whether it is an access that EL1 could allow EL0: it is reported as a trap, not as an undefined instruction.

     31                 22 21 20 19 18 16 15   12 11    8 7   5 4    0
    +---------------------+--+-----+-----+-------+-------+-----+------+
    | 1 1 0 1 0 1 0 1 0 0 | L| op0 | op1 |  CRn  |  CRm  | op2 |  Rt  |
    +---------------------+--+-----+-----+-------+-------+-----+------+
    """
    if word >> 22 != 0x354 or word >> 16 & 7 != 3:
        return False
    op0, crn, crm = word >> 19 & 3, word >> 12 & 0xF, word >> 8 & 0xF
    if op0 == 0:
        return crn == 4  # msr daifset, daifclr (SCTLR_EL1.UMA)
    if op0 == 1:
        return crn == 7  # ic ivau, dc zva, dc cvau ... (UCI, DZE)
    # CTR_EL0 (UCT), DAIF (UMA), the performance monitor (PMUSERENR_EL0), the timer (CNTKCTL_EL1)
    return op0 == 3 and ((crn, crm) in ((0, 0), (4, 2)) or crn in (9, 14))


def _system_iss(word: int) -> int:
    """ISS of a trapped system access.

     24 22 21 20 19 17 16 14 13 10 9   5 4   1  0
    +-----+-----+-----+-----+-----+-----+-----+--+
    |     | Op0 | Op2 | Op1 | CRn | Rt  | CRm |rd|
    +-----+-----+-----+-----+-----+-----+-----+--+
    """
    op0, op1, crn, crm = word >> 19 & 3, word >> 16 & 7, word >> 12 & 0xF, word >> 8 & 0xF
    return op0 << 20 | (word >> 5 & 7) << 17 | op1 << 14 | crn << 10 | (word & 31) << 5 | crm << 1 | word >> 21 & 1


def data_abort(word: int, status: int, access: Access) -> int:
    """ISS of a data abort from `status` (DFSC): ISV is 0 as on every abort that EL1 takes from its own stage 1."""
    if _is_cache_maintenance(word):
        return status | WRITE_NOT_READ | CACHE_MAINTENANCE
    return status | (WRITE_NOT_READ if access is Access.WRITE else 0)


def _is_cache_maintenance(word: int) -> bool:
    """sys #op1, C7, Cm, #op2, Xt, except dc zva, which stores."""
    return word & 0xFFF8F000 == 0xD5087000 and word & 0xFFFFFFE0 != 0xD50B7420
