"""The task of each CPU, as the probes that fired there found it."""

from typing import Any, cast

from kinst.runtime.clauses.tasks_seen import Task, TasksSeen
from kinst.runtime.trap.trap import Firing


class Profile:
    """A system with a task for each CPU: what `running` says."""

    def __init__(self, why: str = "") -> None:
        self.running: dict[int, Task] = {}
        self.why = why

    def why_not(self, name: str) -> str:
        return self.why

    def integer(self, firing: Firing, name: str) -> int:
        found: int = getattr(self.running.get(firing.cpu, Task(0, 0, "")), name)
        return found

    def string(self, firing: Firing, name: str) -> bytes:
        return self.running.get(firing.cpu, Task(0, 0, "")).name.encode()


class Fired:
    def __init__(self, cpu: int, thread: int = 0) -> None:
        self.cpu, self.thread = cpu, thread


def seen_by(profile: Profile) -> tuple[TasksSeen, Any]:
    time = 0

    def note(now: int, cpu: int, task: Task | None = None, thread: int = 0) -> None:
        nonlocal time
        time = now
        if task is not None:
            profile.running[cpu] = task
        tasks.note(cast(Firing, Fired(cpu, thread)))

    tasks = TasksSeen(cast(Any, profile), lambda: time)
    return tasks, note


INIT, SHELL, IDLE = Task(1, 1, "init"), Task(70, 70, "sh"), Task(0, 0, "swapper/0")


def test_a_task_is_there_until_another_is_seen() -> None:
    tasks, note = seen_by(Profile())
    note(10, 0)  # none yet
    note(20, 0, IDLE)
    note(30, 0, INIT)
    note(35, 1, SHELL)
    note(40, 0, INIT)
    note(50, 0, SHELL)
    assert [tasks.at(0, time) for time in (10, 20, 29, 30, 49, 50, 90)] == [None, IDLE, IDLE, INIT, INIT, SHELL, SHELL]
    assert tasks.at(1, 30) is None
    assert tasks.at(1, 35) == SHELL
    assert list(tasks.changes()) == [(0, [20, 30, 50], [IDLE, INIT, SHELL]), (1, [35], [SHELL])]


def test_a_program_that_another_is_started_in_is_another_task() -> None:
    tasks, note = seen_by(Profile())
    note(10, 0, Task(1, 1, "swapper/0"))
    note(20, 0, INIT)
    assert tasks.at(0, 15) != tasks.at(0, 20)


def test_what_is_no_task_is_not_noted() -> None:
    tasks, note = seen_by(Profile())
    note(10, 0, INIT, thread=-1)  # BEGIN
    assert tasks.at(0, 10) is None
    tasks, note = seen_by(Profile(why="no system is known"))
    note(10, 0, INIT)
    assert list(tasks.changes()) == []
