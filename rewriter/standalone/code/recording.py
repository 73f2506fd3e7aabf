"""A record of a ring -> what is the same on machines whose instructions are words.

In assembly text (`kinst.rewriter.standalone.code.template`) ``ring`` is the number of records begun, ``first`` the
ring's first place.
"""

from collections.abc import Callable, Collection, Iterator

from kinst.rewriter.standalone.code.parts import SITE
from kinst.rewriter.standalone.code.trampoline import (
    Clock,
    Constant,
    Cpu,
    Current,
    Member,
    Record,
    Register,
    Stack,
    Varying,
    placed,
)
from kinst.targets.standalone import WORD

Plain = Clock | Cpu | Register | Constant | Varying  # what is no memory


def registers_of(task: Record) -> Collection[int]:
    """The registers that are recorded."""
    return {word.number for word in task.words if isinstance(word, Register)}


def plain_words(task: Record) -> Iterator[tuple[int, Plain]]:
    """What is stored first: where, in bytes from the place's beginning, and what. The ticket is another's."""
    yield WORD, Varying(SITE)
    yield from ((at, word) for at, word in placed(task.words) if isinstance(word, Plain))


def task_words(task: Record) -> list[tuple[int, Current | Member]]:
    """Words of the current task, and where they are stored."""
    return [(at, word) for at, word in placed(task.words) if isinstance(word, Current | Member)]


def stack_words(task: Record) -> list[tuple[int, Stack]]:
    """Those of the stack, and where they are stored."""
    return [(at, word) for at, word in placed(task.words) if isinstance(word, Stack)]


def stores(task: Record, load: Callable[[Plain], tuple[str, str]], store: str) -> str:
    """Text that stores each word that is no memory, but for the ticket.

    Args:
        task: the record.
        load: a word -> the register that it is in, and a line that loads it, or none.
        store: text with ``{register}`` and ``{offset}`` in it.
    """
    lines: list[str] = []
    for at, word in plain_words(task):
        register, line = load(word)
        lines += [line, store.format(register=register, offset=at)]
    return "\n".join(lines)
