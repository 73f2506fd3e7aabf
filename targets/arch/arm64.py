"""arm64 (A64): everything that needs no code. Numbers follow the Arm ARM (DDI 0487), names FreeBSD's regs_aarch64.d."""

from enum import IntEnum

from kinst.targets.arch.arm64_state import ARM64_STATE
from kinst.targets.arch.code_shape import CallShape, CodeShape, Field, Pattern, pattern
from kinst.targets.arch.facts import ArchFacts, CpuNumberFacts, EngineFacts, InFiles, JumpFacts, Syntax, UnwindFacts
from kinst.targets.arch.linux import (
    COMMON_TABLES,
    BootTable,
    CurrentTask,
    LinuxFacts,
    Pointer,
    RecordLayout,
    RoomFacts,
    SystemCalls,
)
from kinst.targets.arch.relocations import CodeField, RelocationFacts, by_type, set_to

GENERAL = tuple(f"x{number}" for number in range(31))
REGISTERS = (*GENERAL, "sp", "pc", "pstate")
SP, PC, PSTATE = 31, 32, 33  # indexes in the frame; `pstate` is laid out as SPSR_ELx: NZCV 31..28, DAIF 9..6

# brk #0x40d, the immediate that FreeBSD's DTrace claims (sys/arm64: DTRACE_PATCHVAL).
BREAKPOINT = (0xD4200000 | 0x40D << 5).to_bytes(4, "little")


NOP = (0xD503201F).to_bytes(4, "little")


class Kind(IntEnum):
    """What an instruction is, as far as probing needs it. Manifests contain the numbers, so they never change."""

    OTHER = 0  # no rule mentions it: it runs in its trampoline

    # Emulated: the result depends on the instruction's own address, or control leaves the trampoline.
    B = 1
    B_COND = 2
    BL = 3
    BR = 4
    BLR = 5
    RET = 6
    CBZ = 7
    CBNZ = 8
    TBZ = 9
    TBNZ = 10
    ADR = 11
    ADRP = 12
    LDR_LITERAL_W = 13
    LDR_LITERAL_X = 14
    LDRSW_LITERAL = 15
    LDR_LITERAL_S = 16
    LDR_LITERAL_D = 17
    LDR_LITERAL_Q = 18
    PRFM_LITERAL = 19

    # Emulated because it is cheap: one trap instead of two.
    NOP = 32
    MOV_REGISTER = 33
    MOVZ = 34
    MOVN = 35
    ADD_IMMEDIATE = 36
    SUB_IMMEDIATE = 37
    STP_PRE_SP = 38
    LDP_POST_SP = 39

    # Copied, but worth a name.
    WAIT = 64  # wfi, wfe
    PACIXSP = 65  # paciasp, pacibsp: signs the link register and is a landing pad

    # Refused.
    UNALLOCATED = 128
    BRK = 129
    HLT = 130
    SYSTEM_CALL = 131  # svc, hvc, smc
    EXCEPTION_RETURN = 132
    BTI = 133
    LOAD_EXCLUSIVE = 134
    STORE_EXCLUSIVE = 135
    CLREX = 136
    INTERRUPT_MASK = 137
    TRANSLATION_CONTROL = 138
    VECTOR_BASE = 139
    BR_AUTHENTICATED = 140
    BLR_AUTHENTICATED = 141
    RET_AUTHENTICATED = 142
    TRANSACTION = 143
    DEBUG_STATE = 144


MOVABLE = frozenset(
    {
        Kind.BR,
        Kind.RET,
        Kind.MOV_REGISTER,
        Kind.MOVZ,
        Kind.MOVN,
        Kind.ADD_IMMEDIATE,
        Kind.SUB_IMMEDIATE,
        Kind.STP_PRE_SP,
        Kind.LDP_POST_SP,
    }
)

_PARTS = {f"{width}{number}": number for width in "xw" for number in range(31)} | {
    "sp": SP,
    "wsp": SP,
    "fp": 29,
    "lr": 30,
}

