"""Physical pages that no guest uses, all above the memory of any board: the tracer's own."""

from typing import Final

PAGE: Final = 4096
TRAMPOLINE_FRAMES: Final = 1 << 40  # copies of the trampolines
OPEN_BUS: Final = 1 << 41  # one page for all addresses that nothing answers
OPEN_BUS_CODE: Final = OPEN_BUS + PAGE  # the same for fetches: the engine executes RAM only
UNMODELLED: Final = 1 << 42  # the pages that `Unmodelled` answers
UNMODELLED_PAGES: Final = 1 << 16
