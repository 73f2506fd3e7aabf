"""RISC-V traps: an event -> the guest's own mtvec or stvec, by the Privileged Architecture 1.12.

Unicorn takes interrupts itself once they are in mip, exactly where the guest enables them. Devices drive bits of mip
that software cannot write; the engine writes them into the CPU's state.

    cause        63   62                     0         mstatus ... 12 11  8 7 6 5 4 3 2 1
                 I    exception or bit of mip                      MPP SPP MPIE SPIE MIE SIE
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from kinst.runtime.machine.exception_model import Event, Outcome, Source, SystemRegister, Taken, TakenWatcher
from kinst.runtime.machine.exceptions.names import RISCV64_NAMES, TakenNames
from kinst.runtime.machine.exceptions.riscv64_extensions import extension_instruction
from kinst.runtime.machine.machine import Cpu
from kinst.runtime.paging.riscv64 import ACCESS_FAULT
from kinst.runtime.paging.walker import Access, PageFault, Registers

USER, SUPERVISOR, MACHINE = 0, 1, 3
# Exception codes, Privileged Architecture table 3.6.
_ILLEGAL, _BREAKPOINT, _ECALL_FROM_USER = 2, 3, 8
_NAMES: Final = {
    0: "a misaligned jump",
    _ILLEGAL: "an illegal instruction",
    _BREAKPOINT: "ebreak",
    _ECALL_FROM_USER: "ecall",
}
# Bits of mip: software, timer and external interrupt of S and of M mode.
SSIP, MSIP, STIP, MTIP, SEIP, MEIP = 1, 3, 5, 7, 9, 11
_DRIVEN: Final = 1 << MSIP | 1 << MTIP | 1 << SEIP | 1 << MEIP  # driven by devices; M mode can write the others
_SIE, _MIE, _SPIE, _MPIE, _SPP = 1 << 1, 1 << 3, 1 << 5, 1 << 7, 1 << 8
_MPP_SHIFT: Final = 11
_LOW, _HIGH = False, True  # levels of a line
_TIME: Final = 0xC01


class Firmware(Protocol):
    """What answers ecall from S mode if the guest starts in that mode (SBI)."""

    def call(self, cpu: Cpu) -> Outcome:
        """Answer the call in a0 to a7, in a0 and a1, and continue after it."""
        ...


class Riscv64Exceptions:
    """The exceptions of RISC-V harts; implements `kinst.runtime.machine.exception_model.ExceptionModel`."""

    interrupt_mask: tuple[str, int, int] | None = None
    system_registers: frozenset[SystemRegister] = frozenset()
    instructions: frozenset[str] = frozenset()
    taken_names: TakenNames = RISCV64_NAMES

    def __init__(self, read_time: Callable[[], int]) -> None:
        """`read_time` gives the value of the time CSR."""
        self._taken: TakenWatcher | None = None
        self._read_time = read_time
        self._firmware: Firmware | None = None
        self._driven = _DRIVEN
        self._reset: Callable[[Cpu, int, int], None] | None = None
        self._resets: dict[int, tuple[int, int]] = {}  # entry and argument, by hart

    def run_above(self, firmware: Firmware) -> None:
        """Let the guest start in S mode with `firmware` in place of M mode: the timer's interrupt then belongs to S
        mode."""
        self._firmware = firmware
        self._driven = _DRIVEN | 1 << STIP

    def on_reset(self, reset: Callable[[Cpu, int, int], None]) -> None:
        """Let `reset` set the registers of harts that are started, given the entry and the argument."""
        self._reset = reset

    def reset_before_running(self, cpu: Cpu, entry: int, argument: int) -> None:
        """Reset a hart that is started, once the engine has loaded it: CSRs of a saved state cannot be written."""
        self._resets[cpu.number] = entry, argument

    # -- events -------------------------------------------------------------------------------------------------------

    def turn_on(self, cpu: Cpu, instruction: int) -> bool:
        """Write satp from S mode. What cannot be written (an unknown mode, or with mstatus.TVM) is left to Unicorn."""
        registers, target, source = cpu.registers, instruction >> 7 & 31, instruction >> 15 & 31
        if registers.get("priv") != SUPERVISOR:
            return False
        before, value = registers.get("satp"), registers.get(f"x{source}")
        registers.set("satp", value)
        if registers.get("satp") != value:
            return False
        if target:
            registers.set(f"x{target}", before)
        return True

    def foreign_mode(self, _cpu: "Cpu") -> str:
        """Empty: XLEN is fixed."""
        return ""

    def watch(self, watcher: TakenWatcher | None) -> None:
        """See `ExceptionModel`."""
        self._taken = watcher

    def event(self, cpu: Cpu, event: Event) -> Outcome:
        """Deliver an exception that no probe claimed."""
        pc = cpu.registers.get("pc")
        if event.source is Source.HALT:
            return self._wait(cpu)
        if event.source is Source.INVALID:  # Unicorn reports ebreak only as invalid
            return self._trap(cpu, _BREAKPOINT, pc, pc)
        if event.number == _ILLEGAL:
            return self._illegal(cpu, pc)
        if event.number == _ECALL_FROM_USER:  # Unicorn reports this for every mode
            privilege = cpu.registers.get("priv")
            if self._firmware is not None and privilege == SUPERVISOR:
                self._tell(_ECALL_FROM_USER + SUPERVISOR, 0, pc)
                return self._firmware.call(cpu)
            return self._trap(cpu, _ECALL_FROM_USER + privilege, 0, pc)
        return self._trap(cpu, event.number, 0, pc)

    def name(self, event: Event) -> str:
        """The kind of exception."""
        number = event.number if event.source is Source.INTERRUPT else _BREAKPOINT
        return _NAMES.get(number, f"cause {number}")

    def is_undefined(self, event: Event) -> bool:
        """Whether it is an illegal instruction."""
        return event.source is Source.INTERRUPT and event.number == _ILLEGAL

    def is_native(self, cpu: Cpu) -> bool:
        """True: there is only one mode of decoding."""
        return True

    def lacks(self, cpu: Cpu, code: bytes, text: str) -> str | None:
        """Instructions of extensions are lacking. CSRs that do not exist are not: firmware tests for them."""
        name = extension_instruction(int.from_bytes(code[:4], "little"))
        return name and f"the emulator lacks {name}"

    def _illegal(self, cpu: Cpu, pc: int) -> Outcome:
        instruction = _fetch(cpu, pc)
        if self._emulate_rdtime(cpu, instruction):
            cpu.registers.set("pc", pc + 4)
            return Outcome.RESUME
        return self._trap(cpu, _ILLEGAL, instruction, pc)

    def _emulate_rdtime(self, cpu: Cpu, instruction: int) -> bool:
        """rdtime, which Unicorn does not have: csrrs rd, time, x0 (Unprivileged ISA chapter 8).

        csr 31:20   rs1 19:15   funct3 14:12   rd 11:7   1110011
        """
        if instruction >> 20 != _TIME or instruction & 0xFF07F != 0x2073:
            return False
        if not self._may_read_time(cpu.registers):
            return False
        rd = instruction >> 7 & 31
        if rd:
            cpu.registers.set(f"x{rd}", self._read_time())
        return True

    def _may_read_time(self, registers: Registers) -> bool:
        """Whether mcounteren.TM and scounteren.TM let the mode read the time (3.1.11, 4.1.5). S mode may where this
        machine is its firmware, which would set mcounteren."""
        privilege = registers.get("priv")
        if privilege == MACHINE or (privilege == SUPERVISOR and self._firmware is not None):
            return True
        with machine_mode(registers):
            allowed = bool(registers.get("mcounteren") & 2)
            return allowed and (privilege != USER or bool(registers.get("scounteren") & 2))

    def page_fault(self, cpu: Cpu, fault: PageFault) -> Outcome:
        """Deliver a page or access fault; the code is the cause."""
        return self._trap(cpu, fault.code, fault.address, cpu.registers.get("pc"))

    def nothing_there(self, cpu: Cpu, address: int, access: Access) -> PageFault | None:
        """The fault is an access fault."""
        return PageFault(address, access, ACCESS_FAULT[access])

    def _tell(self, cause: int, value: int, pc: int) -> None:
        """Tell of an exception."""
        if self._taken is not None:
            self._taken(Taken(cause, pc, value, cause))

    def _trap(self, cpu: Cpu, cause: int, value: int, pc: int) -> Outcome:
        """Enter a trap: save, disable interrupts, change mode, jump (3.1.6.1, 3.1.8). Where this machine is
        the firmware, S mode gets all traps, delegated or not."""
        self._tell(cause, value, pc)
        registers = cpu.registers
        privilege = registers.get("priv")
        registers.set("priv", MACHINE)  # M-mode CSRs read as garbage from other modes
        status = registers.get("mstatus")
        if privilege != MACHINE and (self._firmware is not None or registers.get("medeleg") >> cause & 1):
            registers.set("sepc", pc)
            registers.set("scause", cause)
            registers.set("stval", value)
            status = _entered(status, _SIE, _SPIE) & ~_SPP | (_SPP if privilege == SUPERVISOR else 0)
            registers.set("mstatus", status)
            vector, privilege = registers.get("stvec"), SUPERVISOR
        else:
            registers.set("mepc", pc)
            registers.set("mcause", cause)
            registers.set("mtval", value)
            status = _entered(status, _MIE, _MPIE) & ~(3 << _MPP_SHIFT) | privilege << _MPP_SHIFT
            registers.set("mstatus", status)
            vector, privilege = registers.get("mtvec"), MACHINE
        registers.set("priv", privilege)
        registers.set("pc", vector & ~3)  # exceptions go to the base, in vectored mode as well (3.1.7)
        return Outcome.RESUME

    # -- interrupts ---------------------------------------------------------------------------------------------------

    def lines_changed(self, cpu: Cpu) -> None:
        """Put the devices' interrupts into mip. Writing its software-writable bits makes Unicorn check all of them.

        A software interrupt that firmware sends to S mode is only set here: S mode clears it in sip itself.
        """
        wanted = self._resets.pop(cpu.number, None)
        if wanted is not None and self._reset is not None:
            self._reset(cpu, *wanted)
        registers = cpu.registers
        with machine_mode(registers):
            mip = registers.get("mip")
            registers.set("mip", mip & ~self._driven | cpu.lines & (self._driven | 1 << SSIP))
        cpu.line(SSIP)(_LOW)

    def _wait(self, cpu: Cpu) -> Outcome:
        """Wait after wfi. A software interrupt may already be pending: its line is raised again, so that the caller
        calls `wakes`."""
        if self._firmware is not None and cpu.registers.get("sip") & 1 << SSIP:
            cpu.line(SSIP)(_HIGH)
        return Outcome.WAIT

    def pending(self, cpu: Cpu) -> int | None:
        """None: Unicorn takes interrupts itself."""
        return None

    def interrupt(self, cpu: Cpu, number: int) -> None:
        """Never called: nothing is `pending`."""

    def wakes(self, cpu: Cpu) -> bool:
        """Whether any enabled interrupt is pending, whatever the global enable says (3.3.3)."""
        with machine_mode(cpu.registers):
            return bool(cpu.registers.get("mip") & cpu.registers.get("mie"))

    def vectors(self, cpu: Cpu) -> Sequence[int]:
        """The handlers in mtvec and stvec, which hold a base and whether each interrupt has its own entry (3.1.7)."""
        with machine_mode(cpu.registers):
            return [place for name in ("mtvec", "stvec") for place in _entries(cpu.registers.get(name))]

    def entered(self, cpu: Cpu) -> tuple[Taken, Mapping[str, int]] | None:
        """See `ExceptionModel`."""
        registers = cpu.registers
        level = "m" if registers.get("priv") == MACHINE else "s"
        cause, status = registers.get(f"{level}cause"), registers.get(f"{level}status")
        if not cause >> 63:
            return None
        before = status >> _MPP_SHIFT & 3 if level == "m" else int(bool(status & _SPP))
        pc, number = registers.get(f"{level}epc"), cause & (1 << 63) - 1
        return Taken(number, pc, syndrome=cause, is_interrupt=True), {"priv": before}

    def interrupted(self, cpu: Cpu) -> int | None:
        """See `ExceptionModel`. The cause and the previous mode are in the CSRs of the mode that handles the trap."""
        registers = cpu.registers
        is_machine = registers.get("priv") == MACHINE
        level = "m" if is_machine else "s"
        if not registers.get(f"{level}cause") >> 63:
            return None
        status = registers.get(f"{level}status")
        before = status >> _MPP_SHIFT & 3 if is_machine else status & _SPP
        return registers.get(f"{level}epc") if before else None

    # -- not on this machine ------------------------------------------------------------------------------------------

    def forget_registers(self) -> None:
        """Do nothing: no register is kept here."""

    def read_register(self, cpu: Cpu, register: SystemRegister) -> int | None:
        """Never called: only arm64 has `system_registers`."""
        return None

    def write_register(self, cpu: Cpu, register: SystemRegister, value: int) -> bool:
        """Never called: only arm64 has `system_registers`."""
        return False

    def instruction(self, cpu: Cpu, name: str) -> bool:
        """Never called: only amd64 has `instructions`."""
        return False


@contextmanager
def machine_mode(registers: Registers) -> Iterator[None]:
    """M mode inside this context, since its CSRs read as garbage from other modes."""
    privilege = registers.get("priv")
    registers.set("priv", MACHINE)
    try:
        yield
    finally:
        registers.set("priv", privilege)


def _entered(status: int, enable: int, previous: int) -> int:
    """mstatus with the interrupt enable moved to its previous-enable bit."""
    return status & ~(enable | previous) | (previous if status & enable else 0)


def _entries(vector: int) -> Sequence[int]:
    base, is_vectored = vector & ~3, vector & 3
    if not base:
        return ()
    return [base + 4 * cause for cause in (SSIP, MSIP, STIP, MTIP, SEIP, MEIP)] if is_vectored else (base,)


def _fetch(cpu: Cpu, pc: int) -> int:
    """The instruction at `pc`; 0 if it cannot be read."""
    try:
        size = 2 if pc & 0xFFF == 0xFFE else 4  # the second half may be on a page that is not mapped, or not needed
        word = int.from_bytes(cpu.fetch(pc, size), "little")
        if word & 3 != 3:
            return word & 0xFFFF
        return word if size == 4 else word | int.from_bytes(cpu.fetch(pc + 2, 2), "little") << 16
    except PageFault:
        return 0
