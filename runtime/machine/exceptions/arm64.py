"""arm64: an event that Unicorn reports -> exception entry as the architecture does it (DDI 0487 D1.3).

Entry saves PSTATE and the return address, sets ESR and FAR, switches to the target level's stack with DAIF masked and
jumps to VBAR + offset. Unicorn executes `eret` itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

from kinst.runtime.machine.devices.arm.arm_timer import TIMER_REGISTERS
from kinst.runtime.machine.exception_model import Event, Outcome, Source, SystemRegister, Taken, TakenWatcher
from kinst.runtime.machine.exceptions.arm64_debug import REGISTERS, DebugRegisters
from kinst.runtime.machine.exceptions.arm64_lacking import RegisterBank, access_in, register_of
from kinst.runtime.machine.exceptions.arm64_routing import (
    LINE_FIQ,
    LINE_IRQ,
    abort_level,
    asserted,
    interrupt_level,
    level_of,
    synchronous_level,
)
from kinst.runtime.machine.exceptions.arm64_syndrome import (
    ALIGNMENT_FAULT,
    CLASS_SHIFT,
    EXTERNAL_ABORT,
    Class,
    data_abort,
    immediate16,
    syndrome,
    undefined,
)
from kinst.runtime.machine.exceptions.names import ARM64_NAMES, TakenNames
from kinst.runtime.machine.held_pages import HELD
from kinst.runtime.paging.walker import Access, PageFault
from kinst.targets.errors import MachineError

if TYPE_CHECKING:
    from kinst.runtime.machine.machine import Cpu


class Number(IntEnum):
    """QEMU's exception numbers as UC_HOOK_INTR of Unicorn 2.1.4 gives them."""

    # PC at the instruction; also smc, hlt, inaccessible system registers, an unaligned PC. After it: a software step.
    UNDEFINED = 1
    SVC = 2  # PC after it
    FETCH_ABORT = 3  # with the virtual TLB, only for hardware breakpoints
    DATA_ABORT = 4  # with the virtual TLB, only for misaligned exclusives
    BREAKPOINT = 7  # PC at it
    HVC = 11  # PC after it
    SMC = 13  # PC after it; only if SCR_EL3.SMD is clear


class Vector(IntEnum):
    """Offsets in a group of vectors (D1.3.1)."""

    SYNCHRONOUS = 0x000
    IRQ = 0x080
    FIQ = 0x100


DAIF = 0xF << 6
MASK_IRQ, MASK_FIQ = 1 << 7, 1 << 6

SMC_INSTRUCTION = 0xD4000003  # with imm16 masked off

_SYSTEM = 0x354  # bits 31:22 of msr, mrs, sys and the like
_OP1_EL2 = 4  # bits 18:16 of registers that only EL2 and EL3 have
_SIMD = 7  # bits 27:25 of SIMD and floating point
_NAMES: Mapping[int, str] = {
    Number.UNDEFINED: "an undefined instruction",
    Number.SVC: "svc",
    Number.FETCH_ABORT: "a hardware breakpoint",
    Number.DATA_ABORT: "a misaligned exclusive",
    Number.BREAKPOINT: "brk",
    Number.HVC: "hvc",
    Number.SMC: "smc",
}
# The calls: their class, and the lowest level that takes them.
_CALLS: Mapping[int, tuple[Class, int]] = {
    Number.SVC: (Class.SVC, 1),
    Number.HVC: (Class.HVC, 2),
    Number.SMC: (Class.SMC, 3),
}
_NEVER_DEFINED = frozenset({"udf", ".inst", "hvc", "smc", "svc", "brk", "hlt", "eret", "dcps1", "dcps2", "dcps3"})

MPIDR = 0x8000_0000  # MPIDR_EL1 of CPU 0; other CPUs have their number in the lowest bits
MPIDR_EL1 = SystemRegister(3, 0, 0, 0, 5)
ISR_EL1 = SystemRegister(3, 0, 12, 1, 0)
MIDR_EL1 = SystemRegister(3, 0, 0, 0, 0)
ID_AA64PFR0_EL1 = SystemRegister(3, 0, 0, 4, 0)
PFR0_EL3 = 2 << 12  # EL3 is there, in AArch64 and AArch32
PFR0_GIC = 1 << 24  # the interrupt controller has system registers

