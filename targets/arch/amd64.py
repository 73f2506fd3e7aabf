"""amd64 (x86-64, 64-bit mode): everything that needs no code. Names follow the Intel SDM and FreeBSD's regs_x86.d."""

from enum import IntEnum

from kinst.targets.arch.amd64_state import AMD64_STATE
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

# The general registers are in the order of their numbers in ModRM, SIB and REX: a register's number is its index.
GENERAL = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{number}" for number in range(8, 16)))
REGISTERS = (*GENERAL, "rip", "rflags", "fs_base", "gs_base", "cs", "ss", "ds", "es", "fs", "gs")
RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI = range(8)
RIP, RFLAGS, FS_BASE, GS_BASE = 16, 17, 18, 19

BREAKPOINT = b"\xcc"  # int3; it replaces the first byte of an instruction, whatever its size
LONGEST = 15  # bytes of the longest instruction (SDM volume 2, 2.3.11)


class Kind(IntEnum):
    """What an instruction is, as far as probing needs it. Manifests contain the numbers, so they never change."""

    OTHER = 0  # no rule mentions it: it runs in its trampoline as it is
    RELATIVE = 1  # so does this one, with the displacement of its RIP-relative operand re-encoded

    # Emulated: the result depends on the instruction's own address, or control leaves the trampoline.
    JUMP = 2  # e9, eb
    BRANCH = 3  # 70-7f, 0f 80-8f
    LOOP = 4  # e0 loopne, e1 loope, e2 loop
    COUNT_ZERO = 5  # e3: jrcxz, jecxz
    CALL = 6  # e8
    CALL_INDIRECT = 7  # ff /2
    JUMP_INDIRECT = 8  # ff /4

    # Emulated because it is cheaper than a trampoline.
    NOP = 32  # 90, 0f 1f

    # Copied, which takes half the time; emulated on request: `EMULABLE`.
    PUSH = 33  # 50-57
    POP = 34  # 58-5f
    MOVE = 35  # 89, 8b between registers
    ADD = 36  # 81 /0, 83 /0: a number to a register
    SUBTRACT = 37  # 81 /5, 83 /5
    LEAVE = 38  # c9
    RETURN = 63  # c3, c2 iw

    # Copied, but worth a name.
    FAR_JUMP = 64
    FAR_RETURN = 65
    HALT = 66

    # Refused.
    UNDECODABLE = 128
    BREAKPOINT = 129  # int3, int1, ud0, ud1, ud2
    LANDING_PAD = 130  # endbr64, endbr32
    SYSTEM_CALL = 131  # syscall, sysenter, int n
    EXCEPTION_RETURN = 132  # iret, sysret, sysexit, rsm
    SHADOW = 133  # sti, mov to ss
    TRANSLATION = 134  # mov to cr0, cr3, cr4
    TRANSACTION = 135  # xbegin, xend, xabort
    FAR_CALL = 136
    NARROW_FLOW = 137  # a near branch with a 16-bit operand size


# What functions begin and end with. FBT upstream emulates some of them, having no trampolines.
EMULABLE = frozenset({Kind.PUSH, Kind.POP, Kind.MOVE, Kind.ADD, Kind.SUBTRACT, Kind.LEAVE, Kind.RETURN})

# D's names as in regs_x86.d; R_TRAPNO and R_ERR have no register: a trap of ours has neither.
_D_NAMES = {f"R_{name.upper()}": number for number, name in enumerate(GENERAL)} | {
    "R_RIP": RIP,
    "R_RFL": RFLAGS,
    "R_CS": REGISTERS.index("cs"),
    "R_SS": REGISTERS.index("ss"),
    "R_DS": REGISTERS.index("ds"),
    "R_ES": REGISTERS.index("es"),
    "R_FS": REGISTERS.index("fs"),
    "R_GS": REGISTERS.index("gs"),
    "R_EAX": RAX,
    "R_ECX": RCX,
    "R_EDX": RDX,
    "R_EBX": RBX,
    "R_ESP": RSP,
    "R_EBP": RBP,
    "R_ESI": RSI,
    "R_EDI": RDI,
    "R_EIP": RIP,
    "R_EFL": RFLAGS,
    "R_UESP": RSP,
    "R_PC": RIP,
    "R_SP": RSP,
    "R_FP": RBP,
    "R_PS": RFLAGS,
    "R_R0": RAX,
    "R_R1": RBX,
}

