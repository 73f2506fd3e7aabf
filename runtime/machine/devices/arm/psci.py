"""PSCI 1.1 (DEN 0022): the firmware that a guest calls to start and stop CPUs and the machine."""

from collections.abc import Callable
from enum import IntEnum
from typing import Final

from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.exception_model import Outcome
from kinst.runtime.machine.machine import Cpu, Machine

VERSION: Final = 0x0001_0001
_CALL_64: Final = 0x4000_0000  # set in the number of a call with 64-bit arguments (SMC64)
_WORD: Final = (1 << 64) - 1

StartCpu = Callable[[Cpu, int, int], None]  # prepare a CPU's registers: entry address, context in x0


class Function(IntEnum):
    """Function numbers of calls with 32-bit arguments (DEN 0022 5.1)."""

    VERSION = 0x8400_0000
    CPU_SUSPEND = 0x8400_0001
    CPU_OFF = 0x8400_0002
    CPU_ON = 0x8400_0003
    AFFINITY_INFO = 0x8400_0004
    MIGRATE_INFO_TYPE = 0x8400_0006
    SYSTEM_OFF = 0x8400_0008
    SYSTEM_RESET = 0x8400_0009
    FEATURES = 0x8400_000A


class Result(IntEnum):
    """Return codes (DEN 0022 5.2.2)."""

    SUCCESS = 0
    NOT_SUPPORTED = -1
    INVALID_PARAMETERS = -2
    ALREADY_ON = -4


class Psci:
    """Answers the calls of a machine's CPUs. MPIDR's lowest affinity field is the CPU's number, the others are 0."""

    def __init__(self, machine: Machine, start: StartCpu) -> None:
        self._machine = machine
        self._start = start
        self._on = {0}

    def call(self, cpu: Cpu) -> Outcome:
        """Answer the call in x0 to x3, in x0."""
        registers = cpu.registers
        number, *arguments = (registers.get(f"x{index}") for index in range(4))
        number &= 0xFFFF_FFFF
        if not number & _CALL_64:
            arguments = [argument & 0xFFFF_FFFF for argument in arguments]
        function = number & ~_CALL_64
        if function == Function.CPU_OFF:
            self._on.discard(cpu.number)
            cpu.power_off()
            return Outcome.ANSWERED
        registers.set("x0", self._answer(function, arguments) & _WORD)
        return Outcome.WAIT if function == Function.CPU_SUSPEND else Outcome.ANSWERED

    def _answer(self, function: int, arguments: list[int]) -> int:
        match function:
            case Function.VERSION:
                return VERSION
            case Function.CPU_ON:
                return self._cpu_on(*arguments)
            case Function.AFFINITY_INFO:
                return self._affinity_info(arguments[0], arguments[1])
            case Function.MIGRATE_INFO_TYPE:
                return 2  # there is no trusted OS that would need to migrate
            case Function.FEATURES:
                known = arguments[0] & ~_CALL_64 in set(Function)
                return Result.SUCCESS if known else Result.NOT_SUPPORTED
            case Function.SYSTEM_OFF | Function.SYSTEM_RESET:
                self._machine.power_off(0, End.POWER_OFF if function == Function.SYSTEM_OFF else End.RESET)
            case Function.CPU_SUSPEND:
                pass
            case _:
                return Result.NOT_SUPPORTED
        return Result.SUCCESS

    def _cpu_on(self, target: int, entry: int, context: int) -> int:
        if target >= len(self._machine.cpus):
            return Result.INVALID_PARAMETERS
        if target in self._on:
            return Result.ALREADY_ON
        self._on.add(target)
        cpu = self._machine.cpus[target]
        self._start(cpu, entry, context)
        cpu.power_on()
        return Result.SUCCESS

    def _affinity_info(self, target: int, level: int) -> int:
        """AFFINITY_INFO of a CPU: 0 if it is on, 1 if it is off."""
        if level or target >= len(self._machine.cpus):
            return Result.INVALID_PARAMETERS
        return int(target not in self._on)
