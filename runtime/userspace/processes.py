"""A process of Linux -> whether it runs a program."""

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Final

from kinst.runtime.providers.host import GuestMemory
from kinst.runtime.providers.structures import find_way, followed
from kinst.runtime.trap.trap import Firing
from kinst.runtime.userspace.file_paths import LinuxPaths
from kinst.targets.c_types import ImageTypes

_TASK: Final = "struct task_struct"

Integer = Callable[[Firing, str], int]  # a number of the task of a firing, by the name of D's variable


class RunningProgram:
    """The file that the current process has executed."""

    def __init__(self, types: ImageTypes, memory: GuestMemory, paths: LinuxPaths, integer: Integer) -> None:
        """Nothing is read yet."""
        self._memory, self._paths, self._integer = memory, paths, integer
        self._file = find_way(types, _TASK, ("mm", "exe_file"))

    def obstacle(self) -> str:
        """Why it cannot be told; empty if it can."""
        return "its types do not have struct mm_struct exe_file" if self._file is None else self._paths.obstacle()

    def is_at(self, firing: Firing, path: str) -> bool:
        """Whether it has this path, or this name if that has no slash. A kernel thread has executed none."""
        task = self._integer(firing, "curthread")
        file = followed(self._memory, task, self._file) if task and self._file is not None else 0
        if not file or self._paths.name(file) != PurePosixPath(path).name:
            return False
        return "/" not in path or self._paths.path(file) == path