# al, ax, eax, rax; sil, si, esi, rsi; r8b, r8w, r8d, r8. No compiler uses ah and its like as an operand.
_PARTS = (
    {name: number for number, name in enumerate(GENERAL)}
    | {f"e{name[1:]}": number for number, name in enumerate(GENERAL[:8])}
    | {name[1:]: number for number, name in enumerate(GENERAL[:8])}
    | {f"{name[1]}l": number for number, name in enumerate(GENERAL[:4])}
    | {f"{name[1:]}l": number for number, name in enumerate(GENERAL[4:8], 4)}
    | {f"r{number}{width}": number for number in range(8, 16) for width in "bwd"}
)

# Words of QEMU's x86 CPU state that Unicorn's interface has no register for: name -> (offset, size).
# `struct CPUArchState` of QEMU 5.0 (target/i386/cpu.h), on which Unicorn 2.1 stands, begins with the general registers;
# offsets count from there, `rax`. What Unicorn saves as a context is this structure after a header of its own.
_SEGMENTS = {name: 184 + 24 * index for index, name in enumerate(("es", "cs", "ss", "ds", "fs", "gs"))}
_SEGMENT_FIELDS = {"selector": (0, 4), "base": (8, 8), "limit": (16, 4), "flags": (20, 4)}

_WORDS = {
    # The mode as the translator sees it: privilege, code size, long mode, interrupt shadow.
    "hflags": (176, 4),
    # What was loaded with a selector.
    **{
        f"{segment}.{field}": (start + offset, size)
        for segment, start in _SEGMENTS.items()
        for field, (offset, size) in _SEGMENT_FIELDS.items()
    },
    # Control registers without what writing them does; the interface does it (flush the TLB, set the mode) to the
    # running CPU, and crashes when the state of another one is written.
    "state.cr0": (424, 8),
    "state.cr3": (448, 8),
    "state.cr4": (456, 8),
    "state.efer": (592, 8),
    # Of the exception that UC_HOOK_INTR reports; is it a software interrupt (int n, int3)?
    "error_code": (5384, 4),
    "exception_is_int": (5388, 4),
    # The exception in delivery: QEMU makes the next one a double fault. -1: none.
    "old_exception": (5496, 4),
    # Of SVM's guest mode: the address of its control block, and bits for instructions that end it.
    "svm.block": (5504, 8),
    "svm.intercepts": (5520, 8),
    "svm.debug": (5532, 4),  # of debug registers: two halves
}
# Registers with a name, and where they are: they confirm that the structure is the one above.
_LANDMARKS = {"rax": 0, "r15": 120, "cr2": 440, "lstar": 4840, "pat": 5280}

_SHAPE = CodeShape(
    fill=(0xCC, 0x00, 0x90),
    padding=(
        pattern("cc"),
        pattern("90"),
        pattern("66 90"),
        pattern("00 00"),
        pattern("0f 1f"),
        pattern("66 0f 1f"),
        # gas -mtune: nopw %cs:0(%rax,%rax) after one to six 66s.
        *(pattern("66 " * count + "2e 0f 1f") for count in range(1, 6)),
        pattern("66 66 66 66 66 66 2e 0f"),
    ),
    prologues=(
        pattern("f3 0f 1e fa"),  # endbr64
        pattern("55 48 89 e5"),  # push %rbp; mov %rsp,%rbp
        pattern("55 48 8b ec"),  # the same in its other encoding
        pattern("41 57"),  # push %r15 ... %r12
        pattern("41 56"),
        pattern("41 55"),
        pattern("41 54"),
        pattern("55"),  # push %rbp
        pattern("53"),  # push %rbx
        pattern("48 83 ec"),  # sub $n,%rsp
        pattern("48 81 ec"),
    ),
    calls=(CallShape(pattern("e8"), (Field(8, 32, 0, is_signed=True),), 5),),  # call rel32
    absurd=(
        pattern("00 00"),  # add %al,(%rax): zeros
        *map(pattern, ("6c", "6d", "6e", "6f", "e4", "e5", "e6", "e7", "ec", "ed", "ee", "ef")),  # ports
        *map(pattern, ("f4", "fa", "fb", "0f 06", "0f 08", "0f 09", "0f 30", "0f 32")),  # hlt, cli, sti, clts to rdmsr
        *map(pattern, ("0f 20", "0f 21", "0f 22", "0f 23", "0f 07", "0f 35")),  # mov of control registers; sysret
        *map(pattern, ("ca", "cb", "cf", "48 ca", "48 cb", "48 cf", "cd", "f1")),  # far returns, int, int1
        *map(pattern, ("a0", "a1", "a2", "a3", "c2", "c8", "d7")),  # movabs, ret $n, enter, xlat: no compiler's
    ),
)

