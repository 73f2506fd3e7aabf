"""Exceptions, interrupts and system calls of an x86 CPU in long mode: an event -> the guest's gate, stack and flags.

Intel SDM volume 3, chapter 6: gates are read from the guest's IDT, stacks from its TSS, and a fault during delivery can
become a double fault. Outside long mode nothing can be delivered: kernels leave the 32-bit start before they set up an
IDT.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from kinst.runtime.machine.exception_model import Event, Outcome, Source, SystemRegister, Taken, TakenWatcher
from kinst.runtime.machine.exceptions.amd64_cpuid import identify
from kinst.runtime.machine.exceptions.amd64_debug import DEBUG, LINE, WRITES_DR7, DataBreakpoints
from kinst.runtime.machine.exceptions.amd64_model_specific import INTERCEPTED
from kinst.runtime.machine.exceptions.amd64_segments import (
    EFER_SCE,
    MODE_CPL,
    MODE_CS64,
    MODE_INTERRUPT_SHADOW,
    Segment,
    descriptor,
    load_code,
    load_flat_code,
    load_flat_stack,
    load_null_stack,
)
from kinst.runtime.machine.exceptions.amd64_tables import is_in_tables, reads_descriptors
from kinst.runtime.machine.exceptions.names import AMD64_NAMES
from kinst.runtime.machine.held_pages import HELD
from kinst.runtime.machine.machine import Cpu, Space
from kinst.runtime.paging.amd64 import CR4_LA57, EFER_LMA, ERROR_PROTECTION, ERROR_USER, is_canonical
from kinst.runtime.paging.walker import Access, PageFault, Registers
from kinst.targets.errors import GuestError
from kinst.targets.values import dataclass

# Vectors (SDM table 6-1).
NMI, BREAKPOINT, INVALID_OPCODE, DOUBLE_FAULT = 2, 3, 6, 8
INVALID_TSS, SEGMENT_NOT_PRESENT, STACK_FAULT, GENERAL_PROTECTION, PAGE_FAULT = 10, 11, 12, 13, 14
_NAMES: Final = {
    0: "#DE", 1: "#DB", 2: "NMI", 3: "#BP", 4: "#OF", 5: "#BR", 6: "#UD", 7: "#NM", 8: "#DF", 10: "#TS", 11: "#NP",
    12: "#SS", 13: "#GP", 14: "#PF", 16: "#MF", 17: "#AC", 18: "#MC", 19: "#XM",
}  # fmt: skip
_WITH_ERROR_CODE: Final = frozenset({8, 10, 11, 12, 13, 14, 17, 21, 29, 30})
_CONTRIBUTORY: Final = frozenset({0, 10, 11, 12, 13})  # SDM table 6-4
EXTERNAL: Final = 256  # result of `pending` for the PIC, which gives its vector only with the acknowledge
_TRAP: Final = 257  # and for a data breakpoint

# RFLAGS (SDM figure 3-8 of volume 1).
TF, IF, NT, RF, VM = 1 << 8, 1 << 9, 1 << 14, 1 << 16, 1 << 17

# A 64-bit gate (SDM figure 6-8):
#
#   127      96 95           64 63           48 47 46 45 44 43  40 39   35 34 32 31      16 15            0
#   reserved    offset 63:32    offset 31:16    P  DPL   0  type   0       IST   selector   offset 15:0
_GATE_SIZE: Final = 16
_INTERRUPT_GATE, _TRAP_GATE = 14, 15

# Error codes that name a descriptor (SDM figure 6-7):  selector index 15:3  TI  IDT  EXT.
_IN_IDT: Final = 2

_TSS_STACKS: Final = 4  # RSP0 to RSP2 (SDM figure 7-11)
_TSS_INTERRUPT_STACKS: Final = 36  # IST1 to IST7

_LONGEST: Final = 15
_INVALID_OPCODE_RAISED: Final = Event(Source.INTERRUPT, INVALID_OPCODE)
_NEVER_DEFINED: Final = frozenset({"ud0", "ud1", "ud2", ".byte"})
CR4_OSFXSR: Final = 1 << 9
CR0_PE: Final = 1
CR4_PCE: Final = 1 << 8
_PRIVILEGE: Final = {"cs": 3}  # the bits of CPL
_RDPMC: Final = b"\x0f\x33"


class InterruptSource(Protocol):
    """The interrupt controllers as the CPUs see them."""

    def pending(self, cpu: int) -> int | None:
        """The vector for CPU number `cpu` to take now, `EXTERNAL` for one of the PIC, or None."""
        ...

    def acknowledge(self, cpu: int, pending: int) -> int:
        """Acknowledge what `pending` has given. Returns its vector."""
        ...


@dataclass(frozen=True, slots=True)
class _Gate:
    """An entry of the IDT."""

    selector: int
    offset: int
    stack: int  # IST
    type: int
    privilege: int
    is_present: bool


@dataclass(frozen=True, slots=True)
class _Interrupted:
    """What an interrupt saves, and what is restored if it cannot be delivered."""

    rip: int
    rsp: int
    rflags: int
    cs: int
    ss: int
    hflags: int


class _DeliveryError(Exception):
    """An exception during the delivery of another."""

    def __init__(self, vector: int, code: int) -> None:
        super().__init__()
        self.vector = vector
        self.code = code


class Amd64Exceptions:
    """The exceptions of x86 CPUs in long mode; implements `ExceptionModel`."""

    interrupt_mask: Final = ("rflags", IF, IF)
    system_registers: Final[frozenset[SystemRegister]] = frozenset()
    taken_names: Final = AMD64_NAMES
    instructions: Final = frozenset({"syscall", "cpuid", "rdtsc", "rdtscp"})

    def __init__(
        self,
        source: InterruptSource,
        space: Space,
        *,
        time_stamp: Callable[[], int],
        answer_reads: Callable[[Cpu], None],
        processors: int,
    ) -> None:
        """Only the boot CPU runs.

        Args:
            source: the interrupt controllers.
            space: the virtual memory of the CPU that runs.
            time_stamp: the time-stamp counter.
            answer_reads: executes the RDMSR that a CPU has been stopped at.
            processors: the number of CPUs that CPUID reports.
        """
        self._taken: TakenWatcher | None = None
        self._source, self._space, self.data_breakpoints = source, space, DataBreakpoints(space)
        self._time_stamp, self._answer_reads, self._processors = time_stamp, answer_reads, processors
        self._started = 1  # CPUs that run
        self._halted: set[int] = set()  # CPUs in hlt with interrupts off: only another CPU can wake them

    def watch(self, watcher: TakenWatcher | None) -> None:
        """See `ExceptionModel`."""
        self._taken = watcher

    def started(self) -> None:
        """Note that another CPU runs."""
        self._started += 1

    def stopped(self, number: int) -> None:
        """Note that an INIT has stopped a CPU."""
        self._started -= 1
        self._halted.discard(number)

    @property
    def is_halted_for_good(self) -> bool:
        """Whether no CPU will ever execute anything again. Many kernels end this way."""
        return len(self._halted) == self._started

    def turn_on(self, cpu: Cpu, instruction: int) -> bool:
        """Never called: there is no `translation_switch`."""
        return False

    def foreign_mode(self, cpu: Cpu) -> str:
        """Empty for 64-bit code (CS.L in long mode). Compatibility mode counts as foreign."""
        return "" if cpu.registers.get("hflags") & MODE_CS64 else "16- or 32-bit"

    def event(self, cpu: Cpu, event: Event) -> Outcome:
        """Deliver a vector or an undefined instruction, or wait after hlt."""
        registers = cpu.registers
        if event.source is Source.HALT:
            if not registers.get("rflags") & IF:
                self._halted.add(cpu.number)
            return Outcome.WAIT
        if event.source is Source.INVALID:
            return self._raise(cpu, GENERAL_PROTECTION if _is_forbidden(cpu) else INVALID_OPCODE, 0)
        if event.number in (INTERCEPTED, WRITES_DR7):
            (self._answer_reads if event.number == INTERCEPTED else self.data_breakpoints.written)(cpu)
            return Outcome.ANSWERED
        self.data_breakpoints.delivered(event.number)
        is_software = bool(registers.get("exception_is_int"))
        if is_software and not registers.get("cr0") & CR0_PE:
            raise GuestError(
                f"int {event.number:#x} in real mode calls the BIOS, which this machine does not have (Xen goes "
                "without it: --append no-real-mode)"
            )
        code = registers.get("error_code") if not is_software and event.number in _WITH_ERROR_CODE else 0
        # As QEMU does after a delivery: else it would turn its next exception into a double fault.
        registers.set("old_exception", -1)
        return self._raise(cpu, event.number, code, is_software=is_software)

    def name(self, event: Event) -> str:
        """The vector, with its mnemonic."""
        vector = event.number if event.source is Source.INTERRUPT else INVALID_OPCODE
        return f"exception {vector} ({_NAMES[vector]})" if vector in _NAMES else f"vector {vector:#x}"

    def is_undefined(self, event: Event) -> bool:
        """Whether it is #UD, as a vector or as an instruction that Unicorn found invalid."""
        return event.source is Source.INVALID or event == _INVALID_OPCODE_RAISED

    def is_native(self, cpu: Cpu) -> bool:
        """Whether CS is a 64-bit segment."""
        return bool(cpu.registers.get("hflags") & MODE_CS64)

    def lacks(self, cpu: Cpu, code: bytes, text: str) -> str | None:
        """An instruction that the disassembler knows is lacking, unless it is undefined by design or is SSE that the
        guest has not enabled."""
        mnemonic = text.partition(" ")[0]
        is_sse = "%xmm" in text and not mnemonic.startswith("v")
        if not text or mnemonic in _NEVER_DEFINED or (is_sse and not cpu.registers.get("cr4") & CR4_OSFXSR):
            return None
        return f"the emulator lacks {mnemonic}"

    def page_fault(self, cpu: Cpu, fault: PageFault) -> Outcome:
        """#PF with CR2, or #GP for an address that is not canonical."""
        if fault.code == HELD:
            return self.data_breakpoints.accessed(cpu)
        registers = cpu.registers
        width = 57 if registers.get("cr4") & CR4_LA57 else 48
        if registers.get("efer") & EFER_LMA and not is_canonical(fault.address, width):
            return self._raise(cpu, GENERAL_PROTECTION, 0)
        if fault.code & ERROR_USER and self._is_implicit(cpu, fault):
            self._space.held.execute_implicitly(lambda address: is_in_tables(registers, address), _PRIVILEGE)
            return Outcome.ANSWERED
        registers.set("cr2", fault.address)
        return self._raise(cpu, PAGE_FAULT, fault.code)

    def _is_implicit(self, cpu: Cpu, fault: PageFault) -> bool:
        """Whether an instruction of user mode was about to read a descriptor that the supervisor can read."""
        if fault.access is Access.FETCH or not is_in_tables(cpu.registers, fault.address):
            return False
        return reads_descriptors(_code(cpu)) and fault.code & ERROR_PROTECTION != 0

    def nothing_there(self, cpu: Cpu, address: int, access: Access) -> PageFault | None:
        """None: the bus of a PC floats, and reads give all ones."""
        return None

    def pending(self, cpu: Cpu) -> int | None:
        """A data breakpoint's trap first (SDM table 6-2), then NMI, then an interrupt of the controllers if IF is set
        and the next instruction is not in the shadow of STI or of a load of SS."""
        if not cpu.lines:
            return None
        if cpu.lines >> LINE & 1:
            return _TRAP
        registers = cpu.registers
        if cpu.lines >> 1 & 1:
            return NMI
        if not registers.get("rflags") & IF or registers.get("hflags") & MODE_INTERRUPT_SHADOW:
            return None
        return self._source.pending(cpu.number)

    def interrupt(self, cpu: Cpu, number: int) -> None:
        """Acknowledge at the controller and enter the handler."""
        self._halted.discard(cpu.number)
        if number in (NMI, _TRAP):
            cpu.line(LINE if number == _TRAP else 1)(False)  # noqa: FBT003 - a line's level
            vector = DEBUG if number == _TRAP else NMI
        else:
            vector = self._source.acknowledge(cpu.number, number)
        self._must_raise(cpu, vector, is_interrupt=number != _TRAP)

    def wakes(self, cpu: Cpu) -> bool:
        """Whether hlt ends: by an NMI, or by an interrupt that would be taken."""
        return self.pending(cpu) is not None

    def lines_changed(self, cpu: Cpu) -> None:
        """Do nothing for the lines, which no register shows. But this is called whenever a CPU is loaded."""
        self.data_breakpoints.loaded(cpu)

    def vectors(self, cpu: Cpu) -> Sequence[int]:
        """None: interrupts are delivered here."""
        return ()

    def entered(self, cpu: Cpu) -> tuple[Taken, Mapping[str, int]] | None:
        """Never called: there are no `vectors`."""
        return None

    def interrupted(self, cpu: Cpu) -> int | None:
        """Never called: there are no `vectors`."""
        return None

    def forget_registers(self) -> None:
        """Let go of the pages of data breakpoints."""
        self.data_breakpoints.forget()

    def read_register(self, cpu: Cpu, register: SystemRegister) -> int | None:
        """Never called: there are no `system_registers`."""
        return None

    def write_register(self, cpu: Cpu, register: SystemRegister, value: int) -> bool:
        """Never called: there are no `system_registers`."""
        return False

    def instruction(self, cpu: Cpu, name: str) -> bool:
        """SYSCALL, which Unicorn lacks; CPUID where it depends on the CPU's number; and RDTSC by the machine's clock.
        Unicorn's counter is the host's, which made delays 100 times too long under the instruction clock."""
        match name:
            case "syscall":
                self._system_call(cpu)
                return True
            case "cpuid":
                return identify(cpu, self._processors)
            case "rdtscp":
                cpu.registers.set("rcx", cpu.registers.get("tsc_aux") & 0xFFFF_FFFF)
        value = self._time_stamp()
        cpu.registers.set("rax", value & 0xFFFF_FFFF)
        cpu.registers.set("rdx", value >> 32)
        return True

    def _must_raise(self, cpu: Cpu, vector: int, *, is_interrupt: bool = False) -> None:
        """Deliver an exception or interrupt that must succeed. Raises GuestError if it cannot be delivered."""
        if self._raise(cpu, vector, 0, is_interrupt=is_interrupt) is not Outcome.RESUME:
            place, what = cpu.registers.get("rip"), self.name(Event(Source.INTERRUPT, vector))
            raise GuestError(f"CPU {cpu.number} at {place:#x}: {what}, which cannot be delivered")

    def _raise(
        self, cpu: Cpu, vector: int, code: int, *, is_software: bool = False, is_interrupt: bool = False
    ) -> Outcome:
        """Deliver an exception. A fault during delivery is combined by table 6-5; WEDGED or RESET after the third."""
        if not cpu.registers.get("efer") & EFER_LMA:
            return Outcome.WEDGED
        while True:
            before = _interrupted(cpu.registers)
            self._tell(cpu, before.rip, vector, code, is_interrupt=is_interrupt)
            try:
                pushed = code if vector in _WITH_ERROR_CODE and not is_software else None
                with self._space.held.lifted():
                    _deliver(cpu, before, vector, pushed, is_software=is_software)
                return Outcome.RESUME
            except PageFault as fault:
                cpu.registers.set("cr2", fault.address)
                second, second_code = PAGE_FAULT, fault.code
            except _DeliveryError as error:
                second, second_code = error.vector, error.code
            _restore(cpu.registers, before)
            if is_software:  # the fault belongs to the instruction: int3 has one byte, int n two
                cpu.registers.set("rip", before.rip - (1 if vector == BREAKPOINT else 2))
            if vector == DOUBLE_FAULT:
                return Outcome.RESET if _has_no_gates(cpu.registers) else Outcome.WEDGED
            if _makes_double_fault(vector, second, is_software=is_software):
                vector, code = DOUBLE_FAULT, 0
            else:
                vector, code = second, second_code
            is_software = is_interrupt = False

    def _tell(self, cpu: Cpu, pc: int, vector: int, code: int, *, is_interrupt: bool) -> None:
        """Tell of what is about to be delivered."""
        if self._taken is not None:
            address = cpu.registers.get("cr2") if vector == PAGE_FAULT else 0
            self._taken(Taken(vector, pc, address, code, is_interrupt))

    def _system_call(self, cpu: Cpu) -> None:
        """SYSCALL (SDM volume 2): to LSTAR at privilege 0, RIP in RCX, RFLAGS in R11.

        After the hook Unicorn adds the instruction's two bytes to RIP, whatever its value.
        """
        registers = cpu.registers
        if not registers.get("efer") & EFER_SCE:
            try:
                self._must_raise(cpu, INVALID_OPCODE)
            finally:
                registers.set("rip", registers.get("rip") - 2)
            return
        flags = registers.get("rflags")
        selector = registers.get("star") >> 32 & 0xFFFC
        registers.set("rcx", registers.get("rip") + 2)
        registers.set("r11", flags & ~RF)
        load_flat_code(registers, selector)
        load_flat_stack(registers, selector + 8)
        registers.set("rflags", flags & ~(registers.get("sfmask") | RF) | 2)
        registers.set("rip", registers.get("lstar") - 2 & 0xFFFF_FFFF_FFFF_FFFF)


