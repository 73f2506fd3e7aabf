"""The PC's keyboard controller (Intel 8042): ports 0x60 and 0x64 -> self tests, a keyboard and a mouse, CPU reset.

Commands and answers are those of IBM's PS/2 technical reference. No key is ever pressed, and the mouse never moves.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kinst.runtime.machine.device import Line

# Status, port 0x64:  parity timeout aux-data inhibit command system input-full output-full
_OUTPUT_FULL, _SYSTEM, _COMMAND, _NOT_INHIBITED, _AUX_DATA = 0x01, 0x04, 0x08, 0x10, 0x20
# The command byte:  0 translate aux-disable keyboard-disable 0 system aux-interrupt keyboard-interrupt
_KEYBOARD_INTERRUPT, _AUX_INTERRUPT, _KEYBOARD_DISABLED, _AUX_DISABLED, _TRANSLATES = 0x01, 0x02, 0x10, 0x20, 0x40

# Commands of the controller that are answered at once.
_ANSWERS: Final = {0xAA: 0x55, 0xAB: 0x00, 0xA9: 0x00, 0xC0: 0x80, 0xD0: 0xCF}
# Commands that change bits of the command byte: the bits and their new values.
_SWITCHES: Final = {
    0xA7: (_AUX_DISABLED, _AUX_DISABLED),
    0xA8: (_AUX_DISABLED, 0),
    0xAD: (_KEYBOARD_DISABLED, _KEYBOARD_DISABLED),
    0xAE: (_KEYBOARD_DISABLED, 0),
}
_TAKES_DATA: Final = frozenset({0x60, 0xD1, 0xD2, 0xD3, 0xD4})

_ACKNOWLEDGE: Final = 0xFA
_RESET, _IDENTIFY = 0xFF, 0xF2


@dataclass(slots=True)
class _Port:
    """One of the two ports, as a device."""

    reads: Callable[[], int]
    writes: Callable[[int], None]
    size: int = field(default=1, init=False)

    def read(self, offset: int, size: int) -> int:
        """A byte; the offset and the width do not matter."""
        return self.reads()

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a byte; the offset and the width do not matter."""
        self.writes(value & 0xFF)


@dataclass(slots=True)
class _Peripheral:
    """A keyboard or mouse. It acknowledges every byte that it is sent, and answers more to some commands."""

    answers: dict[int, list[int]]
    with_argument: frozenset[int]
    expects_argument: bool = False

    def answer(self, command: int) -> list[int]:
        if self.expects_argument:
            self.expects_argument = False
            return [_ACKNOWLEDGE]
        self.expects_argument = command in self.with_argument
        return [_ACKNOWLEDGE, *self.answers.get(command, [])]


class I8042:
    """The controller with a keyboard and a mouse. `reset` is called for its reset line.

    Port 0x60 is `data`, port 0x64 `command`.
    """

    def __init__(self, keyboard: Line, mouse: Line, reset: Callable[[], None]) -> None:
        self._keyboard_line, self._mouse_line = keyboard, mouse
        self._reset = reset
        self._output: list[tuple[int, bool]] = []  # bytes, and whether they are the mouse's
        self._command_byte = _TRANSLATES | _AUX_DISABLED | _KEYBOARD_INTERRUPT  # as a BIOS leaves it
        self._expects: int | None = None
        self._last_was_command = False
        self._keyboard = _Peripheral({_RESET: [0xAA], _IDENTIFY: [0xAB, 0x83]}, frozenset({0xED, 0xF0, 0xF3}))
        self._mouse = _Peripheral(
            {_RESET: [0xAA, 0x00], _IDENTIFY: [0x00], 0xE9: [0x00, 0x02, 0x64], 0xEB: [0x00, 0x00, 0x00]},
            frozenset({0xE8, 0xF3}),
        )
        self.data = _Port(self._read_data, self._write_data)
        self.command = _Port(self._status, self._controller)

    def _read_data(self) -> int:
        """The next byte of the output buffer. The interrupt line drops between two bytes, since the PIC waits for an
        edge."""
        value, _ = self._output.pop(0) if self._output else (0, False)
        self._lower_lines()
        self._update_lines()
        return value

    def _status(self) -> int:
        status = _SYSTEM | _NOT_INHIBITED
        status |= _COMMAND if self._last_was_command else 0
        if not self._output:
            return status
        return status | _OUTPUT_FULL | (_AUX_DATA if self._output[0][1] else 0)

    def _write_data(self, value: int) -> None:
        """An argument of the controller's last command, or a byte for the keyboard."""
        self._last_was_command = False
        if self._expects is not None:
            self._argument_of(self._expects, value)
            self._expects = None
        else:
            self._command_byte &= ~_KEYBOARD_DISABLED
            self._put(self._translated(self._keyboard.answer(value)), is_aux=False)
        self._update_lines()

    def _put(self, values: list[int], *, is_aux: bool) -> None:
        self._output += [(value, is_aux) for value in values]

    def _translated(self, values: list[int]) -> list[int]:
        """Answers of the keyboard after translation to scan code set 1, which changes only its identification."""
        if not self._command_byte & _TRANSLATES:
            return values
        return [0x41 if value == 0x83 else value for value in values]

    def _lower_lines(self) -> None:
        self._keyboard_line(False)  # noqa: FBT003 - a line's level
        self._mouse_line(False)  # noqa: FBT003

    def _update_lines(self) -> None:
        is_full, is_aux = bool(self._output), bool(self._output) and self._output[0][1]
        self._keyboard_line(is_full and not is_aux and bool(self._command_byte & _KEYBOARD_INTERRUPT))
        self._mouse_line(is_aux and bool(self._command_byte & _AUX_INTERRUPT))

    def _controller(self, command: int) -> None:
        self._last_was_command = True
        if command == 0x20:
            self._put([self._command_byte], is_aux=False)
        elif command in _ANSWERS:
            self._put([_ANSWERS[command]], is_aux=False)
        elif command in _TAKES_DATA:
            self._expects = command
        elif command in _SWITCHES:
            bit, value = _SWITCHES[command]
            self._command_byte = self._command_byte & ~bit | value
        elif command >= 0xF0 and not command & 1:
            self._reset()  # pulses the lines whose bits are clear; bit 0 is the CPU's reset
        self._update_lines()

    def _argument_of(self, command: int, value: int) -> None:
        match command:
            case 0x60:
                self._command_byte = value
            case 0xD1:
                if not value & 1:
                    self._reset()
            case 0xD4:
                self._command_byte &= ~_AUX_DISABLED
                self._put(self._mouse.answer(value), is_aux=True)
            case _:  # 0xD2 and 0xD3: as if the keyboard or the mouse had sent it
                self._put([value], is_aux=command == 0xD3)
