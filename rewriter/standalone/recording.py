"""A record of a ring -> what is the same on machines whose instructions are words.

In assembly text (`kinst.rewriter.standalone.template`) ``ring`` is the number of records begun, ``first`` the ring's
first place, ``pc`` the site, and ``word1``, ``word2`` are what words of the record are, if they are known.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from kinst.rewriter.standalone.trampoline import Clock, Constant, Covered, Record, Register
from kinst.targets.standalone import RING_HEAD, WORD

Word = Clock | Register | Constant


def registers_of(task: Record) -> Collection[int]:
    """The registers that are recorded."""
    return {word.number for word in task.words if isinstance(word, Register)}


def shape_of(task: Record) -> Record:
    """The same record for any ring, site and constants: its text is the same."""
    words = tuple(Constant(0) if isinstance(word, Constant) else word for word in task.words)
    return replace(task, ring=0, site=0, words=words)


def values_of(one: Covered, task: Record) -> Mapping[str, int]:
    """What the names are."""
    known = {f"word{row}": word.value for row, word in enumerate(_words(task), 1) if isinstance(word, Constant)}
    return {"ring": task.ring, "first": task.ring + RING_HEAD, "pc": one.address, **known}


def stores(task: Record, load: Callable[[Word, str], tuple[str, str]], store: str) -> str:
    """Text that stores each word but the first, which is the ticket.

    Args:
        task: the record.
        load: a word and its name -> the register that it is in, and a line that loads it, or none.
        store: text with ``{register}`` and ``{offset}`` in it.
    """
    lines: list[str] = []
    for row, word in enumerate(_words(task), 1):
        register, line = load(word, f"word{row}")
        lines += [line, store.format(register=register, offset=row * WORD)]
    return "\n".join(lines)


def _words(task: Record) -> tuple[Word, ...]:
    return (Constant(task.site), *task.words)
