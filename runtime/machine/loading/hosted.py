"""An image that needs an operating system -> an error: on a bare machine its first system call would end it."""

from typing import TYPE_CHECKING

from kinst.targets.errors import MachineError
from kinst.targets.hosted import started_by

if TYPE_CHECKING:
    from kinst.targets.image import Image


def refuse_program(image: "Image") -> None:
    """Raise MachineError for a program."""
    if what := started_by(image):
        raise MachineError(
            f"{image.path}: a program, {what}, and no kernel or firmware: run it in a Linux guest (--initrd), call one "
            "of its functions (--call), or see docs/guide/qiling.md"
        )
