"""SBI 2.0: the firmware that a kernel in S mode calls for timers, other harts, its console and power-off.

A call: extension in a7, function in a6, arguments in a0 to a5 -> error in a0, value in a1. The extensions of SBI 0.1
(0 to 8) have no function and answer in a0 only. A mask of harts is given as bits, and the hart that bit 0 means.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Final

from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.device import Line
from kinst.runtime.machine.devices.riscv.clint import Clint
from kinst.runtime.machine.exception_model import Outcome
from kinst.runtime.machine.machine import Cpu, Machine
from kinst.runtime.paging.walker import PageFault
from kinst.targets.errors import MachineError

VERSION: Final = 2 << 24
_IMPLEMENTATION: Final = 0x6B73  # an implementation number that is not registered (chapter 4.3)
_WORD: Final = (1 << 64) - 1
_PIECE: Final = 1 << 12  # bytes that one call writes to the console; the caller calls again for the rest
_LOW, _HIGH = False, True  # levels of a line
_IDENTITY: Final = 6  # functions 0 to 6 of BASE; 4 to 6 are the CPU's vendor, architecture and implementation

StartHart = Callable[[Cpu, int, int], None]  # prepare a hart's registers: entry address, value of a1


class Extension(IntEnum):
    """Extension numbers (chapters 4 to 12)."""

    LEGACY_SET_TIMER = 0
    LEGACY_PUTCHAR = 1
    LEGACY_GETCHAR = 2
    LEGACY_CLEAR_IPI = 3
    LEGACY_SEND_IPI = 4
    LEGACY_FENCE_I = 5
    LEGACY_SFENCE_VMA = 6
    LEGACY_SFENCE_VMA_ASID = 7
    LEGACY_SHUTDOWN = 8
    BASE = 0x10
    TIME = 0x5449_4D45
    IPI = 0x73_5049
    RFENCE = 0x5246_4E43
    HSM = 0x48_534D
    SRST = 0x5352_5354
    DBCN = 0x4442_434E


class Error(IntEnum):
    """Error codes in a0 (chapter 3)."""

    SUCCESS = 0
    NOT_SUPPORTED = -2
    INVALID_PARAM = -3
    INVALID_ADDRESS = -5
    ALREADY_AVAILABLE = -6


class Sbi:
    """Answers the calls of a machine's harts; implements `exceptions.riscv64.Firmware`."""

    def __init__(self, machine: Machine, clint: Clint, interrupts: Sequence[Line], start: StartHart) -> None:
        """`interrupts` are the harts' supervisor software interrupts. `start` prepares a hart that is started."""
        self._machine = machine
        self._clint = clint
        self._interrupts = interrupts
        self._start = start
        self._on = {0}

    def call(self, cpu: Cpu) -> Outcome:
        """Answer a call. The hart continues after the ecall."""
        registers = cpu.registers
        registers.set("pc", registers.get("pc") + 4)
        extension, function = registers.get("a7"), registers.get("a6")
        arguments = [registers.get(f"a{index}") for index in range(4)]
        if extension <= Extension.LEGACY_SHUTDOWN:
            registers.set("a0", self._legacy(cpu, extension, arguments) & _WORD)
            return Outcome.ANSWERED
        if (extension, function) == (Extension.HSM, 1):
            self._on.discard(cpu.number)
            cpu.power_off()
            return Outcome.ANSWERED
        error, value = self._answer(cpu, extension, function, arguments)
        registers.set("a0", error & _WORD)
        registers.set("a1", value & _WORD)
        is_suspended = (extension, function, error) == (Extension.HSM, 3, Error.SUCCESS)
        return Outcome.WAIT if is_suspended else Outcome.ANSWERED

    def _answer(self, cpu: Cpu, extension: int, function: int, arguments: Sequence[int]) -> tuple[int, int]:
        match extension, function:
            case Extension.BASE, _ if function <= _IDENTITY:
                return Error.SUCCESS, self._base(function, arguments[0])
            case Extension.TIME, 0:
                self._set_timer(cpu, arguments[0])
            case Extension.IPI, 0:
                return self._send(arguments[0], arguments[1]), 0
            case Extension.RFENCE, 0 | 1 | 2:
                return self._fence(arguments[0], arguments[1]), 0
            case Extension.HSM, _:
                return self._harts(function, arguments)
            case Extension.SRST, 0:
                return self._reset(arguments[0], arguments[1]), 0
            case Extension.DBCN, _:
                return self._console(function, arguments)
            case _:
                return Error.NOT_SUPPORTED, 0
        return Error.SUCCESS, 0

    def _base(self, function: int, extension: int) -> int:
        """The base extension (chapter 4). The CPU's own identity is 0, which means not implemented."""
        is_there = extension in set(Extension)
        return (VERSION, _IMPLEMENTATION, 1, int(is_there), 0, 0, 0)[function]

    def _set_timer(self, cpu: Cpu, value: int) -> None:
        self._clint.set_timer(cpu.number, value)
        self._machine.notice_deadline(self._clint)

    # -- other harts --------------------------------------------------------------------------------------------------

    def _targets(self, mask: int, base: int) -> list[int] | None:
        """The numbers of the harts in a mask; None if one of them does not exist."""
        count = len(self._machine.cpus)
        if base == _WORD:
            return list(range(count))
        if base > count or mask << base >> count:
            return None
        return [number for number in range(count) if mask << base >> number & 1]

    def _send(self, mask: int, base: int) -> int:
        targets = self._targets(mask, base)
        if targets is None:
            return Error.INVALID_PARAM
        for number in targets:
            self._interrupts[number](_HIGH)
        return Error.SUCCESS

    def _fence(self, mask: int, base: int) -> int:
        """Remote fences. All harts share one TLB, which is emptied whenever another hart runs; code is never stale."""
        if self._targets(mask, base) is None:
            return Error.INVALID_PARAM
        self._machine.flush_tlb()
        return Error.SUCCESS

    def _harts(self, function: int, arguments: Sequence[int]) -> tuple[int, int]:
        """Hart states (chapter 9), without stop. The only suspension is the default retentive one: a wait for
        interrupts."""
        target = arguments[0]
        if function == 3:
            return (Error.SUCCESS if target == 0 else Error.NOT_SUPPORTED), 0
        if function not in (0, 2):
            return Error.NOT_SUPPORTED, 0
        if target >= len(self._machine.cpus):
            return Error.INVALID_PARAM, 0
        if function == 2:
            return Error.SUCCESS, int(target not in self._on)
        if target in self._on:
            return Error.ALREADY_AVAILABLE, 0
        self._on.add(target)
        cpu = self._machine.cpus[target]
        self._start(cpu, arguments[1], arguments[2])
        cpu.power_on()
        return Error.SUCCESS, 0

    # -- console and the end ------------------------------------------------------------------------------------------

    def _console(self, function: int, arguments: Sequence[int]) -> tuple[int, int]:
        """The debug console (chapter 12): write from memory, read into memory, write one byte."""
        if function == 2:
            self._machine.console_output(bytes((arguments[0] & 0xFF,)))
            return Error.SUCCESS, 0
        if function > 2:
            return Error.NOT_SUPPORTED, 0
        size, address = min(arguments[0], _PIECE), arguments[1] | arguments[2] << 64
        try:
            if function == 0:
                self._machine.console_output(self._machine.memory.read(address, size))
                return Error.SUCCESS, size
            typed = self._machine.serial_line.poll(size)
            self._machine.memory.write(address, typed)
        except MachineError:  # there is no RAM at that address
            return Error.INVALID_PARAM, 0
        return Error.SUCCESS, len(typed)

    def _reset(self, kind: int, reason: int) -> int:
        """System reset (chapter 10): shutdown, cold and warm reboot. The reason 1 means a system failure."""
        if kind > 2 or reason > 1:
            return Error.INVALID_PARAM
        self._machine.power_off(reason, End.RESET if kind else End.POWER_OFF)
        return Error.SUCCESS

    # -- SBI 0.1 ------------------------------------------------------------------------------------------------------

    def _legacy(self, cpu: Cpu, extension: int, arguments: Sequence[int]) -> int:
        match extension:
            case Extension.LEGACY_SET_TIMER:
                self._set_timer(cpu, arguments[0])
            case Extension.LEGACY_PUTCHAR:
                self._machine.console_output(bytes((arguments[0] & 0xFF,)))
            case Extension.LEGACY_GETCHAR:
                typed = self._machine.serial_line.poll(1)
                return typed[0] if typed else -1
            case Extension.LEGACY_CLEAR_IPI:
                self._interrupts[cpu.number](_LOW)
                cpu.registers.set("sip", cpu.registers.get("sip") & ~2)
            case Extension.LEGACY_SHUTDOWN:
                self._machine.power_off()
            case _:
                return self._legacy_to_harts(cpu, extension, arguments[0])
        return Error.SUCCESS

    def _legacy_to_harts(self, cpu: Cpu, extension: int, address: int) -> int:
        """A call of SBI 0.1 for other harts. The mask is a word in the caller's memory; address 0 means all harts."""
        try:
            mask, base = (cpu.load(address, 8), 0) if address else (0, _WORD)
        except PageFault:
            return Error.INVALID_ADDRESS
        return self._send(mask, base) if extension == Extension.LEGACY_SEND_IPI else self._fence(mask, base)
