"""What a machine provides for standalone images: jumps, and trampolines that do by themselves what their probes ask
for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.liveness.effects import Effects
from kinst.rewriter.standalone.code.parts import Mask, Numbers, Parts
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.instruction import Flow
from kinst.targets.standalone import WORD
from kinst.targets.values import dataclass

Masks = NDArray[np.uint32]


class ImmovableError(Exception):
    """An instruction or a task cannot be in a trampoline. The text is the reason, to follow "refused: "."""


@dataclass(frozen=True, slots=True)
class Count:
    """Add one to the word at `CELL`, atomically with respect to other CPUs."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The CPU's own clock: rdtsc, cntvct_el0, rdtime."""


@dataclass(frozen=True, slots=True)
class Register:
    """The value of a register before the site's instruction; `number` is its index in the trap frame."""

    number: int


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant."""

    value: int


@dataclass(frozen=True, slots=True)
class Varying:
    """A number below 2**31 that differs from site to site; `name` is its column."""

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
class Behind:
    """The word at an offset, a multiple of its size, from where a member of the current task points to, which is there
    as long as the task runs: its stack. 0: there is no task."""

    of: Member
    offset: int


@dataclass(frozen=True, slots=True)
class Stack:
    """A word that says how many follow, and as many of the stack, at most `count`: from its pointer on, up to the end
    of its page, which is surely there, or to that of the task's stack if it is in that. It is of `size` bytes, a power
    of two, and begins where the member says. None: it may be any. Where no stack is known, there are none."""

    count: int
    task: Member | None = None
    size: int = 0


Word = Clock | Register | Constant | Varying | Cpu | Current | Member | Behind | Stack
OfTask = Current | Member | Behind


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
    `SITE`, and what `words` say. `mask` is the capacity - 1; `stride` is the size of a record in bytes. `waits`: it
    waits for room in the ring, by way of `ROOM` and `PATIENCE`."""

    mask: int
    stride: int
    words: tuple[Word, ...]
    waits: bool = False

    @property
    def discard(self) -> int:
        """The offset from the first place of the one that is never read."""
        return (self.mask + 1) * self.stride


Task = Count | Record


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Instructions that jumps cover, or that follow in the same trampoline: columns.

    `code` is (n, 16), padded with zeros. `dead`: the registers and flags that are dead before the instruction
    (`kinst.rewriter.liveness`); `dead_after`: those that are dead where it falls through to. `has_stack`: the stack
    pointer points to a stack that may be pushed on. `group`: the number of its group, ascending.
    """

    address: NDArray[np.uint64]
    size: Numbers
    target: NDArray[np.uint64]  # as in `Instructions`
    kind: NDArray[np.uint8]
    flow: NDArray[np.uint8]
    code: NDArray[np.uint8]
    dead: Masks
    dead_after: Masks
    has_stack: Mask
    group: Numbers

    def __len__(self) -> int:
        return len(self.address)


@dataclass(frozen=True, slots=True)
class Shape:
    """What instructions with the same displaced code have in common: everything that this code depends on, apart from
    its fixups. `detail` is the machine's own."""

    code: bytes
    kind: int
    dead: int
    has_stack: bool
    detail: int


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """The shapes of `Rows`, as columns: `code` is (n, 16), zero where fixups go. `is_own`: the instruction runs
    unchanged in a trampoline. `operand`: the value of `OPERAND`."""

    is_own: Mask
    code: NDArray[np.uint8]
    dead: Masks
    has_stack: Mask
    detail: NDArray[np.uint8]
    operand: NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Rules:
    """What groups a machine allows.

    `unfinished`: flows that only the last instruction may have, else `why_unfinished`. A branch into the group is
    retargeted to the displaced copy where branch encodings follow (`Encoding.follows`), else it is refused for
    `why_inside`. `compact`: the size of an instruction whose presence in a group lets its tasks use short encodings; 0:
    tasks are always encoded alike. `jumps_by`: the registers that jumps may use if they are dead.
    """

    unfinished: tuple[Flow, ...]
    why_unfinished: str
    follows: bool
    why_inside: str
    compact: int
    jumps_by: int


# For machines whose instructions are words. The jump to the trampoline replaces the whole first instruction, so a
# branch to it is right.
WORDS: Final = Rules(
    unfinished=tuple(flow for flow in Flow if flow not in (Flow.NEXT, Flow.BRANCH)),
    why_unfinished="control leaves in the middle of it, and would return into the jump",
    follows=False,
    why_inside="a jump of the same trampoline leads to it",
    compact=0,
    jumps_by=0,
)
NO_JUMP: Final = "a jump does not reach from there to its trampoline and back"


class TaskCode(Protocol):
    """The function in `CodeGenerator.task`."""

    def __call__(self, task: Task, dead: int, *, has_stack: bool, is_compact: bool) -> Parts:
        """What is done before an instruction.

        Args:
            task: what to do.
            dead: registers and flags that the code may change, of those that `CodeGenerator.needed` named.
            has_stack: others may be saved on the stack.
            is_compact: short encodings may be used (`Rules.compact`).

        Raises:
            ImmovableError: too few registers are dead and there is no stack, or a word cannot be read.
        """
        ...


class StackRoles(Protocol):
    """The function in `CodeGenerator.stack_roles`."""

    def __call__(
        self, code: NDArray[np.uint8], offsets: Numbers, sizes: NDArray[np.uint8], effects: Effects, /
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """What instructions have to do with the stack.

        Args:
            code: bytes of a region, with 32 spare ones at its end.
            offsets: of the instructions.
            sizes: of them.
            effects: of them, by the machine's `Effector`.

        Returns:
            Which instructions load the stack pointer with something other than itself and a constant or an index, or
            the frame pointer in an epilogue: their functions may run where there is no stack to push on. And which
            push, call through the stack, or move the stack pointer by a constant: there is a stack. Some may do both.
        """
        ...


@dataclass(frozen=True, slots=True)
class CodeGenerator:
    """One machine's code. All that it makes is position-independent: image and trampolines may be moved together.

    Whatever a task does, the guest finds its registers, flags and memory as they were, except red zones that are dead.
    Trampolines are a multiple of the machine's instruction alignment. A function that has no code for what is asked
    raises ImmovableError.
    """

    rules: Rules
    needed: Callable[[Task, Masks], Masks]  # which of the dead registers and flags a task's code depends on
    task: TaskCode
    shapes: Callable[[Rows], Shapes]
    moved: Callable[[Shape], Parts]  # an instruction, with the effect that it has at its own address
    leave: Callable[[int], Parts]  # a jump to `NEXT`, through one of the dead registers if need be
    jump: Callable[[int, int], Parts]  # size, dead: the shortest jump to `GOAL` that reaches, in at most `size` bytes
    filler: Callable[[int], bytes]  # size: breakpoints for what a jump leaves of the instructions it covers
    stack_roles: StackRoles


@dataclass(frozen=True, slots=True, eq=False)
class Tasks:
    """Which of `tasks` each site has, by number, and the columns of values for their fixups."""

    tasks: tuple[Task, ...]
    number: Numbers
    values: Mapping[str, NDArray[np.uint64]]


def code_generator(facts: ArchFacts) -> CodeGenerator:
    """The generator of a machine of `kinst.targets.arch.registry`. Its module is imported at the first call."""
    found: CodeGenerator = import_module(f"kinst.rewriter.standalone.{facts.name}.generator").GENERATOR
    return found
