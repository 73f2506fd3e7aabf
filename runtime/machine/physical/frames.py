"""Physical pages that no guest uses, all above the memory of any board: the tracer's own."""

from typing import Final

PAGE: Final = 4096
TRAMPOLINE_FRAMES: Final = 1 << 40  # copies of the trampolines
OPEN_BUS: Final = 1 << 41  # the pages of addresses that nothing answers; see `OpenPages`
OPEN_BUS_SIZE: Final = 1 << 24
OPEN_BUS_CODE: Final = OPEN_BUS + OPEN_BUS_SIZE  # the same for fetches: the engine executes RAM only
UNMODELLED: Final = 1 << 42  # the pages that `Unmodelled` answers
UNMODELLED_PAGES: Final = 1 << 16
MIRROR: Final = 1 << 44  # the pages of `MirroredPages`
MIRROR_SIZE: Final = 1 << 22
