"""riscv64 (RV64GC): everything that needs no code. Names follow the psABI and FreeBSD's regs_riscv.d."""

from enum import IntEnum

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
from kinst.targets.arch.relocations import LEB128, Change, CodeField, DebugRelocation, RelocationFacts, by_type, set_to
from kinst.targets.arch.riscv64_state import RISCV64_STATE

# x-number order with ABI names; s0 is also the frame pointer.
GENERAL = (
    *("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1"),
    *(f"a{number}" for number in range(8)),
    *(f"s{number}" for number in range(2, 12)),
    *("t3", "t4", "t5", "t6"),
)
RA, SP, FP, PC = 1, 2, 8, 32  # indexes in the frame

EBREAK = (0x0010_0073).to_bytes(4, "little")
C_EBREAK = (0x9002).to_bytes(2, "little")
FAR_JUMP = 8  # bytes of auipc and jalr
C_NOP = (0x0001).to_bytes(2, "little")


class Kind(IntEnum):
    """What an instruction is, as far as probing needs it. Manifests contain the numbers, so they never change."""

    OTHER = 0  # no rule mentions it: it runs in its trampoline

    # Emulated: the result depends on the instruction's own address, or control leaves the trampoline.
    JAL = 1
    JALR = 2
    BEQ = 3
    BNE = 4
    BLT = 5
    BGE = 6
    BLTU = 7
    BGEU = 8
    AUIPC = 9
    C_J = 10
    C_BEQZ = 11
    C_BNEZ = 12
    C_JR = 13
    C_JALR = 14

    # Emulated because it is cheap: one trap instead of two.
    ADDI = 32  # also nop, li, mv, sp adjustment
    LUI = 33
    SD_SP = 34  # sd rs2, imm(sp)
    C_NOP = 35
    C_ADDI = 36
    C_LI = 37
    C_LUI = 38
    C_ADDI16SP = 39
    C_ADDI4SPN = 40
    C_MV = 41
    C_SDSP = 42

    # Copied, but worth a name.
    WAIT = 64  # wfi
    ATOMIC = 65  # amo*

    # Refused.
    UNDECODABLE = 128
    BREAKPOINT = 129  # ebreak, c.ebreak
    SYSTEM_CALL = 130
    EXCEPTION_RETURN = 131  # mret, sret, uret, dret, mnret
    LOAD_RESERVED = 132
    STORE_CONDITIONAL = 133
    STATUS_CSR = 134
    TRANSLATION_CSR = 135
    VECTOR_CSR = 136
    LANDING_PAD = 137  # lpad (Zicfilp), which is auipc x0


MOVABLE = frozenset(
    {
        Kind.JALR,
        Kind.C_JR,
        Kind.ADDI,
        Kind.LUI,
        Kind.SD_SP,
        Kind.C_ADDI,
        Kind.C_LI,
        Kind.C_LUI,
        Kind.C_ADDI16SP,
        Kind.C_ADDI4SPN,
        Kind.C_MV,
        Kind.C_SDSP,
    }
)

_SHAPE = CodeShape(
    fill=(0x00,),
    padding=(
        Pattern(0xFFFF, 0x0001),  # c.nop
        Pattern(0xFFFFFFFF, 0x00000013),  # nop
        Pattern(0xFFFF, 0x0000),  # defined to be illegal
    ),
    prologues=(
        Pattern(0xFF83, 0x1101),  # c.addi sp, -n
        Pattern(0xFF83, 0x7101),  # c.addi16sp -n
        Pattern(0x800FFFFF, 0x80010113),  # addi sp, sp, -n
    ),
    calls=(
        # jal ra        imm[20|10:1|11|19:12]
        CallShape(
            Pattern(0xFFF, 0x0EF),
            (Field(31, 1, 20, is_signed=True), Field(12, 8, 12), Field(20, 1, 11), Field(21, 10, 1)),
        ),
        # auipc ra, imm[31:12]; jalr ra, imm[11:0](ra), where the linker did not relax it
        CallShape(
            Pattern(0x000F_FFFF_0000_0FFF, 0x0000_80E7_0000_0097),
            (Field(12, 20, 12, is_signed=True), Field(52, 12, 0, is_signed=True)),
        ),
    ),
    absurd=(
        # csrr*: bits 9:8 of the CSR's number are the lowest privilege that may use it; funct3 0 and 4 are none.
        *(
            Pattern(0x3000707F, privilege << 28 | operation << 12 | 0x73)
            for privilege in (1, 2, 3)
            for operation in (1, 2, 3, 5, 6, 7)
        ),
        Pattern(0xFFFFFFFF, 0x10200073),  # sret
        Pattern(0xFFFFFFFF, 0x30200073),  # mret
        Pattern(0xFFFFFFFF, 0x10500073),  # wfi
        Pattern(0xFE007FFF, 0x12000073),  # sfence.vma
    ),
)

