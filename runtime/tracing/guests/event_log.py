"""The events of a machine that --log asks for -> a line each, and of what is repeated one now and then."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kinst.runtime.machine.assumed_registers import AssumedRegister
from kinst.runtime.machine.devices.register_names import OTHER
from kinst.runtime.machine.exception_model import Taken
from kinst.runtime.machine.system import System
from kinst.runtime.machine.watching.accesses import DeviceAccess
from kinst.runtime.providers.mmio import NAMES, DeviceMap
from kinst.runtime.tracing.host.log_request import LogKind, LogRequest
from kinst.runtime.tracing.host.machine_host import MachineHost
from kinst.targets.errors import UsageError
from kinst.targets.machines.machine import Space

_PAUSE: Final = 1_000_000_000  # ns of the machine's time in which a line is printed once
_MOST: Final = 4096  # lines that are remembered

Describe = Callable[[int], str]  # the place of an address in code


@dataclass(slots=True)
class _Line:
    """A line that was printed: when, and how often it came again since then."""

    printed: int
    again: int = 0


class EventLog:
    """The log of one machine."""

    def __init__(
        self, request: LogRequest, system: System, host: MachineHost, describe: Describe, write: Callable[[str], None]
    ) -> None:
        """Log from now on; `write` gets lines without their ends if there is no file.

        Raises:
            UsageError: the file cannot be written.
        """
        self._system, self._host, self._describe = system, host, describe
        self._file = request.file
        if self._file is not None:
            try:
                self._file.write_text("")
            except OSError as error:
                raise UsageError(f"--log-file {self._file}: {error.strerror}") from None
        self._write = write
        self._kinds = request.kinds
        self._map = DeviceMap(host.devices)
        self._lines: dict[str, _Line] = {}
        if self._kinds & {LogKind.UNMODELLED, LogKind.DEVICES}:
            host.watch(self._accessed)
        if LogKind.UNMODELLED in self._kinds:
            system.assumed.watch(self._assumed)
        if LogKind.EXCEPTIONS in self._kinds:
            host.watch_taken(self._taken)

    def finish(self) -> None:
        """The run is over: tell how often lines came again."""
        lines, self._lines = self._lines, {}
        for text, line in lines.items():
            if line.again:
                self._print(_again(text, line.again))

    def _accessed(self, access: DeviceAccess) -> None:
        device, register, offset = self._map.of(access)
        if not access.is_answered and LogKind.UNMODELLED in self._kinds:
            where = "port" if access.space is Space.PORTS else "address"
            self._note_access(access, f"unmodelled: {_what(access)} at {where} {access.address:#x}")
        elif (
            access.is_answered and LogKind.DEVICES in self._kinds and register == OTHER and self._has_registers(device)
        ):
            self._note_access(access, f"devices: {device} has no register at {offset:#x}: {_what(access)}")

    def _assumed(self, register: AssumedRegister, pc: int, is_write: bool) -> None:  # noqa: FBT001 - a `Watcher`
        what = f"write of {register.value:#x} to" if is_write else "read of"
        self._note(f"unmodelled: {what} {register.name}, which is implementation-defined,{self._by(pc)}")

    def _note_access(self, access: DeviceAccess, text: str) -> None:
        self._note(text + self._by(self._host.accessing(access).site))

    def _has_registers(self, device: str) -> bool:
        return device in self._map.registers and bool(self._map.registers[device].names)

    def _by(self, pc: int) -> str:
        return f" by CPU {self._system.current.number} in {self._describe(pc) or hex(pc)}"

    def _taken(self, taken: Taken) -> None:
        values = f": address {taken.address:#x}" if taken.address else ""
        values += f"{',' if values else ':'} syndrome {taken.syndrome:#x}" if taken.syndrome else ""
        self._note(f"exceptions: {self._host.name_of(taken)} ({taken.number:#x}){self._by(taken.pc)}{values}")

    def _note(self, text: str) -> None:
        now, line = self._system.clock.now(), self._lines.get(text)
        if line is None:
            if len(self._lines) == _MOST:
                self.finish()
            self._lines[text] = _Line(now)
            self._print(text)
        elif now - line.printed < _PAUSE:
            line.again += 1
        else:
            self._print(_again(text, line.again + 1))
            line.printed, line.again = now, 0

    def _print(self, text: str) -> None:
        if self._file is None:
            self._write(text)
            return
        # Lines are few, and whoever follows the file sees each at once. A full disk must not end the run.
        with suppress(OSError), self._file.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")


def _what(access: DeviceAccess) -> str:
    size = f" of {access.size} byte{'s' * (access.size != 1)}" if access.size else ""
    return f"{NAMES[access.access]}{size}"


def _again(text: str, times: int) -> str:
    return f"{text}, {times:,} time{'s' * (times != 1)} more"