# What the kernel lists of its own text. Layouts are those of include/linux and arch/*/include/asm.
_TABLES = (
    *COMMON_TABLES,
    BootTable(
        ".altinstructions",
        ("__alt_instructions", "__alt_instructions_end"),
        # struct alt_instr: s32 instr_offset, s32 repl_offset, u16 cpuid [, u16 flags since 6.3], u8 instrlen,
        # u8 replacementlen [, u8 padlen until 5.12].
        tuple(
            RecordLayout(size, Pointer(0), length_at=at, replacement=Pointer(4), replacement_length_at=at + 1)
            for size, at in ((12, 10), (14, 12), (13, 10))
        ),
    ),
    # struct paravirt_patch_site: u8 *instr, u8 type, u8 len (until 6.7).
    BootTable(
        ".parainstructions",
        ("__parainstructions", "__parainstructions_end"),
        (RecordLayout(16, Pointer(0, is_relative=False), length_at=9),),
    ),
    # apply_retpolines() and apply_returns() (alternative.c) decode the instruction at each address, and write another
    # one of the same size over it: for where it is, so that it may be anywhere in the kernel's text.
    BootTable(
        ".retpoline_sites",
        ("__retpoline_sites", "__retpoline_sites_end"),
        (RecordLayout(4, Pointer(0)),),
        "THUNK",
        leads=True,
    ),
    BootTable(
        ".return_sites",
        ("__return_sites", "__return_sites_end"),
        (RecordLayout(4, Pointer(0)),),
        "RETURN_THUNK",
        leads=True,
    ),
    # Not .call_sites, which has all direct calls since 6.2: what redirects them (callthunks.c) first checks the opcode,
    # and leaves alone what is no call any more.
    BootTable(
        ".ibt_endbr_seal",
        ("__ibt_endbr_seal", "__ibt_endbr_seal_end"),
        (RecordLayout(4, Pointer(0), length=4),),
        "LANDING_PAD",
    ),
    # Lock prefixes, which a kernel on one CPU turns into 3e (ds), and back. It writes only over f0 and 3e
    # (alternatives_smp_unlock and its inverse), so a breakpoint stays; one as old as 2.6.32 writes without checking,
    # which loses the probe but leaves the instruction as intended. The trampoline keeps the lock, which is right on any
    # number of CPUs. Only a copy of such a kernel's memory, taken after the locks were removed, must not run there.
    BootTable(
        ".smp_locks", ("__smp_locks", "__smp_locks_end"), (RecordLayout(4, Pointer(0), length=1, probed_with=0xF0),)
    ),
    # struct static_call_site: s32 addr, s32 key. __static_call_update() (static_call_inline.c) writes to any address of
    # the kernel's text.
    BootTable(
        ".static_call_sites",
        ("__start_static_call_sites", "__stop_static_call_sites"),
        (RecordLayout(8, Pointer(0)),),
        "STATIC_CALL",
        leads=True,
        within_text=True,
    ),
)

# SDM volume 4.
_MODEL_SPECIFIC = {
    "apic_base": (0x1B,),
    "sysenter_cs": (0x174,),
    "sysenter_esp": (0x175,),
    "sysenter_eip": (0x176,),
    "pat": (0x277,),
    "efer": (0xC0000080,),
    "star": (0xC0000081,),
    "lstar": (0xC0000082,),
    "cstar": (0xC0000083,),
    "sfmask": (0xC0000084,),
    "kernel_gs_base": (0xC0000102,),
    "tsc_aux": (0xC0000103,),
}

