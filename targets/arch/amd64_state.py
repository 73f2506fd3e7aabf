"""amd64: which bits of a CPU's state in the emulator are the guest's. Offsets: `struct CPUX86State` of Unicorn 2.1."""

from typing import Final

from kinst.targets.arch.state_layout import Field, Getter, StateLayout, float_status, words

_CONDITION_CODES: Final = 51  # CC_OP_NB: what flags are computed from, as a number of that computation
_ROOT: Final = (1 << 52) - 1  # of CR3: a physical address, and what is below it
_SEGMENTS: Final = ("es", "cs", "ss", "ds", "fs", "gs", "ldt", "tr")
_AVAILABLE_TSS: Final = {0x1, 0x3, 0x9, 0xB}  # of 16, 32 and 64 bits, available and busy: 286's has 1 and 3
_PRESENT: Final = 1 << 15

# HF_... in target/i386/cpu.h: what the translator knows of the mode, and where that comes from.
_CS32, _LMA, _CS64 = 1 << 4, 1 << 14, 1 << 15
_COPIES: Final = (
    # bits of hflags, the register that has them, and how far to the left they are there
    (1 << 7, "cr0", 7),  # PE
    (7 << 9, "cr0", 8),  # MP, EM, TS
    (_LMA, "efer", 4),
    (1 << 20, "efer", 8),  # SVME
    (1 << 22, "cr4", 13),  # OSFXSR
    (1 << 23, "cr4", 2),  # SMAP
)
# Privilege, interrupt shadow, sizes, bases, and the copies. Not SMM, SVM's guest mode, I/O breakpoints and MPX.
_MODE: Final = 0x00D0_CEFB


def _segment(name: str, offset: int) -> tuple[Field, ...]:
    return (
        Field(f"{name}.selector", offset, 4, 0xFFFF),
        Field(f"{name}.base", offset + 8, 8),
        Field(f"{name}.limit", offset + 16, 4),
        Field(f"{name}.flags", offset + 20, 4),  # the upper half of the descriptor, with bits of its base
    )


def _table(name: str, offset: int) -> tuple[Field, ...]:
    return Field(f"{name}.base", offset + 8, 8), Field(f"{name}.limit", offset + 16, 4, 0xFFFF)


def _agrees(get: Getter) -> str | None:
    mode = get("hflags")
    for bits, register, left in _COPIES:
        if mode & bits != get(register) << left & bits:
            return f"the mode {mode:#x} is not that of {register}"
    if mode & _CS64 and mode & (_LMA | _CS32) != _LMA | _CS32:
        return f"the mode {mode:#x} has 64-bit code outside long mode"
    flags = get("tr.flags")
    # The emulator ends its process when it needs a stack from a task state segment that is none.
    if flags & _PRESENT and flags >> 8 & 0xF not in _AVAILABLE_TSS:
        return f"the task register has flags {flags:#x}"
    return None


AMD64_STATE: Final = StateLayout(
    size=5568,
    agrees=_agrees,
    fields=(
        *words("rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15 rip", 0),
        Field("rflags", 136, 8, 0x3F_FFFD),
        *words("cc_dst cc_src cc_src2", 144),
        Field("cc_op", 168, 4, values=range(_CONDITION_CODES)),
        Field("df", 172, 4, values=(1, 0xFFFF_FFFF)),
        Field("hflags", 176, 4, _MODE),
        *(one for at, name in enumerate(_SEGMENTS) for one in _segment(name, 184 + 24 * at)),
        *_table("gdtr", 376),
        *_table("idtr", 400),
        Field("cr0", 424, 8, 0xE005_003F),
        Field("cr2", 440, 8),
        Field("cr3", 448, 8, _ROOT),
        Field("cr4", 456, 8, 0x7F_9FFF),  # neither VMX nor SMX
        Field("efer", 592, 8, 0x5D01),
        Field("fpstt", 604, 4, values=range(8)),
        *words("fpus fpuc", 608, 2),
        Field("fptags", 612, 1, count=8, values=(0, 1)),
        Field("fpregs", 624, 8, count=16),
        *words("fpop fpcs fpds", 752, 2),
        *words("fpip fpdp", 760),
        *float_status("fp_status", 776),
        Field("ft0", 784, 8, count=2),
        *float_status("mmx_status", 800),
        *float_status("sse_status", 808),
        Field("mxcsr", 816, 4, 0xFFFF),
        # What instructions use in between is behind the 32 vectors. Then come the halves of ymm, masks, halves of zmm.
        Field("vectors", 824, 8, count=(4800 - 824) // 8),
        Field("sysenter_cs", 4800, 4),
        *words("sysenter_esp sysenter_eip star vm_hsave lstar cstar fmask kernelgsbase", 4808),
        *words("tsc tsc_adjust tsc_deadline tsc_aux", 4872),
        Field("xcr0", 4904, 8, 0x207),
        *words("mcg_status misc_enable feature_control", 4912),
        Field("counters", 4936, 8, count=(5280 - 4936) // 8),
        Field("pat", 5280, 8),
        Field("pkru", 5304, 4),
        *words("spec_ctrl virt_ssbd", 5312),
        *words("error_code exception_is_int", 5384, 4),
        Field("exception_next_eip", 5392, 8),
        Field("dr0", 5400, 8, count=4),
        Field("dr6", 5448, 8, 0xFFFF_FFFF),
        Field("dr7", 5456, 8, 0xFFFF_FF00),  # one that is enabled has a pointer of the process
        Field("old_exception", 5496, 4, values={0xFFFF_FFFF, *range(32)}),
        Field("v_tpr", 5556, 1, 0xF),
        # Where in the host's code an access was made: it is written before it is read.
        Field("retaddr", 5560, 8, transient=True),
    ),
)
