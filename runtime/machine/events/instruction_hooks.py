"""Instructions that the engine reports -> the exception model, or what turns address translation on."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kinst.runtime.machine.exception_model import SystemRegister
from kinst.runtime.machine.translation_switch import TranslationSwitch

if TYPE_CHECKING:
    from kinst.runtime.machine.system import System


def hook_instructions(system: "System") -> None:
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


def code_watch(system: "System") -> Callable[[int], None]:
    """A function that is called with each physical page before its code runs."""
    bits = system.arch.engine.translation_switch
    if bits is None:
        return lambda _page: None
    switch = TranslationSwitch(system.engine, bits, lambda found: system.exceptions.turn_on(system.current, found))
    return lambda page: switch.search(system.memory, page) if system.space.is_physical else None
