"""Segments and modes of an x86 CPU: descriptors in guest tables, and the CPU's state that results from them.

Unicorn's interface writes only a selector. What hardware loads with it (base, limit, attributes, and the mode that they
imply) is written to the words of the CPU's state in which QEMU keeps it (`EngineFacts.words`).
"""

from typing import Final

from kinst.runtime.paging.amd64 import CR0_PG, CR0_WP, CR4_PAE, EFER_LMA
from kinst.runtime.paging.walker import Registers
from kinst.targets.values import dataclass

# A segment descriptor (Intel SDM volume 3, figure 3-8), and 3.4.5.1 for the type of code and data:
#
#   63     56 55 54 53 52 51      48 47 46  45 44 43  40 39     32 31          16 15           0
#   base31:24 G  D  L  A  limit19:16 P  DPL    S  type   base23:16  base 15:0      limit 15:0
PRESENT: Final = 1 << 15  # these are in the high word, which QEMU keeps as flags
NOT_SYSTEM: Final = 1 << 12
CODE: Final = 1 << 11
LONG: Final = 1 << 21
BIG: Final = 1 << 22
GRANULAR: Final = 1 << 23
_DPL_SHIFT: Final = 13
_FLAGS: Final = 0x00F0_FF00
_ACCESSED: Final = 1 << 8
_WRITABLE: Final = 1 << 9  # for data; for code it means readable
_CODE_SEGMENT: Final = PRESENT | NOT_SYSTEM | CODE | _WRITABLE | _ACCESSED
_DATA_SEGMENT: Final = PRESENT | NOT_SYSTEM | _WRITABLE | _ACCESSED

# QEMU's summary of the mode (HF_... in target/i386/cpu.h).
MODE_CPL: Final = 3
MODE_INTERRUPT_SHADOW: Final = 1 << 3
MODE_CS32: Final = 1 << 4
MODE_SS32: Final = 1 << 5
MODE_BASES: Final = 1 << 6  # the bases of DS, ES or SS matter
MODE_PROTECTED: Final = 1 << 7
MODE_LONG: Final = 1 << 14
MODE_CS64: Final = 1 << 15
MODE_GUEST: Final = 1 << 21  # SVM's guest mode: `amd64_model_specific`

EFER_SCE: Final = 1 << 0
EFER_LME: Final = 1 << 8
CR0_CACHES_OFF: Final = 0x6000_0000
CR0_ET: Final = 1 << 4
CR0_PE: Final = 1 << 0
_DATA_SEGMENTS: Final = ("ds", "es", "ss", "fs", "gs")


@dataclass(frozen=True, slots=True)
class Segment:
    """A loaded segment register."""

    selector: int
    base: int
    limit: int
    flags: int

    @property
    def privilege(self) -> int:
        """The segment's privilege level, DPL: 0 to 3."""
        return self.flags >> _DPL_SHIFT & 3

    @property
    def is_long_code(self) -> bool:
        """Whether it may be the CS of a 64-bit handler."""
        wanted = PRESENT | NOT_SYSTEM | CODE | LONG
        return self.flags & (wanted | BIG) == wanted


def descriptor(word: int, selector: int) -> Segment:
    """The segment that a descriptor of 8 bytes describes."""
    high = word >> 32
    limit = word & 0xFFFF | high & 0xF_0000
    if high & GRANULAR:
        limit = limit << 12 | 0xFFF
    base = word >> 16 & 0xFF_FFFF | high & 0xFF00_0000
    return Segment(selector, base, limit, high & _FLAGS)


def load_segment(registers: Registers, name: str, segment: Segment) -> None:
    """Put a segment into register `name`; the caller sets the mode.

    The register itself is not written, because Unicorn would load FS and GS from the guest's tables.
    """
    registers.set(f"{name}.selector", segment.selector)
    registers.set(f"{name}.base", segment.base)
    registers.set(f"{name}.limit", segment.limit)
    registers.set(f"{name}.flags", segment.flags)


