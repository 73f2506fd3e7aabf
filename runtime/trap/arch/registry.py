"""A machine's facts -> its emulator, and the functions that make its trampolines.

A machine's modules are imported when it is first asked for, by import statements, so that import contracts and mypy see
them.
"""

from collections.abc import Callable

from kinst.runtime.trap.arch.emulator import Emulator
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.arch.arm64 import ARM64
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.riscv64 import RISCV64

Jump = Callable[[int, int], bytes | None]  # (its address, target) -> its bytes, if it reaches
MovedTrampoline = Callable[[int, bytes, int, int], bytes | None]  # (kind, instruction, its address, slot) -> code


def emulator(facts: ArchFacts) -> Emulator:
    """The emulator of a machine of `kinst.targets.arch.registry`."""
    match facts.name:
        case AMD64.name:
            from kinst.runtime.trap.arch import amd64

            return amd64.EMULATOR
        case ARM64.name:
            from kinst.runtime.trap.arch import arm64

            return arm64.EMULATOR
        case RISCV64.name:
            from kinst.runtime.trap.arch import riscv64

            return riscv64.EMULATOR
    raise LookupError(facts.name)


def moved_trampoline(facts: ArchFacts) -> MovedTrampoline | None:
    """A function that makes a trampoline for an instruction that its image moved; None if the machine's trampolines end
    with a breakpoint, which serves code wherever it is."""
    if facts.return_breakpoint is not None:
        return None
    match facts.name:
        case AMD64.name:
            from kinst.runtime.trap.arch import amd64_moved

            return amd64_moved.moved_trampoline
    raise LookupError(facts.name)


def out_of_line_trampoline(facts: ArchFacts) -> MovedTrampoline | None:
    """A function that makes a trampoline for the kinds in `ArchFacts.out_of_line`; None if there are none."""
    if not facts.out_of_line:
        return None
    match facts.name:
        case ARM64.name:
            from kinst.runtime.trap.arch import arm64_out_of_line

            return arm64_out_of_line.out_of_line_trampoline
    raise LookupError(facts.name)


def jump(facts: ArchFacts) -> Jump | None:
    """A function that makes a jump for the end of a trampoline; None if the machine's trampolines jump back anyway."""
    if facts.return_breakpoint is None:
        return None
    match facts.name:
        case ARM64.name:
            from kinst.rewriter.standalone.arm64 import words as arm64

            return arm64.jump
        case RISCV64.name:
            from kinst.rewriter.standalone.riscv64 import words as riscv64

            return riscv64.jump
    raise LookupError(facts.name)