def _is_forbidden(cpu: Cpu) -> bool:
    """Whether what Unicorn takes for undefined is RDPMC where CR4.PCE does not allow it (SDM volume 2)."""
    registers = cpu.registers
    if not registers.get("cs") & 3 or registers.get("cr4") & CR4_PCE:
        return False
    return _code(cpu).startswith(_RDPMC)


def _code(cpu: Cpu) -> bytes:
    """The bytes at RIP, as many as an instruction can have and as its page has."""
    pc = cpu.registers.get("rip")
    try:
        return cpu.fetch(pc, min(_LONGEST, -pc & 0xFFF or _LONGEST))
    except PageFault:
        return b""


def _makes_double_fault(first: int, second: int, *, is_software: bool) -> bool:
    """Whether a second exception while the first is delivered becomes a double fault (SDM table 6-5)."""
    if is_software:
        return False
    if first == PAGE_FAULT:
        return second == PAGE_FAULT or second in _CONTRIBUTORY
    return first in _CONTRIBUTORY and second in _CONTRIBUTORY


def _interrupted(registers: Registers) -> _Interrupted:
    return _Interrupted(*(registers.get(name) for name in ("rip", "rsp", "rflags", "cs", "ss", "hflags")))


def _restore(registers: Registers, before: _Interrupted) -> None:
    registers.set("cs", before.cs)
    registers.set("hflags", before.hflags)


