"""Which language this is: its version, as -V prints it and as headers see it."""

from typing import Final

VERSION: Final = "1.13"  # of the classic language: if and else came with it
# What the C preprocessor knows while it reads D, by which headers tell: that it is D, its words' size, its version.
PREDEFINED: Final = ("__SUNW_D=1", "__SUNW_D_64=1", f"__SUNW_D_VERSION={1 << 24 | 13 << 12:#010x}")
