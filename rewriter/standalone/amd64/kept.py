"""The registers and flags that a task clobbers, and what is dead -> code that saves and restores the rest.

A live register is copied to a dead one, else pushed, below the guest's red zone. Neither changes flags. Live flags are
saved in rax by lahf and seto: pushf would need a stack even where registers are dead, and popf writes IF and TF, too.
They are restored by an addition to al, which overflows exactly if OF was 1, and by sahf.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final

from kinst.rewriter.standalone.code.trampoline import ImmovableError
from kinst.targets.arch.amd64 import GENERAL, RAX
from kinst.targets.values import dataclass

_RED_ZONE: Final = 0x80  # bytes below the stack pointer that belong to a leaf function (System V ABI for AMD64, 3.2.2)
_WORD: Final = 8


@dataclass(frozen=True, slots=True)
class Kept:
    """Lines of assembly for before and after a task.

    `places`: operands that hold the values of saved registers meanwhile. `depth`: how far the stack pointer has moved
    down.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    places: Mapping[int, str]
    depth: int


def kept(clobbered: Sequence[int], dead: int, *, has_stack: bool, has_flags: bool) -> Kept:
    """How a task that clobbers some registers, and flags, leaves no trace.

    Args:
        clobbered: registers that it works with.
        dead: registers whose values are not needed, as bits: they need not be saved, and may hold others.
        has_stack: whether registers may be pushed where dead ones do not suffice.
        has_flags: whether the flags are live.

    Raises:
        ImmovableError: neither dead registers nor a stack.
    """
    used = {*clobbered, RAX} if has_flags else {*clobbered}
    spare = [number for number in range(len(GENERAL)) if dead >> number & 1 and number not in used]
    keeper = _Keeper(spare, has_stack)
    homes = {number: keeper.keep(number) for number in sorted(used) if not dead >> number & 1}
    # lahf and seto need rax, and the task may, too: then what they left in it is saved once more.
    if has_flags:
        keeper.before += ["lahf", "seto %al"]
        # `after` is reversed: the addition comes before sahf, which leaves OF alone.
        keeper.after += ["sahf", "addb $0x7f, %al"]
        if RAX in clobbered:
            keeper.keep(RAX)
    return keeper.done(homes)


@dataclass(slots=True)
class _Keeper:
    """`after` is in reverse order: what was saved last is restored first."""

    spare: list[int]
    has_stack: bool
    pushed: int = 0
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    def keep(self, register: int) -> int | str:
        """Save a register. Returns how many are pushed so far, or the name of the register that holds it now."""
        name = GENERAL[register]
        if self.spare:
            home = GENERAL[self.spare.pop()]
            self.before.append(f"movq %{name}, %{home}")
            self.after.append(f"movq %{home}, %{name}")
            return home
        if not self.has_stack:
            raise ImmovableError("there is no dead register to work with, and no stack to save one on")
        # lea, not sub: flags may be live.
        if not self.pushed:
            self.before.append(f"leaq -{_RED_ZONE:#x}(%rsp), %rsp")
            self.after.append(f"leaq {_RED_ZONE:#x}(%rsp), %rsp")
        self.before.append(f"pushq %{name}")
        self.after.append(f"popq %{name}")
        self.pushed += 1
        return self.pushed

    def done(self, homes: Mapping[int, int | str]) -> Kept:
        places = {
            number: f"%{home}" if isinstance(home, str) else f"{_WORD * (self.pushed - home):#x}(%rsp)"
            for number, home in homes.items()
        }
        depth = _RED_ZONE + _WORD * self.pushed if self.pushed else 0
        return Kept(tuple(self.before), tuple(self.after[::-1]), places, depth)
