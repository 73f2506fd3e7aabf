"""c, s and vCont -> how the guest goes on."""

import re
from typing import Final

from kinst.targets.values import dataclass

_ACTION: Final = re.compile(r"(?:([cs])|([CS])[0-9a-f]{2})(?::(-?[0-9a-f]+))?")


@dataclass(frozen=True, slots=True)
class Resumption:
    """How it goes on.

    Args:
        step: the CPU that stops after one instruction; None: none does.
    """

    step: int | None = None


def resumption(actions: str, current: int, cpus: int) -> Resumption | None:
    """What the actions of a vCont packet mean; None: they cannot be done.

    All CPUs go on, each in its turn, as they do without a debugger. What a packet has for one thread alone is done for
    that one, and the others take their turns meanwhile.

    Args:
        actions: such as "s:1;c".
        current: the CPU that was stopped.
        cpus: how many there are.
    """
    step: int | None = None
    taken: set[int] = set()
    for text in actions.split(";"):
        found = _ACTION.fullmatch(text)
        if found is None:
            return None
        thread = -1 if found[3] is None else int(found[3], 16)
        if not -1 <= thread <= cpus:
            return None
        numbers = set(range(cpus)) if thread == -1 else {thread - 1} if thread else {current}
        is_step = (found[1] or found[2]).lower() == "s"
        # The first action that fits a thread is its own. Of several that step, the one that was stopped does.
        if is_step and numbers - taken:
            step = current if current in numbers - taken else min(numbers - taken)
        taken |= numbers
    return Resumption(step)
