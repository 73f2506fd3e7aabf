"""What is specific to a machine in images of Linux kernels (and Xen): the header by which it is booted, and the tables
of code that the kernel itself rewrites or looks up.

Layouts are those of include/linux and arch/*/include/asm of the versions named.
"""

from kinst.targets.arch.code_shape import Pattern
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address in a record: 4 bytes relative to themselves, 8 such bytes, or 8 absolute ones."""

    offset: int
    is_relative: bool = True
    is_wide: bool = False  # of a relative one


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """One version of a record. Lengths are fixed (`length`), in the record (`length_at`), or read off the code (0)."""

    size: int
    site: Pointer
    length: int = 0
    length_at: int | None = None
    length_width: int = 1
    replacement: Pointer | None = None  # code that is copied over the site and never runs in place
    replacement_length_at: int = 0
    probed_with: int | None = None  # sites that begin with this byte may be probed


@dataclass(frozen=True, slots=True)
class JumpLabelLayout:
    """One version of struct jump_entry (include/linux/jump_label.h). The low bits of a key's address are flags."""

    size: int
    code: Pointer  # the instruction that is a nop or a jump
    target: Pointer  # where the jump leads
    key: Pointer  # the static key that decides


@dataclass(frozen=True, slots=True)
class BootTable:
    """Where a table is, a section or else between two symbols (None: a section only), and how its records may be laid
    out."""

    section: str
    symbols: tuple[str, str] | None
    layouts: tuple[RecordLayout, ...]
    reason: str = "PATCHED_AT_BOOT"  # a name of `kinst.targets.instruction.Reason`
    # All that the kernel knows of an instruction is where its record says it is. So a displaced one stays what it was
    # if the record leads to the copy.
    leads: bool = False
    # Later the kernel writes to such an instruction only if it is within its text (kernel_text_address).
    within_text: bool = False


@dataclass(frozen=True, slots=True)
class CurrentTask:
    """Where a CPU in the kernel has the address of its current task.

    The first source is right except on the first instructions after an entry from user mode, where registers are still
    the user's: then the next one is.
    """

    registers: tuple[str, ...]
    per_cpu_bases: tuple[str, ...]  # registers that, added to the address of per-CPU data, give the CPU's own copy
    per_cpu_names: tuple[str, ...]  # the variable, by the names that it has had


@dataclass(frozen=True, slots=True)
class SystemCalls:
    """How the kernel's system call handlers are called (include/linux/syscalls.h, arch/*/include/asm): each gets a
    pointer to struct pt_regs, which holds the registers of user mode."""

    prefix: str  # of a handler's name, before the system call's
    arguments: tuple[int, ...]  # offsets of the six arguments in struct pt_regs
    result: int  # the offset there of what the call returns
    # The function that is called with the same pointer when a handler has returned; empty: there is none. Kernels that
    # inline it call handlers in one of `callers`: by way of `dispatcher`, or, if that is empty, by a register.
    exit: str
    callers: tuple[str, ...]
    dispatcher: str


@dataclass(frozen=True, slots=True)
class RoomFacts:
    """Where whoever starts a kernel can keep memory for trampolines, and map it: behind the kernel's last byte or in
    front of its first one. Code and data are in pages of their own."""

    is_behind: bool
    page: int  # bytes


@dataclass(frozen=True, slots=True)
class LinuxFacts:
    """What Linux kernels of one machine have."""

    boot_magic: bytes | None  # at byte 56 of the header that the image begins with; None: it has no such header
    tables: tuple[BootTable, ...]
    # Bytes of an instruction that a table lists without its length: those of the first pattern that matches.
    lengths: tuple[tuple[Pattern, int], ...]
    tracer_call: int | bytes  # where functions begin: bytes of one call or nop, or the nop that fills it
    # Registers that the tracer, called there, does not preserve (arch/*/kernel: ftrace_caller), besides flags: they
    # hold nothing when a function begins.
    tracer_scratch: tuple[str, ...]
    # Bytes that are written for an address and for a shift count, where a record of runtime_const points.
    runtime_constants: tuple[int, int]
    current: CurrentTask
    system_calls: SystemCalls
    # The members of struct pt_regs for the registers of the trap frame, in its order; empty: not saved there.
    saved_registers: tuple[str, ...]
    # What shows that saved registers are the kernel's own: a member, bits of it, and their values.
    saved_mode: tuple[str, int, tuple[int, ...]]
    # Bits of registers that are set while user mode's own page tables, which lack the kernel, are in use (PTI).
    user_tables: tuple[tuple[str, int], ...]
    # Labels around the code that turns the MMU on: it runs at its physical addresses. Empty: any code may.
    identity: tuple[tuple[str, str], ...]
    # Labels around code that runs elsewhere, or by page tables that have nothing else: its jumps lead nowhere.
    elsewhere: tuple[tuple[str, str], ...]
    static_call_trampoline: int | None  # bytes of the jump that the kernel rewrites; None: there are none
    room: RoomFacts


_BUG = BootTable(
    "__bug_table",
    ("__start___bug_table", "__stop___bug_table"),
    # struct bug_entry: s32 bug_addr_disp [, s32 file_disp, u16 line], u16 flags; without relative pointers 8-byte ones.
    (RecordLayout(12, Pointer(0)), RecordLayout(8, Pointer(0)), RecordLayout(24, Pointer(0, is_relative=False))),
    "BREAKPOINT",
)
JUMP_LABELS = "__jump_table", ("__start___jump_table", "__stop___jump_table")
JUMP_LABEL_LAYOUTS = (
    # s32 code, s32 target, long key (since 4.19); before: three absolute words.
    JumpLabelLayout(16, Pointer(0), Pointer(4), Pointer(8, is_wide=True)),
    JumpLabelLayout(24, *(Pointer(offset, is_relative=False) for offset in (0, 8, 16))),
)
_STATIC_KEYS = BootTable(
    *JUMP_LABELS, tuple(RecordLayout(one.size, one.code) for one in JUMP_LABEL_LAYOUTS), "STATIC_KEY"
)
_FTRACE = BootTable(
    "__mcount_loc",
    ("__start_mcount_loc", "__stop_mcount_loc"),
    (RecordLayout(8, Pointer(0, is_relative=False)),),
    "TRACER_CALL",
)
# The same, where no linker script collected it into __mcount_loc.
_PATCHABLE_ENTRIES = BootTable("__patchable_function_entries", None, _FTRACE.layouts, "TRACER_CALL")
# What every machine has, since the kernel's machine-independent code makes it.
COMMON_TABLES = (_BUG, _STATIC_KEYS, _FTRACE, _PATCHABLE_ENTRIES)
