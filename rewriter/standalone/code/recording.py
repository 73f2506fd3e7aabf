"""Records of a ring -> what the machines whose instructions are words have in common.

In assembly text (`kinst.rewriter.standalone.code.template`) ``ring`` is the number of records begun, ``first`` the
ring's first place.
"""

from collections.abc import Callable, Iterator, Set

from kinst.rewriter.standalone.code.parts import SITE
from kinst.rewriter.standalone.code.trampoline import (
    Clock,
    Constant,
    Cpu,
    OfTask,
    Record,
    Register,
    Stack,
    Varying,
    placed,
)
from kinst.targets.standalone import WORD

Plain = Clock | Cpu | Register | Constant | Varying  # what is no memory


def registers_of(task: Record) -> Set[int]:
    """The registers that are recorded."""
    return {word.number for word in task.words if isinstance(word, Register)}


def plain_words(task: Record) -> Iterator[tuple[int, Plain]]:
    """The words that are stored first, each with its offset in the record. The ticket is not among them."""
    yield WORD, Varying(SITE)
    yield from ((at, word) for at, word in placed(task.words) if isinstance(word, Plain))


def task_words(task: Record) -> list[tuple[int, OfTask]]:
    """The words of the current task, each with its offset in the record."""
    return [(at, word) for at, word in placed(task.words) if isinstance(word, OfTask)]


def stack_words(task: Record) -> list[tuple[int, Stack]]:
    """The copies of the stack, each with its offset in the record."""
    return [(at, word) for at, word in placed(task.words) if isinstance(word, Stack)]


def stores(task: Record, load: Callable[[Plain], tuple[str, str]], store: Callable[[str, int], str]) -> str:
    """Text that stores each word that is not read from memory, except the ticket.

    Args:
        task: the record.
        load: a word -> the register that holds it, and the line that loads it, or none.
        store: a register and an offset into the record -> the line that stores it there.
    """
    lines: list[str] = []
    for at, word in plain_words(task):
        register, line = load(word)
        lines += [line, store(register, at)]
    return "\n".join(lines)
