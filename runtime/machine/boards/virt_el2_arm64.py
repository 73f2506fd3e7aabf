"""QEMU's virt board for arm64 with virtualization=on: as `virt_arm64`, but CPUs start in EL2."""

from functools import partial
from typing import Final

from kinst.runtime.machine.board import BoardFactory
from kinst.runtime.machine.boards.virt_arm64 import VirtArm64

BOARD: Final[BoardFactory] = partial(VirtArm64, has_el2=True)