# As Intel's manual recommends (SDM volume 2, NOP: "Recommended Multi-Byte Sequence of NOP Instruction").
_NOPS = "90 6690 0f1f00 0f1f4000 0f1f440000 660f1f440000 0f1f8000000000 0f1f840000000000 660f1f840000000000"

# rep movs, rep stos and the like (SDM volume 2, REP): prefixes, then the opcode.
_REPEATED = rb"(?s)(?=.{0,3}[\xf2\xf3])[\x26\x2e\x36\x3e\x40-\x4f\x64-\x67\xf2\xf3]+[\x6c-\x6f\xa4-\xa7\xaa-\xaf]"

AMD64 = ArchFacts(
    name="amd64",
    elf_machine=62,  # EM_X86_64
    in_files=InFiles(u_boot="x86_64", legacy=24, pe=0x8664),
    breakpoints=dict.fromkeys(range(1, LONGEST + 1), BREAKPOINT),
    slot_size=16,  # 11 bytes of instruction and 5 of a jump back
    longest_trampoline=32,  # 15 bytes of instruction and 14 of `jmp *0(%rip)` with its address
    return_breakpoint=None,
    instruction_alignment=1,
    # RIP-relative operands reach 2 GiB either way. Half of that keeps the trampolines of kernels, which live in the top
    # 2 GiB, clear of the fixed mappings at the very end (Linux: vsyscall page, fixmap, error pointers).
    trampoline_window=1 << 30,
    kinds=Kind,
    emulable=EMULABLE,
    movable=frozenset({Kind.CALL}),
    control_only=frozenset({Kind.NOP, Kind.JUMP}),
    out_of_line=frozenset(),
    registers=REGISTERS,
    pc=RIP,
    stack_pointer=RSP,
    frame_pointer=RBP,
    cpu_number=CpuNumberFacts(mask=0xFF, is_cheap=False, only_with=None),  # the initial APIC ID of cpuid
    user_mode=(REGISTERS.index("cs"), 3, 3),  # the current privilege level (SDM volume 3, 5.5)
    mode_names={0: "ring 0", 1: "ring 1", 2: "ring 2", 3: "ring 3"},
    register_names=_D_NAMES,
    # Of the flags those that instructions compute with: CF, PF, AF, ZF, SF, DF, OF (SDM volume 1, 3.4.3). A selector
    # cannot be written without the descriptor that it loads.
    writable_bits=dict.fromkeys((*range(16), RIP, FS_BASE, GS_BASE), (1 << 64) - 1) | {RFLAGS: 0xCD5},
    link_register=None,
    pushed_return=8,
    arguments=(RDI, RSI, RDX, RCX, 8, 9),  # System V ABI 3.2.3
    return_value=RAX,
    char_is_signed=True,
    long_double_is_x87=True,
    c_registers={},
    c_symbols={},
    unwind=UnwindFacts(
        dwarf_registers=(RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, *range(8, 16), RIP),  # System V ABI, figure 3.36
        preserved=(3, 6, *range(12, 16)),  # 3.2.1: rbx, rbp, r12 to r15
        frame_record=(16, -8, -16),  # 3.2.2: rbp points to the caller's rbp, the return address is after it
        signed_above=None,
    ),
    operand_registers=_PARTS,
    repeated=_REPEATED,
    nops=(b"\x90", b"\x66\x90", b"\x0f\x1f", b"\x66\x0f\x1f", b"\x66\x2e\x0f\x1f"),
    sized_nops={len(code): code for code in map(bytes.fromhex, _NOPS.split())},
    excluded_functions=frozenset(),  # FreeBSD's kinst_md_excluded names none on amd64
    # psABI 1.0, table 4.9. A COPY is as long as its symbol; it goes to .bss, where 8 does as well as anything.
    relocations=RelocationFacts(
        sizes=by_type(
            (8, (1, 5, 6, 7, 8, 16, 17, 18, 24, 25, 27, 28, 29, 30, 31, 36, 37, 38)),
            (2, (12, 13)),
            (1, (14, 15)),
            (0, (0, 35, 250, 251)),
        ),
        relative=frozenset({8, 37, 38}),
        code={
            **dict.fromkeys((2, 4), (CodeField(((0, 32, 0),)),)),  # PC32, PLT32
            # GOTPCREL, TLSGD, TLSLD, GOTTPOFF, GOTPCRELX, REX_GOTPCRELX
            **dict.fromkeys((9, 19, 20, 22, 41, 42), (CodeField(((0, 32, 0),), is_table=True),)),
        },
        nowhere=0,
        debug={
            **set_to({1: 64, 10: 32, 11: 32, 12: 16, 14: 8, 17: 64, 21: 32}),
            **set_to({2: 32, 24: 64}, is_relative=True),
        },
        nothing=frozenset({0}),
    ),
    code_shape=_SHAPE,
    jump=JumpFacts(  # jmp rel32, rel8
        size=5, reach=1 << 31, far=None, short=(2, -126, 129), joins=True, checked=frozenset()
    ),
    linux=LinuxFacts(
        boot_magic=None,
        tables=_TABLES,
        lengths=(
            *((pattern(first), 2) for first in ("eb", "66", "0f 0b")),  # jmp rel8; nop; ud2
            *((pattern(first), 1) for first in ("90", "cc", "c3")),
            (pattern("2e"), 6),  # a cs prefix for alignment
            (Pattern(0xF0FF, 0x800F), 6),  # jcc
            (pattern(""), 5),  # call, jmp, nopl
        ),
        tracer_call=5,  # a call, or one nop
        tracer_scratch=("r10", "r11"),
        runtime_constants=(8, 1),  # the immediate of movabs and of shr
        # From 6.2 to 6.14 it is the first member of pcpu_hot (arch/x86/include/asm/current.h).
        current=CurrentTask((), ("gs_base", "kernel_gs_base"), ("current_task", "pcpu_hot", "const_current_task")),
        system_calls=SystemCalls(
            *("__x64_sys_", (112, 104, 96, 56, 72, 64), 80),  # di, si, dx, r10, r8, r9; ax
            *("syscall_exit_to_user_mode", ("do_syscall_64",), "x64_sys_call"),
        ),
        saved_registers=(
            *("ax", "cx", "dx", "bx", "sp", "bp", "si", "di", *(f"r{number}" for number in range(8, 16))),
            *("ip", "flags", "", "", "cs", "ss", "", "", "", ""),
        ),
        saved_mode=("cs", (1 << 64) - 1, (0x10,)),  # __KERNEL_CS
        user_tables=(("cr3", 1 << 12),),  # PTI_USER_PGTABLE_BIT
        identity=(),
        elsewhere=(),
        static_call_trampoline=5,  # jmp
        # Tables of the kernel's last 2 GiB have an entry for each 2 MiB; from there on it only takes entries away.
        room=RoomFacts(is_behind=True, page=2 << 20),
    ),
    # AT&T syntax, as DTrace's users know it from kgdb and objdump.
    capstone=Syntax("CS_ARCH_X86", ("CS_MODE_64",), "CS_OPT_SYNTAX_ATT"),
    word_directive=None,
    keystone=Syntax("KS_ARCH_X86", ("KS_MODE_64",), "KS_OPT_SYNTAX_ATT"),
    keystone_plain=Syntax("KS_ARCH_X86", ("KS_MODE_64",), "KS_OPT_SYNTAX_INTEL"),
    engine=EngineFacts(
        qiling="X8664",
        unicorn="x86",
        library_suffix="x86_64",
        start_words=2,
        has_segments=True,
        has_sizeless=False,
        cpu_model=None,
        page_size=None,
        interrupt_bias=0,
        armed=dict.fromkeys(range(1, 16), b"\xcc"),
        breakpoint_number=3,
        breakpoint_bias=1,
        file_breakpoint=None,
        translation_switch=None,
        tells_invalidations=False,
        system_registers=_MODEL_SPECIFIC,
        hidden=(),
        privilege=None,
        words=_WORDS,
        landmarks=_LANDMARKS,
        debug_registers=("dr0", "dr1", "dr2", "dr3"),
        state=AMD64_STATE,
    ),
)
