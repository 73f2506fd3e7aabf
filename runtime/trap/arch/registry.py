"""A machine's facts -> its emulator, and the function that makes trampolines for code that moved."""

from collections.abc import Callable
from importlib import import_module

from kinst.runtime.trap.arch.emulator import Emulator
from kinst.targets.arch.facts import ArchFacts

Jump = Callable[[int, int], bytes | None]  # (its address, target) -> its bytes, if it reaches
MovedTrampoline = Callable[[int, bytes, int, int], bytes | None]  # (kind, instruction, its address, slot) -> code


def emulator(facts: ArchFacts) -> Emulator:
    """The emulator of a machine of `kinst.targets.arch.registry`. Its module is imported at the first call."""
    found: Emulator = import_module(f"kinst.runtime.trap.arch.{facts.name}").EMULATOR
    return found


def moved_trampoline(facts: ArchFacts) -> MovedTrampoline | None:
    """A function that makes a trampoline for an instruction that its image moved; None if the machine's trampolines end
    with a breakpoint, which serves code wherever it is."""
    if facts.return_breakpoint is not None:
        return None
    found: MovedTrampoline = import_module(f"kinst.runtime.trap.arch.{facts.name}_moved").moved_trampoline
    return found


def aside_trampoline(facts: ArchFacts) -> MovedTrampoline | None:
    """A function that makes a trampoline for the kinds in `ArchFacts.aside`; None if there are none."""
    if not facts.aside:
        return None
    found: MovedTrampoline = import_module(f"kinst.runtime.trap.arch.{facts.name}_aside").aside_trampoline
    return found


def jump(facts: ArchFacts) -> Jump | None:
    """A function that makes a jump for the end of a trampoline; None if the machine's trampolines jump back anyway."""
    if facts.return_breakpoint is None:
        return None
    found: Jump = import_module(f"kinst.rewriter.standalone.{facts.name}.words").jump
    return found
