"""What those who have Unicorn call machine code of theirs need of the engine."""

import ctypes
from typing import Any, Final, Protocol

EVERYWHERE: Final = (1, 0)  # bounds of a hook


class Emulator(Protocol):
    """What the engine does for it."""

    def hook(
        self, kind: int, function: ctypes.c_void_p, data: ctypes.c_void_p, *extra: Any, bounds: tuple[int, int] = ...
    ) -> ctypes.c_size_t:
        """Have Unicorn call machine code at addresses from the first to the last of `bounds`."""
        ...

    def unhook(self, handle: ctypes.c_size_t) -> None:
        """Have it do so no longer."""
        ...

    def forget_all_code(self) -> None:
        """Translate all code again."""
        ...
