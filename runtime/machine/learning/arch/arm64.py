"""arm64: the generic timer's counters, and svc, hvc and smc."""

from collections.abc import Callable
from typing import Final

from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.runtime.engine.system_instructions import Encoding
from kinst.runtime.machine.devices.arm.arm_timer import COUNTER, COUNTER_FREQUENCY, VIRTUAL_COUNTER
from kinst.runtime.machine.exception_model import SystemRegister
from kinst.runtime.machine.learning.arch.machine import Counters, ScratchMachine

_CALLS: Final = frozenset({2, 11, 13})  # svc, hvc, smc: the PC is after them


def _attach(engine: QilingMachine, counters: Counters, offset: Callable[[SystemRegister], int]) -> None:
    known = {_encoding(one): one for one in (COUNTER, VIRTUAL_COUNTER, COUNTER_FREQUENCY)}

    def read(encoding: Encoding) -> int:
        register = known[encoding]
        if register == COUNTER_FREQUENCY:
            return counters.frequency
        return counters.tick() + offset(register) & (1 << 64) - 1

    engine.on_system_registers(known, read, lambda _encoding, _value: True)


def _encoding(register: SystemRegister) -> Encoding:
    return register.op0, register.op1, register.crn, register.crm, register.op2


def _step_over(engine: QilingMachine, _counters: Counters, number: int, pc: int, _word: int) -> int | None:
    if number not in _CALLS:
        return None
    engine.live.set("x0", 0)  # success: SMCCC 2.7
    return pc


MACHINE: Final = ScratchMachine("x0", "x30", (COUNTER, VIRTUAL_COUNTER), _attach, _step_over)