def _deliver(cpu: Cpu, before: _Interrupted, vector: int, code: int | None, *, is_software: bool) -> None:
    """Enter a handler (SDM volume 3, 6.14). Memory is accessed with the handler's privilege, so CS changes first."""
    registers = cpu.registers
    current = before.hflags & 3
    # The tables are always read as the supervisor (SDM 4.6.1, implicit supervisor-mode accesses).
    registers.set("cs", before.cs & ~3)
    registers.set("hflags", before.hflags & ~MODE_CPL)
    external = 0 if is_software else int(vector > 31 or vector == NMI)  # EXT of error codes (SDM 6.13)
    gate = _gate(cpu, vector, current if is_software else 0, external)
    segment = _handler_segment(cpu, gate, current, external)
    privilege = current if segment.flags >> 10 & 1 else segment.privilege
    stack = _stack(cpu, gate, before.rsp, changes=privilege != current, privilege=privilege) & ~15
    # The stack was aligned to 16 bytes, which 64-bit mode does on every entry (SDM 6.14.2).
    frame = (before.ss, before.rsp, before.rflags, before.cs, before.rip)
    for word in frame if code is None else (*frame, code):
        stack = stack - 8 & 0xFFFF_FFFF_FFFF_FFFF
        cpu.store(stack, 8, word)
    if privilege != current:
        load_null_stack(registers, privilege)
    load_code(registers, Segment(gate.selector & ~3 | privilege, 0, segment.limit, segment.flags), privilege)
    cleared = TF | NT | RF | VM | (IF if gate.type == _INTERRUPT_GATE else 0)
    registers.set("rflags", before.rflags & ~cleared)
    registers.set("rsp", stack)
    registers.set("rip", gate.offset)


