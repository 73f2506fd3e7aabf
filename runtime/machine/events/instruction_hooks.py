"""Instructions that the engine reports -> the exception model, or what turns address translation on."""

from collections.abc import Callable
from typing import Protocol

from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.runtime.machine.address_space import AddressSpace
from kinst.runtime.machine.cpu import VirtualCpu
from kinst.runtime.machine.exception_model import ExceptionModel, SystemRegister
from kinst.runtime.machine.memory import PhysicalMemory
from kinst.runtime.machine.translation_switch import TranslationSwitch
from kinst.targets.arch.facts import ArchFacts


class Hooked(Protocol):
    """The machine: `kinst.runtime.machine.system.System`."""

    arch: ArchFacts
    engine: QilingMachine
    memory: PhysicalMemory
    space: AddressSpace
    current: VirtualCpu
    exceptions: ExceptionModel

    def notice_deadlines(self) -> None:
        """Read the deadlines of all timers again."""
        ...


def hook_instructions(system: Hooked) -> None:
    """Have the exception model handle what it knows: instructions by name, and accesses of system registers."""
    exceptions = system.exceptions
    for name in sorted(exceptions.instructions):
        system.engine.on_instruction(name, lambda name=name: exceptions.instruction(system.current, name))  # type: ignore[misc]
    if not exceptions.system_registers:
        return
    known = {
        (register.op0, register.op1, register.crn, register.crm, register.op2): register
        for register in exceptions.system_registers
    }

    def read(encoding: tuple[int, int, int, int, int]) -> int | None:
        register: SystemRegister | None = known.get(encoding)
        return None if register is None else exceptions.read_register(system.current, register)

    def write(encoding: tuple[int, int, int, int, int], value: int) -> bool:
        register = known.get(encoding)
        is_done = register is not None and exceptions.write_register(system.current, register, value)
        system.notice_deadlines()  # a write to a timer's register is no write to a device's window
        return is_done

    system.engine.on_system_registers(known, read, write)


def code_watch(system: Hooked) -> Callable[[int], None]:
    """A function that is called with each physical page before its code runs."""
    bits = system.arch.engine.translation_switch
    if bits is None:
        return lambda _page: None
    switch = TranslationSwitch(system.engine, bits, lambda found: system.exceptions.turn_on(system.current, found))
    return lambda page: switch.search(system.memory, page) if system.space.is_physical else None
