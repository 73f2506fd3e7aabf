"""The record that every machine fills. Its docstring is the checklist for a fourth machine."""

from collections.abc import Mapping, Sequence
from enum import IntEnum

from kinst.targets.arch.code_shape import CodeShape
from kinst.targets.arch.linux import LinuxFacts
from kinst.targets.arch.relocations import RelocationFacts
from kinst.targets.arch.state_layout import StateLayout
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class InFiles:
    """How files of boot loaders name a machine."""

    u_boot: str  # boot/image.c: in FIT images
    legacy: int  # include/image.h, IH_ARCH_: in legacy images
    pe: int  # IMAGE_FILE_MACHINE_: in PE files


@dataclass(frozen=True, slots=True)
class Syntax:
    """How capstone or keystone is opened: names of its own constants, for the one file that imports it."""

    arch: str
    modes: tuple[str, ...]  # taken together
    syntax: str | None  # None: there is only one


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """How Qiling and Unicorn call the machine, and where they need help. Names are those of their constants."""

    qiling: str  # in QL_ARCH
    unicorn: str  # of the module unicorn.<name>_const, whose constants begin with UC_<NAME>_
    library_suffix: str  # what the names of its library's functions for the machine end with
    start_words: int  # what it keeps for the start of each translated instruction: words of the guest's state
    has_segments: bool  # PCs count from the base of a segment, which need not be 0
    has_sizeless: bool  # an undefined instruction has no size for it; else what has none is no instruction
    cpu_model: str | None  # None: Unicorn's own choice
    page_size: int | None  # None: the same
    interrupt_bias: int  # what Unicorn adds to the PC before it calls UC_HOOK_INTR, whatever the exception
    # Instruction size -> the bytes that arm a site in memory: the breakpoint that Unicorn traps fastest. It may differ
    # from the one in files (`ArchFacts.breakpoints`).
    armed: Mapping[int, bytes]
    breakpoint_number: int  # UC_HOOK_INTR's number for it
    breakpoint_bias: int  # the PC that the hook reads minus its address
    # UC_HOOK_INTR's number for the breakpoint that files have, where another one arms sites in memory; None: it is the
    # same, or Unicorn ends the run.
    file_breakpoint: int | None
    # Bits of the instruction that turns address translation on, and their values, where Unicorn keeps using stale
    # translations: `ExceptionModel.turn_on` mends that. None: Unicorn does it right.
    translation_switch: tuple[int, int] | None
    tells_invalidations: bool  # UC_HOOK_INSN reports what invalidates the TLB by address; else nobody needs it
    # Registers that no general instruction names: arm64's by op0, op1, CRn, CRm and op2; amd64's model-specific ones by
    # their number.
    system_registers: Mapping[str, tuple[int, ...]]
    hidden: tuple[str, ...]  # registers that its interface reads but cannot write
    privilege: str | None  # must not be 0 while its interface reads other system registers; None: no such register
    # Words of its CPU state that the interface does not know: name -> (offset, size); and registers whose offsets
    # confirm that the state is laid out so. Offsets count from the first of these.
    words: Mapping[str, tuple[int, int]]
    landmarks: Mapping[str, int]
    # Registers of breakpoints that its state has pointers to, behind them; empty: it has none.
    debug_registers: tuple[str, ...]
    state: StateLayout  # which of its CPU state is the guest's


@dataclass(frozen=True, slots=True)
class UnwindFacts:
    """How functions are left and entered, in DWARF's register numbers for the machine."""

    dwarf_registers: Sequence[int]  # DWARF's number -> index in the trap frame; -1: not in it
    preserved: Sequence[int]  # those that a function gives back as it got them; without the stack pointer
    # Of a frame that only its frame pointer describes: CFA - frame pointer, and where the return address and the
    # caller's frame pointer are, relative to the CFA.
    frame_record: tuple[int, int, int]
    # Bits of an address; those above may hold a pointer authentication code, except bit 55, which selects the half of
    # the address space. None: return addresses are plain.
    signed_above: int | None


@dataclass(frozen=True, slots=True)
class JumpFacts:
    """The jump that a site becomes, and which instructions besides the site's own may be displaced for it."""

    size: int  # bytes of the jump that reaches the trampolines
    reach: int  # how far it goes, in bytes
    # Bytes of the jump through a dead register for what that does not reach, and how far it goes; None: there is none.
    far: tuple[int, int] | None
    # Bytes of the short jump, and how far it reaches from its own address, back and forth; None: there is none.
    short: tuple[int, int, int] | None
    joins: bool  # whether it may cover the following instructions: `References` in rewriter/jumps find what leads there
    # Kinds that must stay where they are in code whose computed branches land on pads only, since hardware checks it:
    # pads, and calls, which a jump from a trampoline would not look like.
    checked: frozenset[IntEnum]


@dataclass(frozen=True, slots=True)
class CpuNumberFacts:
    """The number that a CPU itself has, as code of the kernel reads it."""

    mask: int  # its bits in what is read
    is_cheap: bool  # no hypervisor is asked for it
    # Who may not read it is told by two instructions: code that has the first and not the second may. None: all may.
    only_with: tuple[bytes, bytes] | None


