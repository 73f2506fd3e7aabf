"""What a machine makes for a standalone image: jumps, and trampolines that do by themselves what their probes want."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.standalone.code.parts import Mask, Numbers, Parts
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.instruction import Flow
from kinst.targets.standalone import WORD

Masks = NDArray[np.uint32]


class ImmovableError(Exception):
    """An instruction or a task cannot be in a trampoline. Its text is the reason, to follow "refused: "."""


@dataclass(frozen=True, slots=True)
class Count:
    """Add one to the word at `CELL`, whatever other CPUs do to it at the same time."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The CPU's own clock: rdtsc, cntvct_el0, rdtime."""


@dataclass(frozen=True, slots=True)
class Register:
    """What is in a register before the site's instruction: its number in the trap frame."""

    number: int


@dataclass(frozen=True, slots=True)
class Constant:
    """A number that is known."""

    value: int


@dataclass(frozen=True, slots=True)
class Varying:
    """A number below 2**31 that differs from site to site: the name of its column."""

    name: str


@dataclass(frozen=True, slots=True)
class Cpu:
    """The number that the CPU itself has: its APIC ID, mpidr_el1, mhartid."""


@dataclass(frozen=True, slots=True)
class Current:
    """The address of Linux's current task; 0: there is none yet.

    `is_linked`: where a CPU's own data have the variable (`CURRENT`), per-CPU data are linked with the rest, so that it
    is an address; else a number below 2**31.
    """

    is_linked: bool = False


@dataclass(frozen=True, slots=True)
class Member:
    """The word at an offset, a multiple of its size, in what `of` gives; 0: that is 0."""

    of: Current
    offset: int


@dataclass(frozen=True, slots=True)
class Stack:
    """A word that says how many follow, and as many of the stack, at most `count`: from its pointer on, up to the end
    of its page, which is surely there, or to that of the task's stack if it is in that. It is of `size` bytes, a power
    of two, and begins where the member says. None: it may be any. Where no stack is known, there are none."""

    count: int
    task: Member | None = None
    size: int = 0


Word = Clock | Register | Constant | Varying | Cpu | Current | Member | Stack


def width(word: Word) -> int:
    """How many words it has in a record."""
    return 1 + word.count if isinstance(word, Stack) else 1


def placed(words: Sequence[Word]) -> Iterator[tuple[int, Word]]:
    """What comes first in a record's place, in bytes from its beginning, for each word."""
    at = 2 * WORD
    for word in words:
        yield at, word
        at += WORD * width(word)


@dataclass(frozen=True, slots=True)
class Record:
    """Append a record to the ring of `kinst.targets.standalone`, which is at `RING` and has its first place at `FIRST`:
    `SITE`, and what is in `words`. `mask` is its capacity - 1; `stride` is a record's bytes."""

    mask: int
    stride: int
    words: tuple[Word, ...]

    @property
    def behind(self) -> int:
        """Bytes from the first place to the one that nobody reads."""
        return (self.mask + 1) * self.stride


