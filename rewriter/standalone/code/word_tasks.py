"""What is done before a site's instruction -> assembly, for the machines whose instructions are words.

A task runs the same steps on all of them: take scratch registers, save those that live, draw a ticket or add to a
counter by an atomic instruction, give the registers back. What differs is a `Dialect`: the two routines, and how single
steps are spelled.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, assert_never

from kinst.rewriter.standalone.code import scratch
from kinst.rewriter.standalone.code.parts import HERE
from kinst.rewriter.standalone.code.recording import Plain, registers_of, stores
from kinst.rewriter.standalone.code.scratch import Scratch
from kinst.rewriter.standalone.code.trampoline import (
    Clock,
    Constant,
    Count,
    Cpu,
    ImmovableError,
    Masks,
    Record,
    Register,
    Task,
    Varying,
)
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Routine:
    """Assembly text with open registers: `text` has each of `roles` in braces, in the order in which registers are
    chosen for them."""

    roles: tuple[str, ...]
    text: str


class Memory(Protocol):
    """How a machine reads what is recorded of memory."""

    def __call__(self, task: Record, names: Mapping[str, str], frame: int, *, has_stack: bool) -> str:
        """Text that stores the words that are read from memory.

        Args:
            task: the record.
            names: the registers, by their roles.
            frame: by how many bytes the stack pointer is lower than the guest's.
            has_stack: whether the stack pointer points to a stack.
        """


@dataclass(frozen=True, slots=True)
class Dialect:
    """One machine's assembly. Texts have ``{register}``, ``{name}``, ``{place}`` and ``{offset}`` in them."""

    usable: tuple[int, ...]  # registers that tasks may use, in the order of preference
    registers: Sequence[str]  # by number, as they stand in the texts: arm64 leaves out x and w, which give the width
    pc: int
    stack_pointer: int
    unrecordable: Mapping[int, str]  # registers of the trap frame that no single instruction reads, and their names
    count: Routine
    record: Routine  # with ``{place}`` and ``{ticket}``; plain words are stored where ``{words}`` is
    spare: str  # the role of `record` whose register is unused while words are stored
    wait: Callable[[Record, Mapping[str, str]], str]  # role -> register: ``{wait}``, for room in the ring
    index: Callable[[str, str, int], str]  # place, ticket, mask: the line that cuts the ticket to the mask
    discard: Callable[[Record, Mapping[str, str]], str]  # role -> register: ``{discard}``, to the place never read
    memory: Memory  # ``{memory}``
    constant: Callable[[str, int], str]  # loads a 64-bit number into a register
    address: str
    number: str
    clock: str
    cpu: str
    stack: str  # the stack pointer plus ``{offset}``
    load_saved: str  # from ``{offset}`` after the stack pointer
    store: str
    save: Callable[[Scratch], tuple[list[str], list[str]]]  # lines that push the saved registers, and that pop them


def needed(dialect: Dialect, task: Task, dead: Masks) -> Masks:
    """Which of the dead registers a task would take: what its code depends on."""
    match task:
        case Count():
            return scratch.needed(len(dialect.count.roles), dialect.usable, dead)
        case Record():
            return scratch.needed(len(dialect.record.roles), dialect.usable, dead, registers_of(task))


def task_text(dialect: Dialect, task: Task, dead: int, *, has_stack: bool) -> str:
    """The assembly of a task.

    Raises:
        ImmovableError: too few registers are dead and there is no stack, or a word cannot be read.
    """
    match task:
        case Count():
            roles = dialect.count.roles
            chosen = scratch.scratch(len(roles), dialect.usable, dead, has_stack=has_stack)
            return with_saved(dialect, chosen, dialect.count.text.format(**_names(dialect, roles, chosen)))
        case Record():
            return _recording(dialect, task, dead, has_stack=has_stack)


def with_saved(dialect: Dialect, chosen: Scratch, text: str) -> str:
    """The text between saving registers on the stack and restoring them."""
    if not chosen.saved:
        return text
    before, after = dialect.save(chosen)
    return "\n".join([*before, text, *after])


def _names(dialect: Dialect, roles: Sequence[str], chosen: Scratch) -> dict[str, str]:
    return dict(zip(roles, (dialect.registers[number] for number in chosen.registers), strict=True))


def _recording(dialect: Dialect, task: Record, dead: int, *, has_stack: bool) -> str:
    """The ticket, which is the record's number + 1, is stored last: a reader that finds it finds the whole record."""
    recorded, roles = registers_of(task), dialect.record.roles
    for number in dialect.unrecordable.keys() & recorded:
        raise ImmovableError(f"{dialect.unrecordable[number]} cannot be recorded by a trampoline")
    chosen = scratch.scratch(len(roles), dialect.usable, dead, recorded, has_stack=has_stack)
    names = _names(dialect, roles, chosen)
    spare, place = names[dialect.spare], names["place"]

    def store(register: str, offset: int) -> str:
        return dialect.store.format(register=register, place=place, offset=offset)

    return with_saved(
        dialect,
        chosen,
        dialect.record.text.format(
            **names,
            wait=dialect.wait(task, names),
            index=dialect.index(place, names["ticket"], task.mask),
            stride=task.stride,
            discard=dialect.discard(task, names),
            memory=dialect.memory(task, names, chosen.frame, has_stack=has_stack),
            words=stores(task, lambda word: _load(dialect, chosen, spare, word), store),
        ),
    )


def _load(dialect: Dialect, chosen: Scratch, spare: str, word: Plain) -> tuple[str, str]:
    """The register that holds a word, and the line that loads it; empty: it is there already."""
    match word:
        case Clock() | Cpu():
            line = (dialect.clock if isinstance(word, Clock) else dialect.cpu).format(register=spare)
        case Varying(name):
            line = dialect.number.format(register=spare, name=name)
        case Constant(value):
            line = dialect.constant(spare, value)
        case Register(number) if number == dialect.pc:
            line = dialect.address.format(register=spare, name=HERE)
        case Register(number) if number == dialect.stack_pointer:
            # The guest's value: what was saved has moved the stack pointer down meanwhile.
            line = dialect.stack.format(register=spare, offset=chosen.frame)
        case Register(number) if number in chosen.saved:
            line = dialect.load_saved.format(register=spare, offset=chosen.place(number))
        case Register(number):
            return dialect.registers[number], ""
        case other:
            assert_never(other)
    return spare, line
