"""Registers and memory of a test -> a trap frame over them."""

from collections.abc import MutableSequence
from typing import Protocol

from kinst.runtime.trap.trap_frame import TrapFrame


class Context(Protocol):
    """What the emulated instructions of a test work on."""

    regs: MutableSequence[int]

    def load(self, address: int, size: int) -> int: ...

    def store(self, address: int, size: int, value: int) -> None: ...

    def set_vector(self, number: int, value: int) -> None: ...


def frame_of(context: Context) -> TrapFrame:
    return TrapFrame(context.regs, context.load, context.store, context.set_vector)