def load_code(registers: Registers, segment: Segment, privilege: int) -> None:
    """Load CS of a 64-bit handler, with its privilege level."""
    load_segment(registers, "cs", segment)
    mode = registers.get("hflags") & ~(MODE_CPL | MODE_BASES | MODE_INTERRUPT_SHADOW)
    registers.set("hflags", mode | MODE_CS64 | MODE_CS32 | MODE_SS32 | privilege)


def load_flat_code(registers: Registers, selector: int) -> None:
    """Load CS as SYSCALL does: 64-bit, privilege 0, without reading the tables (SDM volume 2, SYSCALL)."""
    load_code(registers, Segment(selector, 0, 0xFFFF_FFFF, _CODE_SEGMENT | LONG | GRANULAR), 0)


def load_flat_stack(registers: Registers, selector: int) -> None:
    """Load SS as SYSCALL does."""
    load_segment(registers, "ss", Segment(selector, 0, 0xFFFF_FFFF, _DATA_SEGMENT | GRANULAR | BIG))


def load_null_stack(registers: Registers, privilege: int) -> None:
    """Load SS as an interrupt from a lower privilege does: the null selector (SDM volume 3, 6.14.4)."""
    load_segment(registers, "ss", Segment(privilege, 0, 0, 0))


def enter_protected_mode(registers: Registers, code: int, data: int) -> None:
    """Enter 32-bit protected mode without paging, with flat segments of the given selectors, as boot loaders do."""
    _set_control(registers, _Control(cr0=CR0_ET | CR0_PE))
    load_segment(registers, "cs", Segment(code, 0, 0xFFFF_FFFF, _CODE_SEGMENT | BIG | GRANULAR))
    _load_flat_data(registers, data)
    _set_mode(registers, MODE_PROTECTED | MODE_CS32 | MODE_SS32)


def enter_real_mode(registers: Registers, page: int) -> None:
    """Enter real mode at the start of a 4 KiB page below 1 MiB, as after a start-up IPI (SDM volume 3, 8.4.4.1)."""
    _set_control(registers, _Control(cr0=CR0_CACHES_OFF | CR0_ET))
    load_segment(registers, "cs", Segment(page << 8, page << 12, 0xFFFF, _CODE_SEGMENT))
    for name in _DATA_SEGMENTS:
        load_segment(registers, name, Segment(0, 0, 0xFFFF, _DATA_SEGMENT))
    _set_mode(registers, MODE_BASES)
    registers.set("rip", 0)


def enter_long_mode(registers: Registers, tables: int) -> None:
    """Enter 64-bit mode at privilege 0, with the page tables at physical address `tables`."""
    cr0 = CR0_PG | CR0_WP | CR0_ET | CR0_PE
    _set_control(registers, _Control(cr0=cr0, cr3=tables, cr4=CR4_PAE, efer=EFER_LME | EFER_LMA))
    _set_mode(registers, MODE_PROTECTED | MODE_LONG)
    load_flat_code(registers, 0x10)
    _load_flat_data(registers, 0x18)


@dataclass(frozen=True, slots=True)
class _Control:
    cr0: int
    cr3: int = 0
    cr4: int = 0
    efer: int = 0


def _set_control(registers: Registers, control: _Control) -> None:
    """Set control registers; the caller sets the mode. The CPU need not be running, and its TLB must still be empty."""
    registers.set("state.cr0", control.cr0)
    registers.set("state.cr3", control.cr3)
    registers.set("state.cr4", control.cr4)
    registers.set("state.efer", control.efer)
    registers.set("rflags", 2)
    for table in ("gdtr", "idtr"):
        registers.set(f"{table}.base", 0)
        registers.set(f"{table}.limit", 0xFFFF)


def _set_mode(registers: Registers, mode: int) -> None:
    registers.set("hflags", registers.get("hflags") & MODE_GUEST | mode)


def _load_flat_data(registers: Registers, selector: int) -> None:
    for name in _DATA_SEGMENTS:
        load_segment(registers, name, Segment(selector, 0, 0xFFFF_FFFF, _DATA_SEGMENT | BIG | GRANULAR))