_SHAPE = CodeShape(
    fill=(0x00,),
    padding=(
        Pattern(0xFFFFFFFF, 0xD503201F),  # nop
        Pattern(0xFFFFFFFF, 0x00000000),  # udf #0
        # What -mharden-sls puts after ret and br, never executed: dsb nsh or sy, isb; or sb.
        Pattern(0xFFFFFFFF, 0xD503379F),
        Pattern(0xFFFFFFFF, 0xD5033F9F),
        Pattern(0xFFFFFFFF, 0xD5033FDF),
        Pattern(0xFFFFFFFF, 0xD50330FF),
    ),
    prologues=(
        Pattern(0xFFFFFFBF, 0xD503233F),  # paciasp, pacibsp
        Pattern(0xFFFFFF7F, 0xD503245F),  # bti c, bti jc
        Pattern(0xFFC003E0, 0xA98003E0),  # stp xA, xB, [sp, #-n]!
        Pattern(0xFFE00FFF, 0xF8000FFE),  # str x30, [sp, #-n]!
        Pattern(0xFF8003FF, 0xD10003FF),  # sub sp, sp, #n
    ),
    calls=(CallShape(Pattern(0xFC000000, 0x94000000), (Field(0, 26, 2, is_signed=True),)),),  # bl
    absurd=(
        # msr to registers of EL1 and above: op1, bits 18:16, is 011 for those of EL0.
        *(Pattern(0xFFF70000, 0xD5100000 | op1 << 16) for op1 in range(8) if op1 != 3),
        Pattern(0xFFFFFFFF, 0xD69F03E0),  # eret
        Pattern(0xFFE0001F, 0xD4000002),  # hvc
        Pattern(0xFFE0001F, 0xD4000003),  # smc
        Pattern(0xFFE0001F, 0xD4400000),  # hlt
        Pattern(0xFFE0001C, 0xD4A00000),  # dcps
    ),
)

# What the kernel lists of its own text. Layouts are those of include/linux and arch/*/include/asm.
_TABLES = (
    *COMMON_TABLES,
    BootTable(
        ".altinstructions",
        ("__alt_instructions", "__alt_instructions_end"),
        # struct alt_instr: s32 orig_offset, s32 alt_offset, u16 cpucap, u8 orig_len, u8 alt_len (0: a callback).
        (RecordLayout(12, Pointer(0), length_at=10, replacement=Pointer(4), replacement_length_at=11),),
    ),
)

# As Arm ARM D24.2 encodes them: op0, op1, CRn, CRm, op2.
_SYSTEM_REGISTERS = {
    "mpidr_el1": (3, 0, 0, 0, 5),
    "sctlr_el1": (3, 0, 1, 0, 0),
    "cpacr_el1": (3, 0, 1, 0, 2),
    "ttbr0_el1": (3, 0, 2, 0, 0),
    "ttbr1_el1": (3, 0, 2, 0, 1),
    "tcr_el1": (3, 0, 2, 0, 2),
    "spsr_el1": (3, 0, 4, 0, 0),
    "elr_el1": (3, 0, 4, 0, 1),
    "sp_el0": (3, 0, 4, 1, 0),
    "esr_el1": (3, 0, 5, 2, 0),
    "far_el1": (3, 0, 6, 0, 0),
    "par_el1": (3, 0, 7, 4, 0),
    "mair_el1": (3, 0, 10, 2, 0),
    "vbar_el1": (3, 0, 12, 0, 0),
    "contextidr_el1": (3, 0, 13, 0, 1),
    "tpidr_el1": (3, 0, 13, 0, 4),
    "cntkctl_el1": (3, 0, 14, 1, 0),
    "tpidr_el0": (3, 3, 13, 0, 2),
    "tpidrro_el0": (3, 3, 13, 0, 3),
    "cntfrq_el0": (3, 3, 14, 0, 0),
    "sctlr_el2": (3, 4, 1, 0, 0),
    "hcr_el2": (3, 4, 1, 1, 0),
    "cptr_el2": (3, 4, 1, 1, 2),
    "ttbr0_el2": (3, 4, 2, 0, 0),
    "ttbr1_el2": (3, 4, 2, 0, 1),
    "tcr_el2": (3, 4, 2, 0, 2),
    "vttbr_el2": (3, 4, 2, 1, 0),
    "vtcr_el2": (3, 4, 2, 1, 2),
    "spsr_el2": (3, 4, 4, 0, 0),
    "elr_el2": (3, 4, 4, 0, 1),
    "sp_el1": (3, 4, 4, 1, 0),
    "esr_el2": (3, 4, 5, 2, 0),
    "far_el2": (3, 4, 6, 0, 0),
    "hpfar_el2": (3, 4, 6, 0, 4),
    "mair_el2": (3, 4, 10, 2, 0),
    "vbar_el2": (3, 4, 12, 0, 0),
    "tpidr_el2": (3, 4, 13, 0, 2),
    "sctlr_el3": (3, 6, 1, 0, 0),
    "scr_el3": (3, 6, 1, 1, 0),
    "ttbr0_el3": (3, 6, 2, 0, 0),
    "tcr_el3": (3, 6, 2, 0, 2),
    "spsr_el3": (3, 6, 4, 0, 0),
    "elr_el3": (3, 6, 4, 0, 1),
    "esr_el3": (3, 6, 5, 2, 0),
    "far_el3": (3, 6, 6, 0, 0),
    "vbar_el3": (3, 6, 12, 0, 0),
}

