"""Records of a ring -> what the machines whose instructions are words have in common.

In assembly text (`kinst.rewriter.standalone.code.template`) ``ring`` is the number of records begun, ``first`` the
ring's first place.
"""

from collections.abc import Callable, Set

from kinst.rewriter.standalone.code.parts import SITE
from kinst.rewriter.standalone.code.trampoline import Record, Register, Varying, Word
from kinst.targets.standalone import WORD


def registers_of(task: Record) -> Set[int]:
    """The registers that are recorded."""
    return {word.number for word in task.words if isinstance(word, Register)}


def stores(task: Record, load: Callable[[Word], tuple[str, str]], store: Callable[[str, int], str]) -> str:
    """Text that stores each word but the first, which is the ticket.

    Args:
        task: the record.
        load: a word -> the register that holds it, and the line that loads it, or none.
        store: a register and an offset into the record -> the line that stores it there.
    """
    lines: list[str] = []
    for row, word in enumerate((Varying(SITE), *task.words), 1):
        register, line = load(word)
        lines += [line, store(register, row * WORD)]
    return "\n".join(lines)