Task = Count | Record


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Instructions that jumps cover, or that follow in their trampolines: columns.

    `code` is (n, 16), with zeros behind each. `dead`: the registers and flags that are dead before it
    (`kinst.rewriter.liveness`); `dead_behind`: where control goes on if it falls through. `has_stack`: the stack
    pointer is one of a stack that may be pushed on. `group`: the number of the group that it is in, ascending.
    """

    address: NDArray[np.uint64]
    size: Numbers
    target: NDArray[np.uint64]  # as in `Instructions`
    kind: NDArray[np.uint8]
    flow: NDArray[np.uint8]
    code: NDArray[np.uint8]
    dead: Masks
    dead_behind: Masks
    has_stack: Mask
    group: Numbers

    def __len__(self) -> int:
        return len(self.address)


@dataclass(frozen=True, slots=True)
class Shape:
    """What some instructions have in common: all that their code in a trampoline depends on, but for holes. `detail` is
    the machine's own."""

    code: bytes
    kind: int
    dead: int
    has_stack: bool
    detail: int


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """Those of `Rows`, as columns: `code` is (n, 16), without what goes into holes. `is_own`: it is in a trampoline as
    it is. `operand`: what `OPERAND` is."""

    is_own: Mask
    code: NDArray[np.uint8]
    dead: Masks
    has_stack: Mask
    detail: NDArray[np.uint8]
    operand: NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Rules:
    """What groups a machine allows.

    `unfinished`: flows that only the last instruction may have, `why_unfinished` else. A branch into the group leads to
    where the instruction has moved if branches follow them (`Form.follows`), and is refused elsewhere, for the reason
    `why_inside`. `compact`: if one is of so many bytes, tasks may be, too; 0: they are always alike. `jumps_by`: the
    registers that jumps may go by if they are dead.
    """

    unfinished: tuple[Flow, ...]
    why_unfinished: str
    follows: bool
    why_inside: str
    compact: int
    jumps_by: int


# Of machines whose instructions are words. Where the first one was is a jump to the trampoline: all may lead there.
WORDS: Final = Rules(
    unfinished=tuple(flow for flow in Flow if flow not in (Flow.NEXT, Flow.BRANCH)),
    why_unfinished="control leaves before it: what comes back would find a jump",
    follows=False,
    why_inside="a jump of the same trampoline leads to it",
    compact=0,
    jumps_by=0,
)
NO_JUMP: Final = "a jump does not reach from there to its trampoline and back"


class Maker(Protocol):
    """One machine's code. All that it makes is position-independent: image and trampolines may be moved together.

    Whatever a task does, the guest finds registers, flags, and memory but for red zones that are dead, as they were.
    Trampolines are a multiple of the machine's instruction alignment. What raises ImmovableError has no such code.
    """

    @property
    def rules(self) -> Rules:
        """What may be in a trampoline together."""
        ...

    def needed(self, task: Task, dead: Masks) -> Masks:
        """What of that matters to a task."""
        ...

    def task(self, task: Task, dead: int, *, has_stack: bool, is_compact: bool) -> Parts:
        """What is done before an instruction. `dead` is `needed`."""
        ...

    def shapes(self, rows: Rows) -> Shapes:
        """What tells the code of instructions apart."""
        ...

    def moved(self, shape: Shape) -> Parts:
        """An instruction with the effect that it has where it was."""
        ...

    def leave(self, dead: int) -> Parts:
        """A jump to `BEHIND`."""
        ...

    def jump(self, size: int, dead: int) -> Parts:
        """A jump to `GOAL`, the shortest that is needed, in at most `size` bytes, by one of the dead registers."""
        ...

    def filler(self, size: int) -> bytes:
        """Breakpoints, for what a jump leaves of an instruction."""
        ...

    def stack_roles(self, code: NDArray[np.uint8], offsets: Numbers, sizes: NDArray[np.uint8]) -> tuple[Mask, Mask]:
        """What instructions have to do with the stack.

        Args:
            code: bytes of a region, with 32 spare ones at its end.
            offsets: of the instructions.
            sizes: of them.

        Returns:
            Which load the stack pointer with something other than itself and a constant or an index, or a frame pointer
            in an epilogue: the functions they are in may run where there is no stack to push on. And which push, call
            by the stack, or move the stack pointer by a number: so there is a stack. Some may do both.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Tasks:
    """Which of some `tasks` each site has, by number, and the columns of what goes into their holes."""

    tasks: tuple[Task, ...]
    number: Numbers
    values: Mapping[str, NDArray[np.uint64]]


def maker(facts: ArchFacts) -> Maker:
    """That of a machine of `kinst.targets.arch.registry`. Its module is imported at the first call."""
    found: Maker = import_module(f"kinst.rewriter.standalone.{facts.name}.maker").MAKER
    return found