def _has_no_gates(registers: Registers) -> bool:
    """Whether the IDT has no entry at all. Its limit is 64 KiB after reset: a kernel that loads an empty one wants the
    triple fault, which resets a PC (`reboot=t` of Linux)."""
    return registers.get("idtr.limit") < _GATE_SIZE - 1


def _gate(cpu: Cpu, vector: int, caller: int, external: int) -> _Gate:
    """The gate of a vector; `caller` is the privilege that a software interrupt must have."""
    registers = cpu.registers
    code = vector << 3 | _IN_IDT | external
    start = vector * _GATE_SIZE
    if start + _GATE_SIZE - 1 > registers.get("idtr.limit"):
        raise _DeliveryError(GENERAL_PROTECTION, code)
    base = registers.get("idtr.base") + start
    low, high = cpu.load(base, 8), cpu.load(base + 8, 8)
    gate = _Gate(
        selector=low >> 16 & 0xFFFF,
        offset=low & 0xFFFF | low >> 32 & 0xFFFF_0000 | (high & 0xFFFF_FFFF) << 32,
        stack=low >> 32 & 7,
        type=low >> 40 & 31,
        privilege=low >> 45 & 3,
        is_present=bool(low >> 47 & 1),
    )
    if gate.type not in (_INTERRUPT_GATE, _TRAP_GATE) or gate.privilege < caller:
        raise _DeliveryError(GENERAL_PROTECTION, code)
    if not gate.is_present:
        raise _DeliveryError(SEGMENT_NOT_PRESENT, code)
    return gate