# What the kernel lists of its own text. Layouts are those of include/linux and arch/*/include/asm.
_TABLES = (
    *COMMON_TABLES,
    BootTable(
        ".alternative",
        ("__alt_start", "__alt_end"),
        (
            # struct alt_entry since 6.4: s32 old_offset, s32 alt_offset, u16 vendor_id, u16 alt_len, u32 patch_id.
            RecordLayout(
                16, Pointer(0), length_at=10, length_width=2, replacement=Pointer(4), replacement_length_at=10
            ),
            # Before: void *old_ptr, void *alt_ptr, unsigned long vendor_id, alt_len, unsigned int errata_id.
            RecordLayout(
                40,
                Pointer(0, is_relative=False),
                length_at=24,
                length_width=2,
                replacement=Pointer(8, is_relative=False),
                replacement_length_at=24,
            ),
        ),
    ),
)

# Distances in instructions.
_UPPER = CodeField(((12, 20, 12),), added=0x800)  # auipc: the lower part is in another instruction and is signed
_BRANCH = CodeField(((31, 1, 12), (25, 6, 5), (8, 4, 1), (7, 1, 11)))
_JUMP = CodeField(((31, 1, 20), (21, 10, 1), (20, 1, 11), (12, 8, 12)))
_SHORT_BRANCH = CodeField(((12, 1, 8), (10, 2, 3), (5, 2, 6), (3, 2, 1), (2, 1, 5)))
_SHORT_JUMP = CodeField(((12, 1, 11), (11, 1, 4), (9, 2, 8), (8, 1, 10), (7, 1, 6), (6, 1, 7), (3, 3, 1), (2, 1, 5)))