@dataclass(frozen=True, slots=True)
class ArchFacts:
    """Everything that differs between machines and needs no code. No field of it, nor of the records in it, has a
    default: None is given where a field's comment says what it means.

    To add a machine:

    1. Fill this record in `targets/arch/<name>.py`, with the machine's `Kind`, and list it in the registry there.
    2. Write what needs code, in a file <name>.py of each package below. The package's `registry.py` finds it by name,
       except that the one of runtime/trap/arch lists its machines.

       rewriter/arch               DISSECTOR: instructions -> kinds and verdicts; trampolines (`Dissector`)
       rewriter/addresses          USES: what code does with the addresses that it makes (`UsesOf`)
       rewriter/liveness           EFFECTOR: the registers and flags that instructions read and write (`Effector`)
       rewriter/standalone         GENERATOR: jumps, and trampolines that count and record themselves (`CodeGenerator`)
       runtime/trap/arch           EMULATOR: the effects of displaced instructions (`Emulator`)
       runtime/unwinding/arch      STACK: what instructions do to the stack, and which are calls (`StackEffects`)
       runtime/paging              WALKER: page tables -> translations and faults (`Walker`)
       runtime/readout/tables      READINGS: how CPUs may read Linux' page tables (`Readings`)
       runtime/machine/learning/arch  MACHINE: the time and calls of firmware in a copy of a CPU (`ScratchMachine`)

       Only if trampolines jump back (`return_breakpoint` is None), <name>_moved.py in runtime/trap/arch makes those of
       code that the image moved (`moved_trampoline`). Else `jump` in rewriter/standalone/<name>/words.py makes
       the jumps that end them where hits are only counted.
    3. Say in `runtime/machine/exceptions/<name>.py` how its CPUs take exceptions and interrupts (`ExceptionModel`).
    4. Describe a board: a file in `targets/machines/boards/`, listed in the registry there, and BOARD in
       `runtime/machine/boards/<board>.py`, which makes the exception model and the devices.
    5. Write down what its instructions are, and what they do: `tests/vectors/<name>.py`.

    tests/targets/arch/test_registry.py fails for what is missing.
    """

    name: str
    elf_machine: int  # e_machine
    in_files: InFiles  # what other files than ELF call it
    breakpoints: Mapping[int, bytes]  # instruction size -> what is written at the site; amd64: every size -> cc
    slot_size: int  # bytes of a slot: a trampoline has one or more
    longest_trampoline: int  # bytes of the slots of the longest one
    return_breakpoint: int | None  # where in a slot a second breakpoint ends it; None: it ends with a jump back
    instruction_alignment: int  # of instruction starts, in bytes
    trampoline_window: int  # trampolines are at the end of the aligned window of this size that holds the sites

    kinds: type[IntEnum]  # the machine's own `Kind`, stored in the manifest
    emulable: frozenset[IntEnum]  # kinds that run in a trampoline since that is cheaper, but can be emulated as well
    # Kinds that are emulated, though a trampoline can do the same. One that ends with a breakpoint holds them
    # unchanged, unless they are calls; one that jumps back is made by `moved_trampoline`.
    movable: frozenset[IntEnum]
    control_only: frozenset[IntEnum]  # kinds that affect control flow only: nops, and direct jumps that are no calls
    # Kinds that are emulated since they refer to where they are, though other words in a slot can do the same:
    # <name>_out_of_line.py in runtime/trap/arch makes these (`out_of_line_trampoline`).
    out_of_line: frozenset[IntEnum]

    # The trap frame: one unsigned 64-bit word a register, in this order; `frame[name]` is `registers.index(name)`.
    registers: tuple[str, ...]
    pc: int
    stack_pointer: int
    frame_pointer: int
    # The privilege of the interrupted code: a register (its index in the trap frame, or the engine's name of one that
    # code cannot read), the bits that hold it, and their value in user mode.
    user_mode: tuple[int | str, int, int]
    mode_names: Mapping[int, str]  # value of those bits -> the manual's name of that privilege
    register_names: Mapping[str, int]  # D's R_ constant -> index in the frame, as FreeBSD's regs.d has them
    writable_bits: Mapping[int, int]  # index in the frame -> the bits of it that a program may write

    # The C ABI: how a function is called.
    link_register: int | None  # None: the return address is on the stack
    pushed_return: int  # bytes of it that a call leaves there; arguments without a register are after them
    arguments: tuple[int, ...]  # integer argument registers
    return_value: int
    char_is_signed: bool
    long_double_is_x87: bool  # 80 bits, in 16 bytes; else it is IEEE 754's binary128
    c_registers: Mapping[str, int]  # what firmware or a kernel's start sets before C code runs
    c_symbols: Mapping[str, str]  # registers that hold the address of a symbol throughout a program
    unwind: UnwindFacts
    cpu_number: CpuNumberFacts

    operand_registers: Mapping[str, int]  # registers and parts of them, as the assembler spells them, without %
    repeated: (
        bytes | None
    )  # a regular expression: instructions that are begun anew for each element; None: there are none
    nops: tuple[bytes, ...]  # what an instruction that does nothing begins with: static probes stand at one
    sized_nops: Mapping[int, bytes]  # size -> the instruction of that size that does nothing, as compilers write it

    excluded_functions: frozenset[str]  # the machine's own trap path by name, beside the common rules

    relocations: RelocationFacts
    code_shape: CodeShape
    jump: JumpFacts
    linux: LinuxFacts

    capstone: Syntax
    # The assembler's directive for an instruction given by its word; None: instructions are no words.
    word_directive: str | None
    keystone: Syntax | None  # None: keystone lacks the machine
    keystone_plain: Syntax | None  # the same for text without % and $
    engine: EngineFacts