# Unicorn's A57 reports EL2, EL3 and performance counters. The board has EL0 and EL1, and EL2 on request. An A57 lacks
# pages of 16 KiB, but Unicorn's MMU and ours have them, and kernels that are built for these need nothing else.
IDENTITY: Mapping[SystemRegister, tuple[int, int]] = {  # register -> its value without EL2, with EL2
    SystemRegister(3, 0, 0, 1, 1): (0x0001_0001, 0x0001_1001),  # ID_PFR1_EL1
    SystemRegister(3, 0, 0, 1, 2): (0x0001_0006, 0x0001_0006),  # ID_DFR0_EL1
    ID_AA64PFR0_EL1: (0x0022, 0x0222),
    SystemRegister(3, 0, 0, 5, 0): (0x1030_5006, 0x1030_5006),  # ID_AA64DFR0_EL1
    SystemRegister(3, 0, 0, 7, 0): (0x0010_1124, 0x0010_1124),  # ID_AA64MMFR0_EL1, with TGran16
}


Reset = Callable[["Cpu", int, int], None]  # a CPU, where it begins, and its argument


class Firmware(Protocol):
    """What answers hvc or smc below the guest (PSCI)."""

    def call(self, cpu: "Cpu") -> Outcome:
        """Answer the call in x0 to x7, in x0."""
        ...


def _no_device(cpu: "Cpu", what: str) -> MachineError:
    return MachineError(
        f"at {cpu.registers.get('pc'):#x}: {what}: a function that is called without booting has no devices"
    )


