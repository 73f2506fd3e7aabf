"""Which language this is: its version, as -V prints it and as headers see it."""

from typing import Final

Version = tuple[int, int, int]  # major, minor, micro
LATEST: Final = (1, 13, 0)  # of the classic language: if and else came with it
VERSION: Final = "1.13"


def predefined(version: Version) -> tuple[str, ...]:
    """What the C preprocessor knows while it reads D, by which headers tell: that it is D, its words' size, its
    version."""
    major, minor, micro = version
    return "__SUNW_D=1", "__SUNW_D_64=1", f"__SUNW_D_VERSION={major << 24 | minor << 12 | micro:#010x}"
