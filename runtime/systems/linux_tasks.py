"""Linux' list of tasks -> the state of each, read while the kernel is stopped.

The kernel changes the list so that a reader who holds no lock can always follow it; where one ends early in spite of
that, because a task has just gone, what was found until then is all there is.
"""

from collections.abc import Iterator
from functools import cache
from typing import Final

from kinst.runtime.clauses.environment import TaskState
from kinst.runtime.clauses.profiles import Guest
from kinst.runtime.providers.structures import find_way, followed
from kinst.runtime.trap.faults import Fault

_TASK: Final = "struct task_struct"
_SIGNALS: Final = "struct signal_struct"
_KERNEL: Final = 1 << 63  # set in every address of the kernel's
_ADDRESSES: Final = 1 << 64
_WORD: Final = 8
_MOST: Final = 4096  # tasks that are read, and links that are followed
_LONGEST_NAME: Final = 16  # TASK_COMM_LEN
_NOT_INTERRUPTIBLE: Final = 2  # TASK_UNINTERRUPTIBLE
_NO_LOAD: Final = 0x400  # TASK_NOLOAD
_ENDED: Final = 0x30  # EXIT_DEAD | EXIT_ZOMBIE
_LETTERS: Final = ((_ENDED, "Z"), (4, "T"), (8, "t"), (_NOT_INTERRUPTIBLE, "D"), (1, "S"))  # include/linux/sched.h


class LinuxTasks:
    """The tasks of one kernel."""

    def __init__(self, guest: Guest) -> None:
        """Nothing is read yet."""
        self._memory = guest.memory
        first = guest.symbol("init_task")
        self._first = 0 if first is None else first + guest.bias
        self._way = cache(lambda start, *members: find_way(guest.types, start, members))  # types are large

    def each(self) -> Iterator[TaskState]:
        """All threads but the idle tasks; none before the kernel has a list, or if its types are not known."""
        return map(self._state, self.addresses())

    def addresses(self) -> Iterator[int]:
        """The structures of these."""
        tasks, signal = self._place(_TASK, "tasks"), self._way(_TASK, "signal")
        threads, thread = self._place(_SIGNALS, "thread_head"), self._place(_TASK, "thread_node")
        if not self._first or tasks is None:
            return
        count = 0
        for leader in self._links(self._first + tasks, tasks):
            head = followed(self._memory, leader, signal) if signal and threads is not None else 0
            own = [] if thread is None or threads is None or not head else list(self._links(head + threads, thread))
            for task in own or [leader]:  # whose threads have gone is not gone itself
                yield task
                count += 1
                if count >= _MOST:
                    return

    def _links(self, head: int, offset: int) -> Iterator[int]:
        """The structures in a list, each of which has its list_head at an offset."""
        link = head
        for _ in range(_MOST):
            try:
                link = self._memory.load(link, _WORD)
            except Fault:
                return
            if link == head or not link & _KERNEL:
                return
            yield link - offset

    def _state(self, task: int) -> TaskState:
        state, ended = self._number(task, "__state", "state"), self._number(task, "exit_state")
        is_idle = state & (_NOT_INTERRUPTIBLE | _NO_LOAD) == _NOT_INTERRUPTIBLE | _NO_LOAD
        letter = next((letter for bit, letter in _LETTERS if (state | ended) & bit), "R")
        return TaskState(
            self._number(task, "tgid"),
            self._number(task, "pid"),
            self._name(task),
            "I" if is_idle else letter,
            self._runtime(task),
        )

    def _number(self, task: int, *names: str) -> int:
        """The member that has one of these names, from the newest kernels to the oldest; 0 if none has."""
        ways = (self._way(_TASK, name) for name in names)
        way = next(filter(None, ways), None)
        return followed(self._memory, task, way) if way else 0

    def _runtime(self, task: int) -> int:
        way = self._way(_TASK, "se", "sum_exec_runtime")
        return followed(self._memory, task, way) if way else 0

    def _name(self, task: int) -> str:
        at = self._place(_TASK, "comm")
        try:
            found = b"" if at is None else self._memory.string((task + at) % _ADDRESSES, _LONGEST_NAME)
        except Fault:
            found = b""
        return found.decode(errors="backslashreplace")

    def _place(self, start: str, member: str) -> int | None:
        """The offset of a member in its structure, in bytes."""
        way = self._way(start, member)
        return way[0][0] if way else None