RISCV64 = ArchFacts(
    name="riscv64",
    elf_machine=243,  # EM_RISCV
    in_files=InFiles(u_boot="riscv", legacy=26, pe=0x5064),
    breakpoints={2: C_EBREAK, 4: EBREAK},
    slot_size=8,
    longest_trampoline=8,
    return_breakpoint=4,
    instruction_alignment=2,
    # What auipc reaches; its end is also above the RAM of boards that have it at 0x80000000 (2 GiB of it at most).
    trampoline_window=1 << 31,
    kinds=Kind,
    emulable=frozenset(),  # what can be emulated always is
    movable=MOVABLE,
    control_only=frozenset({Kind.C_NOP, Kind.C_J, Kind.JAL}),
    out_of_line=frozenset(),
    registers=(*GENERAL, "pc"),
    pc=PC,
    stack_pointer=SP,
    frame_pointer=FP,
    # mhartid, of machine mode alone: whose traps end with mret, and never with sret.
    cpu_number=CpuNumberFacts(
        mask=(1 << 64) - 1,
        is_cheap=True,
        only_with=((0x3020_0073).to_bytes(4, "little"), (0x1020_0073).to_bytes(4, "little")),
    ),
    user_mode=("priv", 3, 0),  # Privileged Architecture 1.2
    mode_names={0: "U", 1: "S", 3: "M"},
    register_names={f"R_{name.upper()}": number for number, name in enumerate(GENERAL)} | {"R_FP": FP, "R_PC": PC},
    writable_bits=dict.fromkeys(range(1, PC + 1), (1 << 64) - 1),  # x0 is hardwired to 0 (2.1)
    link_register=RA,
    pushed_return=0,
    arguments=tuple(range(10, 18)),
    return_value=10,
    char_is_signed=False,
    long_double_is_x87=False,
    c_registers={"mstatus": 1 << 13},  # FS: the floating-point unit is on
    c_symbols={"gp": "__global_pointer$"},
    unwind=UnwindFacts(
        dwarf_registers=range(32),
        preserved=(3, 4, 8, 9, *range(18, 28)),  # psABI 1.1: s0 to s11; gp and tp never change
        frame_record=(0, -8, -16),  # s0 is the CFA, ra and the caller's s0 are below it
        signed_above=None,
    ),
    operand_registers={name: number for number, name in enumerate(GENERAL)}
    | {f"x{number}": number for number in range(32)}
    | {"fp": FP},
    repeated=None,
    nops=(C_NOP, (0x0000_0013).to_bytes(4, "little")),  # c.nop; addi zero, zero, 0
    sized_nops={2: C_NOP, 4: (0x0000_0013).to_bytes(4, "little")},
    # FreeBSD's kinst_md_excluded: the way of a breakpoint from S-mode to the handler.
    excluded_functions=frozenset(
        {
            "cpu_exception_handler",
            "cpu_exception_handler_supervisor",
            "cpu_exception_handler_user",
            "do_trap_supervisor",
            "do_trap_user",
        }
    ),
    # psABI, "Relocations". A COPY is as long as its symbol; it goes to .bss, where 8 does as well as anything.
    relocations=RelocationFacts(
        sizes=by_type(
            (8, (2, 3, 4, 5, 7, 9, 11, 18, 19, 36, 40, 58)),
            (2, (34, 38, 44, 45, 46, 55)),
            (1, (33, 37, 52, 53, 54)),
            (0, (0, 43, 51)),
        ),
        relative=frozenset({3, 58}),
        code={
            16: (_BRANCH,),
            17: (_JUMP,),
            **dict.fromkeys((18, 19), (_UPPER, CodeField(((20, 12, 0),), offset=4))),  # CALL, CALL_PLT
            # GOT_HI20, TLS_GOT_HI20, TLS_GD_HI20, PCREL_HI20, whose lower part another relocation names: what it reads
            # is left open.
            **dict.fromkeys((20, 21, 22, 23), (CodeField(((12, 20, 12),), is_table=True),)),
            44: (_SHORT_BRANCH,),
            45: (_SHORT_JUMP,),
        },
        nowhere=-(1 << 30),
        debug={
            **set_to({1: 32, 2: 64, 54: 8, 55: 16, 56: 32}),
            **set_to({57: 32}, is_relative=True),
            **{33 + row: DebugRelocation(Change.ADD, 8 << row) for row in range(4)},
            **{37 + row: DebugRelocation(Change.SUBTRACT, 8 << row) for row in range(4)},
            # SUB6, SET6: the low bits of DW_CFA_advance_loc
            52: DebugRelocation(Change.SUBTRACT, 6),
            53: DebugRelocation(Change.SET, 6),
            60: DebugRelocation(Change.SET, LEB128),
            61: DebugRelocation(Change.SUBTRACT, LEB128),
        },
        nothing=frozenset({0, 51}),
    ),
    code_shape=_SHAPE,
    jump=JumpFacts(  # jal; auipc and jalr, whose second immediate has a sign; c.j
        size=4,
        reach=1 << 20,
        far=(FAR_JUMP, (1 << 31) - (1 << 11)),
        short=(2, -2048, 2046),
        joins=True,
        checked=frozenset(),
    ),
    linux=LinuxFacts(
        boot_magic=b"RSC\x05",
        tables=_TABLES,
        lengths=(
            *((Pattern(3, low), 2) for low in range(3)),
            (pattern(""), 4),
        ),  # the low two bits give the length (ISA, 1.5)
        tracer_call=C_NOP,
        tracer_scratch=tuple(f"t{number}" for number in range(7)),
        runtime_constants=(24, 4),  # lui, lui, addiw, addiw, slli, add; one srliw
        current=CurrentTask(("x4", "sscratch"), (), ()),  # tp
        system_calls=SystemCalls(
            *("__riscv_sys_", (280, 88, 96, 104, 112, 120), 80),  # orig_a0, a1 to a5; a0
            *("syscall_exit_to_user_mode", ("do_trap_ecall_u",), ""),
        ),
        saved_registers=("", *GENERAL[1:], "epc"),
        saved_mode=("status", 0x100, (0x100,)),  # SPP
        user_tables=(),
        identity=(),
        elsewhere=(),
        static_call_trampoline=None,
        room=RoomFacts(is_behind=False, page=1 << 16),
    ),
    capstone=Syntax("CS_ARCH_RISCV", ("CS_MODE_RISCV64", "CS_MODE_RISCVC"), None),
    word_directive=".insn",
    keystone=None,
    keystone_plain=None,
    engine=EngineFacts(
        qiling="RISCV64",
        unicorn="riscv",
        library_suffix="riscv64",
        start_words=1,
        has_segments=False,
        has_sizeless=True,
        cpu_model=None,
        page_size=None,
        interrupt_bias=4,
        # A real ebreak ends Unicorn's run and takes 8.8 us a hit; illegal instructions come to UC_HOOK_INTR. All ones
        # are illegal by definition (Unprivileged ISA 1.5), and c.ldsp with rd = x0 is reserved (16.3). All zeros are
        # illegal as well, but at the start of a page they make Unicorn fetch from the page before. The guest's own
        # illegal instructions are at other addresses.
        armed={2: b"\x02\x60", 4: b"\xff\xff\xff\xff"},
        breakpoint_number=2,
        breakpoint_bias=4,  # also for instructions of two bytes
        file_breakpoint=None,
        # csrrw rd, satp, rs1. The mode takes effect at once (4.1.11), and kernels rely on a fault right after it.
        # Unicorn 2.1.4 drops its translations only if the ASID changes as well; QEMU always does since 6.2.
        translation_switch=(0xFFF0_707F, 0x1800_1073),
        tells_invalidations=False,
        system_registers={},
        hidden=("mip", "mhartid"),
        privilege="priv",
        words={},
        landmarks={},
        debug_registers=(),
        state=RISCV64_STATE,
    ),
)