# Of struct CPUARMState in Unicorn 2.1, from FAR_EL1 on: what QEMU would put into ESR for the exception that it
# reported last, and the level that it would take it to.
_WORDS = {"exception.syndrome": (1968, 4), "exception.target": (1984, 4)}
_LANDMARKS = {"far_el1": 0, "tpidrro_el0": 296, "s3_4_c0_c0_5": 1776}

ARM64 = ArchFacts(
    name="arm64",
    elf_machine=183,  # EM_AARCH64
    in_files=InFiles(u_boot="arm64", legacy=22, pe=0xAA64),
    breakpoints={4: BREAKPOINT},
    slot_size=8,
    longest_trampoline=8,
    return_breakpoint=4,
    instruction_alignment=4,
    # What adrp reaches; its end is also above the RAM of boards whose image is linked at 0 (QEMU virt: 1 GiB up).
    trampoline_window=1 << 32,
    kinds=Kind,
    emulable=frozenset(),  # what can be emulated always is
    movable=MOVABLE,
    control_only=frozenset({Kind.NOP, Kind.B}),
    out_of_line=frozenset({Kind.ADR, Kind.ADRP, Kind.B_COND, Kind.CBZ, Kind.CBNZ, Kind.TBZ, Kind.TBNZ}),
    registers=REGISTERS,
    pc=PC,
    stack_pointer=SP,
    frame_pointer=29,
    cpu_number=CpuNumberFacts(
        mask=0xFF_00FF_FFFF, is_cheap=True, only_with=None
    ),  # affinities of MPIDR_EL1 (D19.2.102)
    user_mode=(PSTATE, 0xC, 0),  # EL is bits 3:2 (Arm ARM C5.2.19)
    mode_names={0: "EL0", 4: "EL1", 8: "EL2", 0xC: "EL3"},
    register_names={f"R_X{number}": number for number in range(30)} | {"R_FP": 29, "R_LR": 30, "R_SP": SP, "R_PC": PC},
    writable_bits=dict.fromkeys(range(PSTATE), (1 << 64) - 1) | {PSTATE: 0xF000_0000},  # NZCV (C5.2.9)
    link_register=30,
    pushed_return=0,
    arguments=tuple(range(8)),
    return_value=0,
    char_is_signed=False,
    long_double_is_x87=False,
    c_registers={"cpacr_el1": 3 << 20},  # floating point does not trap
    c_symbols={},
    unwind=UnwindFacts(
        dwarf_registers=range(SP + 1),
        preserved=range(19, 30),  # AAPCS64 6.1.1
        frame_record=(16, -8, -16),  # 6.4.6: x29 points to the caller's x29, and x30 after it
        signed_above=48,  # Arm ARM D8.10
    ),
    operand_registers=_PARTS,
    repeated=None,
    nops=(NOP,),
    sized_nops={4: NOP},
    # FreeBSD's kinst_md_excluded: the way of a breakpoint from EL1 to the handler.
    excluded_functions=frozenset({"handle_el1h_sync", "do_el1h_sync"}),
    # aaelf64 5.7. A COPY is as long as its symbol; it goes to .bss, where 8 does as well as anything.
    relocations=RelocationFacts(
        sizes=by_type(
            (8, (257, 260, 307, 1024, 1025, 1026, 1027, 1028, 1029, 1030, 1032)),
            (16, (1031,)),
            (2, (259, 262)),
            (0, (0, 256, 569)),
        ),
        relative=frozenset({1027, 1032}),
        code={
            **dict.fromkeys((282, 283), (CodeField(((0, 26, 2),)),)),  # JUMP26, CALL26
            **dict.fromkeys((273, 280), (CodeField(((5, 19, 2),)),)),  # LD_PREL_LO19, CONDBR19
            279: (CodeField(((5, 14, 2),)),),  # TSTBR14
            309: (CodeField(((5, 19, 2),), is_table=True),),  # GOT_LD_PREL19
        },
        nowhere=0,
        debug={**set_to({257: 64, 258: 32, 259: 16}), **set_to({260: 64, 261: 32}, is_relative=True)},
        nothing=frozenset({0, 256}),
    ),
    code_shape=_SHAPE,
    # b. For FEAT_BTI, br is no call: ``bti c`` does not take it (Arm ARM D8.4).
    jump=JumpFacts(
        size=4, reach=1 << 27, far=None, short=None, joins=False, checked=frozenset({Kind.PACIXSP, Kind.BLR})
    ),
    linux=LinuxFacts(
        boot_magic=b"ARM\x64",
        tables=_TABLES,
        lengths=((pattern(""), 4),),
        tracer_call=NOP,
        tracer_scratch=tuple(f"x{number}" for number in range(9, 18)),
        runtime_constants=(16, 4),  # four movz and movk; one lsr
        current=CurrentTask(("sp_el0",), ("tpidr_el1",), ("__entry_task",)),
        system_calls=SystemCalls(
            *("__arm64_sys_", (272, 8, 16, 24, 32, 40), 0),  # orig_x0, x1 to x5; x0
            *("", ("invoke_syscall", "__invoke_syscall", "el0_svc_common", "do_el0_svc"), ""),
        ),
        saved_registers=(*(f"regs[{number}]" for number in range(31)), "sp", "pc", "pstate"),
        saved_mode=("pstate", 0x1F, (4, 5, 8, 9)),  # EL1t, EL1h, EL2t, EL2h
        user_tables=(),
        identity=(("__idmap_text_start", "__idmap_text_end"),),
        elsewhere=(
            ("__hyp_idmap_text_start", "__hyp_idmap_text_end"),
            ("__hyp_text_start", "__hyp_text_end"),  # the hypervisor, which has tables of its own (nVHE)
            ("__entry_tramp_text_start", "__entry_tramp_text_end"),  # what programs' tables have of the kernel (KPTI)
            ("__hibernate_exit_text_start", "__hibernate_exit_text_end"),  # copied to a page
            ("__relocate_new_kernel_start", "__relocate_new_kernel_end"),  # copied to a page
        ),
        static_call_trampoline=None,
        room=RoomFacts(is_behind=False, page=1 << 16),  # the largest of its pages
    ),
    capstone=Syntax("CS_ARCH_ARM64", ("CS_MODE_ARM",), None),
    word_directive=".inst",
    keystone=Syntax("KS_ARCH_ARM64", ("KS_MODE_LITTLE_ENDIAN",), None),
    keystone_plain=Syntax("KS_ARCH_ARM64", ("KS_MODE_LITTLE_ENDIAN",), None),
    engine=EngineFacts(
        qiling="ARM64",
        unicorn="arm64",
        library_suffix="aarch64",
        start_words=3,
        has_segments=False,
        has_sizeless=False,
        cpu_model="UC_CPU_ARM64_A57",
        # Unicorn's own choice is 1 KiB: its TLBI of one of the guest's pages would then leave three quarters of it
        # behind.
        page_size=4096,
        interrupt_bias=0,
        # svc #0x40d. Unicorn traps it like brk, but leaves the PC after it. If the displaced instruction was emulated
        # and does not jump, the PC need not be written, which saves half a microsecond.
        #
        # 11010100 000   imm16 20:5   000 01
        armed={4: (0xD4000001 | 0x40D << 5).to_bytes(4, "little")},
        breakpoint_number=2,
        breakpoint_bias=4,
        file_breakpoint=7,
        translation_switch=None,
        tells_invalidations=True,
        system_registers=_SYSTEM_REGISTERS,
        hidden=(),
        privilege=None,
        words=_WORDS,
        landmarks=_LANDMARKS,
        debug_registers=(),
        state=ARM64_STATE,
    ),
)
