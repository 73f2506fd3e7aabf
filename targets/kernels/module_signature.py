"""The signature of a Linux module: it follows the ELF file, and the kernel looks for it at the file's very end."""

from typing import Final

from kinst.targets.image import Image

_MARK: Final = b"~Module signature appended~\n"  # MODULE_SIG_STRING, include/linux/module_signature.h


def is_signed(image: Image) -> bool:
    """Whether the file ends with a signature."""
    return image.data[-len(_MARK) :].tobytes() == _MARK
