"""Addresses in the running guest -> how to leave the frames of the code there, wherever the image was moved."""

from collections.abc import Callable
from typing import Final

from kinst.rewriter.program import Program
from kinst.runtime.unwinding.arch.registry import stack_effects
from kinst.runtime.unwinding.unwind import Rule, Unwinder, plain_address
from kinst.targets.arch.facts import ArchFacts

_MASK: Final = (1 << 64) - 1


class FrameRules:
    """The rules of an image in a machine, for those who walk its stacks: `MachineStacks`, which reads return addresses
    and little else, since stack() is asked for at every hit, and `CallerFrames`, which restores registers."""

    def __init__(self, arch: ArchFacts, program: Callable[[], Program], link_address: Callable[[int], int]) -> None:
        """Nothing is read until a rule is asked for.

        Args:
            arch: the machine.
            program: the image as it was built, never patched, and its functions.
            link_address: of what the machine has at an address, wherever the image or a copy of it lies.
        """
        self._arch = arch
        self.unwinder = Unwinder(arch, stack_effects(arch), program)
        self.link_address = link_address

    def here(self, address: int) -> Rule | None:
        """Before the instruction at an address; None: nobody knows."""
        link = self.link_address(address)
        return self.unwinder.rule_at(link) if self.unwinder.is_code(link) else None

    def returned_to(self, address: int) -> tuple[int, int] | None:
        """A return address without what signs it, and its link address; None: it is in no code. It may lie behind the
        last instruction of a function that ends with a call, so the byte before it decides."""
        for plain in (address, plain_address(self._arch, address)):
            inside = self.link_address(plain - 1 & _MASK)
            if self.unwinder.is_code(inside):
                return plain, inside + 1
        return None
