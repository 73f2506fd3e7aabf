"""Keys of a terminal -> input for the guest, and commands: Ctrl-A and another key, as in QEMU."""

from enum import Enum
from typing import Final

HELP: Final = """\
Ctrl-A x       end the run; what END prints still comes
Ctrl-A c       let a guest go on that stop() has paused (--on), as SIGCONT does
Ctrl-A h       this help
Ctrl-A Ctrl-A  send Ctrl-A to the guest, and so does Ctrl-A a
Everything else goes to the guest. Ctrl-C ends the run if the guest has taken no key for a second."""
_ESCAPE: Final = 0x01


class Command(Enum):
    """A command after Ctrl-A."""

    END = b"x"
    GO_ON = b"c"
    HELP = b"h"


_COMMANDS: Final = {command.value[0]: command for command in Command}
_SENT: Final = b"a\x01"  # what lets Ctrl-A go to the guest


class EscapeKeys:
    """Separates commands from input. A Ctrl-A may be the last byte of one read, and its key the first of the next."""

    def __init__(self) -> None:
        self._is_escaped = False

    def split(self, data: bytes) -> tuple[bytes, list[Command]]:
        """The input for the guest, and the commands. An unknown key after Ctrl-A is dropped."""
        typed, commands = bytearray(), []
        for key in data:
            if not self._is_escaped:
                self._is_escaped = key == _ESCAPE
                if not self._is_escaped:
                    typed.append(key)
                continue
            self._is_escaped = False
            if key in _SENT:
                typed.append(_ESCAPE)
            elif key in _COMMANDS:
                commands.append(_COMMANDS[key])
        return bytes(typed), commands
