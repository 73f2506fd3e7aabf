"""Arguments that are tasks of Linux, each a thread of a process to DTrace; `linux_tasks.d` translates them."""

from typing import Final

from kinst.runtime.providers.provider import Argument

TASK: Final = "struct task_struct"
LWP: Final = Argument(f"{TASK} *", translated="lwpsinfo_t *")
PROCESS: Final = Argument(f"{TASK} *", translated="psinfo_t *")
