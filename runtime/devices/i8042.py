"""The PC's keyboard controller (Intel 8042): ports 0x60 and 0x64 -> self tests, a keyboard without keys, CPU reset."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kinst.runtime.devices.device import Line

# Status, port 0x64:  parity timeout aux-data inhibit command system input-full output-full
_OUTPUT_FULL, _SYSTEM, _COMMAND, _NOT_INHIBITED = 0x01, 0x04, 0x08, 0x10
_ACKNOWLEDGE: Final = 0xFA
_KEYBOARD_INTERRUPT: Final = 0x01  # of the command byte

# Controller commands that answer at once.
_ANSWERS: Final = {0xAA: 0x55, 0xAB: 0x00, 0xA9: 0x00, 0xC0: 0x80, 0xD0: 0xCF}
_TAKES_DATA: Final = frozenset({0x60, 0xD1, 0xD2, 0xD3, 0xD4})
# Keyboard commands that are followed by one byte of argument.
_TAKES_ARGUMENT: Final = frozenset({0xED, 0xF0, 0xF3})


@dataclass(slots=True)
class _Port:
    """One of the two ports."""

    reads: Callable[[], int]
    writes: Callable[[int], None]
    size: int = field(default=1, init=False)

    def read(self, offset: int, size: int) -> int:
        """A byte."""
        return self.reads()

    def write(self, offset: int, size: int, value: int) -> None:
        """A byte."""
        self.writes(value & 0xFF)


class I8042:
    """The controller with a keyboard and no mouse; `reset` is what its reset line does.

    Port 0x60 is `data`, port 0x64 `command`.
    """

    def __init__(self, line: Line, reset: Callable[[], None]) -> None:
        self._line = line
        self._reset = reset
        self._output: list[int] = []
        self._command_byte = 0x61
        self._expects: int | None = None
        self._argument = False
        self._last_was_command = False
        self.data = _Port(self._read_data, self._write_data)
        self.command = _Port(self._status, self._controller)

    def _read_data(self) -> int:
        """The next byte of the output buffer."""
        value = self._output.pop(0) if self._output else 0
        self._update_line()
        return value

    def _status(self) -> int:
        status = _SYSTEM | _NOT_INHIBITED
        status |= _COMMAND if self._last_was_command else 0
        return status | (_OUTPUT_FULL if self._output else 0)

    def _write_data(self, value: int) -> None:
        """An argument of the controller's last command, or a command to the keyboard."""
        self._last_was_command = False
        if self._expects is not None:
            self._argument_of(self._expects, value)
            self._expects = None
        else:
            self._keyboard(value)
        self._update_line()

    def _update_line(self) -> None:
        self._line(bool(self._output) and bool(self._command_byte & _KEYBOARD_INTERRUPT))

    def _controller(self, command: int) -> None:
        self._last_was_command = True
        if command == 0x20:
            self._output.append(self._command_byte)
        elif command in _ANSWERS:
            self._output.append(_ANSWERS[command])
        elif command in _TAKES_DATA:
            self._expects = command
        elif command in (0xAD, 0xAE):
            self._command_byte = self._command_byte & ~0x10 | (0x10 if command == 0xAD else 0)
        elif command >= 0xF0 and not command & 1:
            self._reset()  # pulses the lines whose bits are clear; bit 0 is the CPU's reset
        self._update_line()

    def _argument_of(self, command: int, value: int) -> None:
        if command == 0x60:
            self._command_byte = value
        elif command == 0xD1 and not value & 1:
            self._reset()
        elif command == 0xD2:
            self._output.append(value)

    def _keyboard(self, command: int) -> None:
        self._output.append(_ACKNOWLEDGE)
        if self._argument:
            self._argument = False
        elif command in _TAKES_ARGUMENT:
            self._argument = True
        elif command == 0xFF:
            self._output.append(0xAA)
        elif command == 0xF2:
            self._output += [0xAB, 0x83]
