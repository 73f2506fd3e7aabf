"""Addresses in the running guest -> unwind rules of the code there, wherever the image was moved."""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from kinst.rewriter.program import Program
from kinst.runtime.unwinding.arch.registry import stack_effects
from kinst.runtime.unwinding.unwind import Rule, Unwinder, plain_address
from kinst.targets.arch.facts import ArchFacts

_MASK: Final = (1 << 64) - 1


class CallerRule(NamedTuple):
    """What is known about a return address."""

    address: int  # without its signature
    rule: Rule | None  # how to unwind its frame
    follows_call: bool
    changes_stack: bool  # the call was made on another stack


class Rules(Protocol):
    """How to unwind frames of code in a machine, by address."""

    def here(self, address: int) -> Rule | None:
        """The rule before the instruction at an address; None if it is not known."""
        ...

    def caller(self, address: int) -> CallerRule | None:
        """What is known about a return address; None if it cannot be one."""
        ...

    def is_start(self, address: int) -> bool:
        """Whether a function begins there."""
        ...


class FrameRules:
    """The rules of an image in a machine. Two classes walk its stacks with them: `MachineStacks`, which reads little
    but return addresses, since stack() may be needed at every hit, and `CallerFrames`, which restores registers."""

    def __init__(self, arch: ArchFacts, program: Callable[[], Program], link_address: Callable[[int], int]) -> None:
        """Nothing is read until a rule is needed.

        Args:
            arch: the machine. program: the original image, never a patched one, and its functions. link_address: gives
            the link address of the code at an address of the machine, in copies of the image as well.
        """
        self._arch = arch
        self.unwinder = Unwinder(arch, stack_effects(arch), program)
        self.link_address = link_address

    def here(self, address: int) -> Rule | None:
        """The rule before the instruction at an address; None if it is not known."""
        link = self.link_address(address)
        return self.unwinder.rule_at(link) if self.unwinder.is_code(link) else None

    def returned_to(self, address: int) -> tuple[int, int] | None:
        """A return address without its signature, and its link address; None if it is not in code. It may be just past
        a function that ends with a call, so the byte before it decides."""
        # As it is first: an address without a signature must not lose bits that are its own.
        for plain in (address, plain_address(self._arch, address)):
            inside = self.link_address(plain - 1 & _MASK)
            if self.unwinder.is_code(inside):
                return plain, inside + 1
        return None

    def caller(self, address: int) -> CallerRule | None:
        """What is known about a return address; None if it cannot be one."""
        returned = self.returned_to(address)
        if returned is None:
            return None
        unwinder, (plain, link) = self.unwinder, returned
        return CallerRule(plain, unwinder.rule_in_call(link), unwinder.follows_call(link), unwinder.changes_stack(link))

    def is_start(self, address: int) -> bool:
        """Whether a function begins there."""
        return self.unwinder.is_start(self.link_address(address))