def _handler_segment(cpu: Cpu, gate: _Gate, current: int, external: int) -> Segment:
    """The gate's code segment, which must be 64-bit, present, and not less privileged than the interrupted code."""
    registers = cpu.registers
    index = gate.selector & ~7
    code = gate.selector & ~3 | external
    table = "ldtr" if gate.selector & 4 else "gdtr"
    if index == 0 or index + 7 > registers.get(f"{table}.limit"):
        raise _DeliveryError(GENERAL_PROTECTION, code if index else external)
    segment = descriptor(cpu.load(registers.get(f"{table}.base") + index, 8), gate.selector)
    if not segment.is_long_code or segment.privilege > current:
        raise _DeliveryError(GENERAL_PROTECTION, code)
    return segment


def _stack(cpu: Cpu, gate: _Gate, rsp: int, *, changes: bool, privilege: int) -> int:
    """The handler's stack: the gate's IST stack, that of the new privilege, or the interrupted one (SDM 6.14.5)."""
    if gate.stack:
        place = _TSS_INTERRUPT_STACKS + 8 * (gate.stack - 1)
    elif changes:
        place = _TSS_STACKS + 8 * privilege
    else:
        return rsp
    registers = cpu.registers
    if place + 7 > registers.get("tr.limit"):
        raise _DeliveryError(INVALID_TSS, registers.get("tr.selector") & ~3)
    return cpu.load(registers.get("tr.base") + place, 8)
