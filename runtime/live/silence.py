"""A guest that has printed nothing -> a line that says so, once, with what may be the reason."""

from collections.abc import Callable
from typing import Final

from kinst.runtime.live.command import QemuCommand
from kinst.runtime.live.loading import command_line
from kinst.runtime.machine.boards.multiboot import PVH_COMMAND_LINE, pvh_entry
from kinst.runtime.machine.configuration import Configuration
from kinst.targets.image import Image

_SILENCE: Final = 10_000_000_000  # ns: firmware and kernels print earlier, under load as well
_SECONDS: Final = _SILENCE // 1_000_000_000


class Silence:
    """Watches the console of a guest until something is printed there."""

    def __init__(self, reason: str, warn: Callable[[str], None]) -> None:
        """`reason`: see `silence_reason`."""
        self._reason, self._warn = reason, warn
        self._is_over = False

    def on_console(self) -> None:
        """The guest has printed something."""
        self._is_over = True

    def check(self, now: int) -> None:
        """Warn if it has not printed anything by now, in ns since it began."""
        if not self._is_over and now >= _SILENCE:
            self._is_over = True
            self._warn(f"the guest has printed nothing for {_SECONDS} seconds: {self._reason}")


def silence_reason(command: QemuCommand, image: Image, configuration: Configuration) -> str:
    """Why an image may print nothing on QEMU's first serial line, and what to do."""
    given = command_line(command, image, configuration) or ""
    if pvh_entry(image) is not None and "console=" not in given and "-append" not in command.words:
        return f"Linux prints to a serial line if it is told to: --append '{PVH_COMMAND_LINE}'"
    return "it may wait, or its console is another device of this board (-serial, or --append for Linux)"
