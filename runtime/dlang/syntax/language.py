"""The version of the language, as -V prints it and as headers see it."""

from typing import Final

Version = tuple[int, int, int]  # major, minor, micro
LATEST: Final = (1, 13, 0)  # of the classic language: if and else came with it
VERSION: Final = "1.13"


def predefined(version: Version) -> tuple[str, ...]:
    """The macros that the C preprocessor defines while it reads D: headers see that it is D, how wide its words are,
    and its version."""
    major, minor, micro = version
    return "__SUNW_D=1", "__SUNW_D_64=1", f"__SUNW_D_VERSION={major << 24 | minor << 12 | micro:#010x}"
