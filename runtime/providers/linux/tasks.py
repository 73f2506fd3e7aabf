"""Arguments that are tasks of Linux, each a thread of a process to DTrace; `linux_tasks.d` translates them."""

from collections.abc import Callable
from typing import Final

from kinst.runtime.providers.provider import Argument

TASK: Final = "struct task_struct"
LWP: Final = Argument(f"{TASK} *", translated="lwpsinfo_t *")
PROCESS: Final = Argument(f"{TASK} *", translated="psinfo_t *")


def is_first(number: Callable[..., int], task: int) -> bool:
    """Whether a task is the first thread of its process. `number`: that of `Structures`."""
    return number(task, TASK, "pid") == number(task, TASK, "tgid")
