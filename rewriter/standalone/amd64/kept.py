"""What a task clobbers and what is dead -> how the rest is kept, and where it is meanwhile.

A register that lives is copied to one that is dead, else pushed, below what the guest may have in a red zone. Neither
changes flags. Those that live are taken into rax by lahf and seto, which no popf has to give back: by an addition to
al, which overflows if OF was 1, and by sahf.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kinst.rewriter.standalone.code.trampoline import ImmovableError
from kinst.targets.arch.amd64 import GENERAL, RAX

_RED_ZONE: Final = 0x80  # bytes below the stack pointer that are a function's own (System V ABI for AMD64, 3.2.2)
_WORD: Final = 8


@dataclass(frozen=True, slots=True)
class Kept:
    """Lines of assembly for before and behind a task.

    `places`: operands that hold what kept registers held. `depth`: by how many bytes the stack pointer is lower.
    """

    before: tuple[str, ...]
    behind: tuple[str, ...]
    places: Mapping[int, str]
    depth: int


def kept(clobbered: Sequence[int], dead: int, *, has_stack: bool, has_flags: bool) -> Kept:
    """How a task that clobbers some registers, and flags, is made harmless.

    Args:
        clobbered: registers that it works with.
        dead: registers that need not be kept, and that may hold others, as bits.
        has_stack: whether there is a stack for what finds no room in dead registers.
        has_flags: whether the flags live.

    Raises:
        ImmovableError: there is no room.
    """
    used = {*clobbered, RAX} if has_flags else {*clobbered}
    spare = [number for number in range(len(GENERAL)) if dead >> number & 1 and number not in used]
    keeper = _Keeper(spare, has_stack)
    homes = {number: keeper.keep(number) for number in sorted(used) if not dead >> number & 1}
    if has_flags:
        keeper.before += ["lahf", "seto %al"]
        keeper.behind += ["sahf", "addb $0x7f, %al"]
        if RAX in clobbered:
            keeper.keep(RAX)
    return keeper.done(homes)


@dataclass(slots=True)
class _Keeper:
    """`behind` has the last line first."""

    spare: list[int]
    has_stack: bool
    pushed: int = 0
    before: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)

    def keep(self, register: int) -> int | str:
        """Make a copy of the register. Returns the number of what is pushed, or the name of another register."""
        name = GENERAL[register]
        if self.spare:
            home = GENERAL[self.spare.pop()]
            self.before.append(f"movq %{name}, %{home}")
            self.behind.append(f"movq %{home}, %{name}")
            return home
        if not self.has_stack:
            raise ImmovableError("there is no dead register to work with, and no stack to save one on")
        if not self.pushed:
            self.before.append(f"leaq -{_RED_ZONE:#x}(%rsp), %rsp")
            self.behind.append(f"leaq {_RED_ZONE:#x}(%rsp), %rsp")
        self.before.append(f"pushq %{name}")
        self.behind.append(f"popq %{name}")
        self.pushed += 1
        return self.pushed

    def done(self, homes: Mapping[int, int | str]) -> Kept:
        places = {
            number: f"%{home}" if isinstance(home, str) else f"{_WORD * (self.pushed - home):#x}(%rsp)"
            for number, home in homes.items()
        }
        depth = _RED_ZONE + _WORD * self.pushed if self.pushed else 0
        return Kept(tuple(self.before), tuple(self.behind[::-1]), places, depth)