@dataclass(slots=True)
class Arm64Exceptions:
    """The exceptions of one board. `highest`: the highest level that guests run at. Below EL3 the machine's firmware
    answers smc, and hvc if it is EL1. `shown`: bits of ID_AA64PFR0_EL1 for what the board has besides; real CPUs show
    EL3, whoever is at it. `banks`: system registers that Unicorn lacks."""

    firmware: Firmware
    timer: RegisterBank
    debug: DebugRegisters
    highest: int = 1
    shown: int = 0
    banks: Iterable[RegisterBank] = ()
    midr: int | None = None  # the value of MIDR_EL1; None: Unicorn's
    _taken: TakenWatcher | None = field(default=None, init=False)
    _is_started: bool = field(default=False, init=False)
    _reset: Reset | None = field(default=None, init=False)
    _resets: dict[int, tuple[int, int]] = field(default_factory=dict, init=False)  # entry and argument, by CPU

    interrupt_mask: tuple[str, int, int] | None = ("pstate", MASK_IRQ | MASK_FIQ, 0)
    instructions: frozenset[str] = frozenset()
    taken_names: TakenNames = ARM64_NAMES

    # The timer's, those that have another value in Unicorn than on the board's CPU, and those that enable breakpoints.
    system_registers: frozenset[SystemRegister] = (
        TIMER_REGISTERS | REGISTERS | {*IDENTITY, MIDR_EL1, MPIDR_EL1, ISR_EL1}
    )

    @property
    def has_el2(self) -> bool:
        """Whether guests may run at EL2."""
        return self.highest >= 2

    def watch(self, watcher: TakenWatcher | None) -> None:
        """See `ExceptionModel`."""
        self._taken = watcher

    def start(self, reset: Reset) -> None:
        """Note that the board is started: its devices can be accessed from now on. `reset` sets the registers of a CPU
        that is switched on."""
        self._is_started, self._reset = True, reset
        self.debug.start()

    def reset_before_running(self, cpu: "Cpu", entry: int, argument: int) -> None:
        """Reset a CPU that is switched on, once the engine has loaded it: Unicorn crashes when a system register is
        written in a saved state."""
        self._resets[cpu.number] = entry, argument

    def turn_on(self, cpu: "Cpu", instruction: int) -> bool:
        """Never called: there is no `translation_switch`."""
        return False

    def foreign_mode(self, _cpu: "Cpu") -> str:
        """Empty: A32 is not emulated."""
        return ""

    def event(self, cpu: "Cpu", event: Event) -> Outcome:
        """Deliver the guest's own breakpoint, call or exception. Calls of firmware are answered here."""
        if event.source is Source.HALT:
            return Outcome.WAIT
        registers = cpu.registers
        pc = registers.get("pc")
        if event.source is Source.INVALID or event.number in (Number.UNDEFINED, Number.FETCH_ABORT):
            return self._undefined(cpu, pc, event.source)
        call = _CALLS.get(event.number)
        if call is not None:
            return self._called(cpu, *call, pc)
        match event.number:
            case Number.BREAKPOINT:
                self._enter_synchronous(cpu, syndrome(Class.BRK, immediate16(_word(cpu, pc))), pc)
            case Number.DATA_ABORT:
                self._misaligned(cpu, pc)
            case _:
                return Outcome.WEDGED
        return Outcome.RESUME

    def name(self, event: Event) -> str:
        """The kind of exception."""
        number = event.number if event.source is Source.INTERRUPT else Number.UNDEFINED
        return _NAMES.get(number, f"QEMU's exception {number}")

    def is_undefined(self, event: Event) -> bool:
        """Whether it is an undefined instruction and not another cause with the same number."""
        return event.source is Source.INVALID or (event.source is Source.INTERRUPT and event.number == Number.UNDEFINED)

    def is_native(self, cpu: "Cpu") -> bool:
        """True: there is only A64."""
        return True

    def lacks(self, cpu: "Cpu", code: bytes, text: str) -> str | None:
        """An instruction that the disassembler knows is lacking. System registers may be missing, or belong to another
        level: an access to EL2's is a sign of a hypervisor that was started on the wrong board."""
        word = int.from_bytes(code[:4], "little")
        if word >> 22 == _SYSTEM:
            is_hypervisor_s = word >> 20 & 1 and word >> 16 & 7 == _OP1_EL2 and not self.has_el2
            return f"{text} needs EL2, which --machine virt-el2-arm64 has" if is_hypervisor_s else None
        mnemonic = text.partition(" ")[0]
        is_off = word >> 25 & 7 == _SIMD and cpu.registers.get("cpacr_el1") >> 20 & 3 != 3
        return None if not text or mnemonic in _NEVER_DEFINED or is_off else f"the emulator lacks {mnemonic}"

    def page_fault(self, cpu: "Cpu", fault: PageFault) -> Outcome:
        """An instruction or data abort with the walker's fault status code."""
        registers = cpu.registers
        pc = registers.get("pc")
        if fault.code == HELD:
            return self._watched(cpu, fault, pc)
        minimum = abort_level(cpu, self.highest) if fault.code == EXTERNAL_ABORT else 1
        is_lower = level_of(cpu) < synchronous_level(cpu, self.highest, minimum)
        if fault.access is Access.FETCH:
            exception = Class.FETCH_LOWER if is_lower else Class.FETCH_SAME
            self._enter_synchronous(cpu, syndrome(exception, fault.code), pc, address=pc, minimum=minimum)
            return Outcome.RESUME
        exception = Class.DATA_LOWER if is_lower else Class.DATA_SAME
        specific = data_abort(_word(cpu, pc), fault.code, fault.access)
        self._enter_synchronous(cpu, syndrome(exception, specific), pc, address=fault.address, minimum=minimum)
        return Outcome.RESUME

    def nothing_there(self, cpu: "Cpu", address: int, access: Access) -> PageFault | None:
        """The fault is a synchronous external abort."""
        return PageFault(address, access, EXTERNAL_ABORT)

    def pending(self, cpu: "Cpu") -> int | None:
        """FIQ before IRQ. A mask applies only to interrupts that go to the current level (D1.3.6.3)."""
        if not cpu.lines:
            return None
        lines, pstate = asserted(cpu), cpu.registers.get("pstate")
        level = pstate >> 2 & 3
        for line, mask in ((LINE_FIQ, MASK_FIQ), (LINE_IRQ, MASK_IRQ)):
            if lines >> line & 1:
                target = interrupt_level(cpu, self.highest, line)
                if 1 < target > level or (target == max(level, 1) and not pstate & mask):
                    return line
        return None

    def interrupt(self, cpu: "Cpu", number: int) -> None:
        """Enter the IRQ or FIQ vector; the return address is the next instruction."""
        registers = cpu.registers
        target = interrupt_level(cpu, self.highest, number)
        vector, pc = Vector.FIQ if number == LINE_FIQ else Vector.IRQ, registers.get("pc")
        if self._taken is not None:
            self._taken(Taken(vector, pc, is_interrupt=True))
        _enter(cpu, vector, target, pc)

    def wakes(self, cpu: "Cpu") -> bool:
        """wfi ends with any interrupt, masked or not (D1.6.1)."""
        return bool(cpu.lines)

    def lines_changed(self, cpu: "Cpu") -> None:
        """Do nothing for the lines, since ISR_EL1 is computed when it is read. But this is called whenever a CPU is
        loaded, so its debug registers and its reset are handled here."""
        self.debug.loaded(cpu)
        wanted = self._resets.pop(cpu.number, None)
        if wanted is not None and self._reset is not None:
            self._reset(cpu, *wanted)

    def vectors(self, cpu: "Cpu") -> Sequence[int]:
        """None: interrupts are delivered here."""
        return ()

    def entered(self, cpu: "Cpu") -> tuple[Taken, Mapping[str, int]] | None:
        """Never called: there are no `vectors`."""
        return None

    def interrupted(self, cpu: "Cpu") -> int | None:
        """Never called: there are no `vectors`."""
        return None

    def forget_registers(self) -> None:
        """Reset the debug registers: no breakpoint or watchpoint is enabled."""
        self.debug.forget()

    def read_register(self, cpu: "Cpu", register: SystemRegister) -> int | None:
        """MRS of a timer register, or of one whose value in Unicorn is wrong."""
        if register in TIMER_REGISTERS:
            return self._timer(cpu).read(cpu, register)
        level = cpu.registers.get("pstate") >> 2 & 3
        if level == 0 or register in REGISTERS:
            return None
        if register == ISR_EL1:
            lines = asserted(cpu)
            return (lines >> LINE_IRQ & 1) << 7 | (lines >> LINE_FIQ & 1) << 6
        if register == MPIDR_EL1:
            return MPIDR | cpu.number if level >= 2 else None  # EL1 sees VMPIDR_EL2
        if register == MIDR_EL1:
            return self.midr if level >= 2 else None  # EL1 sees VPIDR_EL2
        value = IDENTITY[register][self.has_el2]
        return value | self.shown if register == ID_AA64PFR0_EL1 else value

    def write_register(self, cpu: "Cpu", register: SystemRegister, value: int) -> bool:
        """MSR of a timer register."""
        if register in REGISTERS:
            self.debug.written(cpu, register, value)
        return register in TIMER_REGISTERS and self._timer(cpu).write(cpu, register, value)

    def _timer(self, cpu: "Cpu") -> RegisterBank:
        """The timer. Raises MachineError: there is none."""
        if not self._is_started:
            raise _no_device(cpu, "the generic timer")
        return self.timer

    def instruction(self, cpu: "Cpu", name: str) -> bool:
        """Never called: `instructions` is empty."""
        return False

    def _watched(self, cpu: "Cpu", fault: PageFault, pc: int) -> Outcome:
        """Handle an access to a watched page: deliver a watchpoint, or execute the instruction."""
        found = self.debug.hit(cpu, fault, _word(cpu, pc))
        if found is None:
            return Outcome.ANSWERED
        self._enter_synchronous(cpu, found[0], pc, address=found[1])
        return Outcome.RESUME

    def _called(self, cpu: "Cpu", exception: Class, level: int, pc: int) -> Outcome:
        """Deliver a call of a level, or answer it if guests do not run there; `pc` is behind the call."""
        if level > self.highest:
            return self._call(cpu, exception, pc)
        self._enter_synchronous(cpu, syndrome(exception, immediate16(_word(cpu, pc - 4))), pc, minimum=level)
        return Outcome.RESUME

    def _call(self, cpu: "Cpu", exception: Class, pc: int) -> Outcome:
        """Call the firmware, which is below the guest; `pc` is behind the call."""
        if self._taken is not None:
            self._tell(syndrome(exception, immediate16(_word(cpu, pc - 4))), pc, 0)
        return self.firmware.call(cpu)

    def _tell(self, esr: int, pc: int, address: int) -> None:
        """Tell of a synchronous exception."""
        if self._taken is not None:
            self._taken(Taken(esr >> CLASS_SHIFT, pc, address, esr))

    def _undefined(self, cpu: "Cpu", pc: int, source: Source) -> Outcome:
        """Deliver what Unicorn reports as an undefined instruction or a prefetch abort, steps and breakpoints
        included."""
        debugged = self.debug.syndrome(cpu) if source is Source.INTERRUPT else None
        if debugged is not None:
            self._enter_synchronous(cpu, debugged, pc)
            return Outcome.RESUME
        if pc & 3:
            self._enter_synchronous(cpu, syndrome(Class.PC_ALIGNMENT), pc, address=pc)
            return Outcome.RESUME
        word, level = _word(cpu, pc), level_of(cpu)
        if word & 0xFFE0001F == SMC_INSTRUCTION and level and self.highest == 2:
            cpu.registers.set("pc", pc + 4)
            return self._call(cpu, Class.SMC, pc + 4)
        if level and source is Source.INTERRUPT and self._is_lacking(cpu, word):
            cpu.registers.set("pc", pc + 4)
            return Outcome.ANSWERED
        trapping = cpu.registers.get("exception.target") if self.highest == 3 and source is Source.INTERRUPT else 0
        if level < trapping == 3:  # a trap that EL3 has set (CPTR_EL3, MDCR_EL3, SCR_EL3)
            self._enter_synchronous(cpu, cpu.registers.get("exception.syndrome"), pc, minimum=3)
            return Outcome.RESUME
        self._enter_synchronous(cpu, undefined(word, level), pc)
        return Outcome.RESUME

    def _is_lacking(self, cpu: "Cpu", word: int) -> bool:
        """Whether the instruction accesses a system register that the board has and Unicorn lacks. It is executed."""
        register = register_of(word)
        return register is not None and any(access_in(bank, cpu, register, word) for bank in self.banks)

    def _misaligned(self, cpu: "Cpu", pc: int) -> None:
        registers = cpu.registers
        word = _word(cpu, pc)
        is_lower = not registers.get("pstate") >> 2 & 3
        access = Access.READ if word >> 22 & 1 else Access.WRITE  # L of the exclusives
        exception = Class.DATA_LOWER if is_lower else Class.DATA_SAME
        base = registers.get("sp" if word >> 5 & 31 == 31 else f"x{word >> 5 & 31}")
        self._enter_synchronous(cpu, syndrome(exception, data_abort(word, ALIGNMENT_FAULT, access)), pc, address=base)

    def _enter_synchronous(
        self, cpu: "Cpu", esr: int, return_address: int, *, address: int | None = None, minimum: int = 1
    ) -> None:
        self._tell(esr, return_address, address or 0)
        registers = cpu.registers
        target = synchronous_level(cpu, self.highest, minimum)
        registers.set(f"esr_el{target}", esr)
        if address is not None:
            registers.set(f"far_el{target}", address)
        _enter(cpu, Vector.SYNCHRONOUS, target, return_address)


def _enter(cpu: "Cpu", vector: Vector, target: int, return_address: int) -> None:
    """Enter an exception at level `target`: AArch64.TakeException (D1.3.5)."""
    registers = cpu.registers
    pstate = registers.get("pstate")
    level, has_own_stack = pstate >> 2 & 3, pstate & 1
    group = 0x400 if level < target else 0x200 if has_own_stack else 0x000
    # Unicorn has the live stack pointer and banked ones, and swaps them only in its own entry and in eret.
    registers.set(f"sp_el{level if has_own_stack else 0}", registers.get("sp"))
    registers.set("sp", registers.get(f"sp_el{target}"))
    registers.set(f"elr_el{target}", return_address)
    registers.set("pstate", DAIF | target << 2 | 1)
    registers.set(f"spsr_el{target}", pstate)
    registers.set("pc", registers.get(f"vbar_el{target}") + group + vector)


def _word(cpu: "Cpu", pc: int) -> int:
    """The guest's own instruction at `pc`; 0 (udf) if it cannot be read."""
    try:
        return int.from_bytes(cpu.fetch(pc, 4), "little")
    except PageFault:
        return 0
