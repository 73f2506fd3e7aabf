"""What a machine's exception model does: an event that Unicorn reports -> what the hardware would have done.

Unicorn never delivers an exception or interrupt by itself: it reports a number, and the model saves PC and status, sets
the cause, changes mode and stack, and jumps to the guest's vector. The trap path sees every event first: an event that
belongs to a probe never comes here. If the PC is in a trampoline, it is replaced by the address in the original code
before the model is called: the site, or after the displaced instruction the next one. So models need not know about
trampolines, and the guest never sees one.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Protocol

from kinst.runtime.machine.machine import Cpu
from kinst.runtime.paging.walker import Access, PageFault
from kinst.targets.values import dataclass


class Source(IntEnum):
    """How Unicorn reported an event."""

    INTERRUPT = 0  # UC_HOOK_INTR: `number` is QEMU's exception number
    INVALID = 1  # UC_HOOK_INSN_INVALID or the error of that name: undefined instruction (amd64 ud2; riscv64 ebreak)
    HALT = 2  # the CPU stopped by itself: hlt, wfi (number 0)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that stopped the guest. The CPU's PC register is what Unicorn left; the model knows what it means."""

    source: Source
    number: int


class Outcome(IntEnum):
    """The result of delivering an event."""

    RESUME = 0  # continue at the CPU's PC
    WAIT = 1  # the CPU waits for an interrupt (hlt, wfi); PC is the instruction after
    WEDGED = 2  # nothing can be delivered (e.g. triple fault): the run ends with GuestError
    ANSWERED = 3  # the model was the firmware that the guest has called: continue after the call
    RESET = 4  # nothing can be delivered, which is how guests ask for a reset: the machine is reset


class Names(Protocol):
    """The names of what a machine's CPUs take; `exceptions.names` has them."""

    def all(self) -> Sequence[tuple[bool, str]]:
        """All names, each once, with whether they are interrupts."""
        ...

    def of(self, taken: "Taken") -> str:
        """The name of what is taken."""
        ...


@dataclass(frozen=True, slots=True)
class SystemRegister:
    """An arm64 system register by encoding, as UC_HOOK_INSN for MRS and MSR reports it."""

    op0: int
    op1: int
    crn: int
    crm: int
    op2: int


@dataclass(frozen=True, slots=True)
class Taken:
    """An exception or interrupt that a CPU is about to take. `exceptions.names` has the names of numbers."""

    number: int  # arm64: the exception class, or the vector of an interrupt; riscv64: the cause; amd64: the vector
    pc: int  # of the instruction that raised it, or that it comes before; of a call, what follows it
    address: int = 0  # FAR_ELx, xtval or CR2, if the CPU sets it
    syndrome: int = 0  # ESR_ELx, xcause or the error code
    is_interrupt: bool = False


TakenWatcher = Callable[[Taken], None]


class ExceptionModel(Protocol):
    """One machine's way of taking exceptions and interrupts."""

    def watch(self, watcher: TakenWatcher | None) -> None:
        """Call `watcher` before a CPU takes one, with all registers as they were; None: call nobody."""
        ...

    @property
    def taken_names(self) -> Names:
        """The names of what it takes."""
        ...

    @property
    def interrupt_mask(self) -> tuple[str, int, int] | None:
        """How the guest masks interrupts, so that a pending one is taken as soon as they are unmasked: a register, its
        bits that mask all interrupts when they are 1, and those that do when they are 0. None: Unicorn takes interrupts
        itself."""
        ...

    @property
    def system_registers(self) -> frozenset[SystemRegister]:
        """Registers whose MRS and MSR come to `read_register` and `write_register`; empty except on arm64."""
        ...

    @property
    def instructions(self) -> frozenset[str]:
        """The instructions that `instruction` handles, by Unicorn's UC_X86_INS_ names in lower case, e.g. "cpuid". "in"
        and "out" always go to the ports' devices. Empty except on amd64."""
        ...

    def turn_on(self, cpu: Cpu, instruction: int) -> bool:
        """Execute what `EngineFacts.translation_switch` describes, except for the PC and the TLB; False: leave it to
        Unicorn."""
        ...

    def foreign_mode(self, cpu: Cpu) -> str:
        """The CPU's mode, if the machine's dissector cannot read its code; empty if it can."""
        ...

    def event(self, cpu: Cpu, event: Event) -> Outcome:
        """Deliver an event that no probe claimed: the guest's own breakpoint, exception or system call, or a wait."""
        ...

    def name(self, event: Event) -> str:
        """The event in the terms of the machine's manual, for messages."""
        ...

    def is_undefined(self, event: Event) -> bool:
        """Whether the event is an undefined instruction at the PC."""
        ...

    def is_native(self, cpu: Cpu) -> bool:
        """Whether the CPU executes what `ArchFacts` describes (amd64: 64-bit code)."""
        ...

    def lacks(self, cpu: Cpu, code: bytes, text: str) -> str | None:
        """Why an instruction that real CPUs have was undefined, as a sentence without a full stop: "the emulator lacks
        sh1add (Zba)". None if it is undefined on all CPUs (ud2), or if guests test for it (a CSR). `text` is its
        disassembly."""
        ...

    def page_fault(self, cpu: Cpu, fault: PageFault) -> Outcome:
        """Deliver a failed translation (or an access to no memory at all); PC is the faulting instruction."""
        ...

    def nothing_there(self, cpu: Cpu, address: int, access: Access) -> PageFault | None:
        """The fault for an access that was translated to a physical address without RAM or device. None if reads give
        all ones and writes are ignored (amd64). `address` is virtual."""
        ...

    def pending(self, cpu: Cpu) -> int | None:
        """The interrupt to take now, given `cpu.lines`, masks and priorities; None if there is none or it is masked."""
        ...

    def interrupt(self, cpu: Cpu, number: int) -> None:
        """Enter the handler of a pending interrupt."""
        ...

    def wakes(self, cpu: Cpu) -> bool:
        """Whether a waiting CPU continues. On riscv64 and arm64 it does so even if the interrupt is globally masked."""
        ...

    def lines_changed(self, cpu: Cpu) -> None:
        """Called before the CPU continues after `cpu.lines` changed: write them to where the guest reads them (mip)."""
        ...

    def entered(self, cpu: Cpu) -> tuple[Taken, Mapping[str, int]] | None:
        """At one of `vectors`: the interrupt that Unicorn has delivered, and the registers outside the trap frame that
        it has changed, as they were before; None: the code is there for another reason."""
        ...

    def vectors(self, cpu: Cpu) -> Sequence[int]:
        """The addresses of handlers of interrupts that Unicorn delivers itself (riscv64); none if `interrupt` delivers
        them."""
        ...

    def interrupted(self, cpu: Cpu) -> int | None:
        """At one of `vectors`: the PC of the interrupted kernel code; None for user code, and for an exception."""
        ...

    def read_register(self, cpu: Cpu, register: SystemRegister) -> int | None:
        """MRS of a hooked system register; None: let Unicorn do it."""
        ...

    def write_register(self, cpu: Cpu, register: SystemRegister, value: int) -> bool:
        """MSR of a hooked system register; False: let Unicorn do it as well."""
        ...

    def forget_registers(self) -> None:
        """Reset the registers that are kept here; the caller resets those in Unicorn."""
        ...

    def instruction(self, cpu: Cpu, name: str) -> bool:
        """Called before a hooked instruction runs. True: it was executed here, and Unicorn skips it."""
        ...
