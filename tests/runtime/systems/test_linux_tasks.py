"""Linux' list of tasks in memory -> tasks, whatever its version calls their members, and where it is broken."""

from dataclasses import dataclass, field
from typing import cast

import pytest

from kinst.runtime.clauses.environment import TaskState
from kinst.runtime.clauses.profiles import Guest
from kinst.runtime.systems.linux_tasks import LinuxTasks
from kinst.targets.c_types import Aggregate, AggregateKind, CType, Integer, Member, Pointer
from tests.runtime.unwinding.memories import Words

WORD = Integer("unsigned long", 8, is_signed=False)
FIRST = 0xFFFF_8000_0000_0000
MEMBERS = ("tasks", "signal", "thread_node", "state", "exit_state", "tgid", "pid", "comm", "se")


def structure(tag: str, *members: tuple[str, CType]) -> Aggregate:
    placed = tuple(Member(name, kind, 8 * number) for number, (name, kind) in enumerate(members))
    return Aggregate(AggregateKind.STRUCT, tag, 8 * len(members), 8, placed)


class Types:
    def __init__(self, state: str) -> None:
        signals = structure("signal_struct", ("thread_head", WORD))
        entity = structure("sched_entity", ("sum_exec_runtime", WORD))
        kinds: dict[str, CType] = {"signal": Pointer(signals), "se": entity}
        task = structure(
            "task_struct", *((state if name == "state" else name, kinds.get(name, WORD)) for name in MEMBERS)
        )
        self._known = {"struct task_struct": task, "struct signal_struct": signals}

    def type_named(self, name: str, module: str = "") -> CType | None:
        return self._known.get(name)


@dataclass
class Kernel:
    """Processes with their threads: each a state, and the number of its thread group."""

    state_name: str = "__state"
    words: dict[int, int] = field(default_factory=dict)
    leaders: list[int] = field(default_factory=lambda: [FIRST])

    def start(self, *threads: tuple[int, int, str, int, int, int]) -> list[int]:
        """A process: pid, tgid, name, state, exit_state and time of each of its threads. Returns their addresses."""
        signal = FIRST + 0x100_0000 * (len(self.leaders) + 1)
        tasks = [signal + 0x1000 * number for number in range(1, len(threads) + 1)]
        self.leaders.append(tasks[0])
        for task, (pid, tgid, name, state, ended, runtime) in zip(tasks, threads, strict=True):
            values = (0, signal, 0, state, ended, tgid, pid, int.from_bytes(name.encode()[:8], "little"), runtime)
            self.words |= {task + 8 * number: value for number, value in enumerate(values)}
        nodes = [signal, *(task + 8 * MEMBERS.index("thread_node") for task in tasks)]
        self.words |= dict(zip(nodes, [*nodes[1:], nodes[0]], strict=True))
        self.words |= dict(zip(self.leaders, [*self.leaders[1:], self.leaders[0]], strict=True))
        return tasks

    def tasks(self) -> list[TaskState]:
        class Memory(Words):
            def string(self, address: int, limit: int) -> bytes:
                return self.load(address, 8).to_bytes(8, "little").rstrip(b"\0")

        class Image:
            types, memory, bias = Types(self.state_name), Memory(self.words), 0

            def symbol(self, name: str) -> int | None:
                return FIRST if name == "init_task" else None

        return list(LinuxTasks(cast(Guest, Image())).each())


@pytest.mark.parametrize("state_name", ["__state", "state"])
def test_processes_and_threads_with_their_states(state_name: str) -> None:
    kernel = Kernel(state_name)
    kernel.start((1, 1, "init", 1, 0, 5_000))
    kernel.start((20, 20, "httpd", 0, 0, 7), (21, 20, "worker", 2, 0, 8))
    kernel.start((30, 30, "kworker", 0x402, 0, 0))
    kernel.start((40, 40, "gone", 0, 32, 9))
    kernel.start((50, 50, "held", 4, 0, 9))
    assert kernel.tasks() == [
        TaskState(1, 1, "init", "S", 5_000),
        TaskState(20, 20, "httpd", "R", 7),
        TaskState(20, 21, "worker", "D", 8),
        TaskState(30, 30, "kworker", "I", 0),
        TaskState(40, 40, "gone", "Z", 9),
        TaskState(50, 50, "held", "T", 9),
    ]


def test_before_there_are_tasks() -> None:
    assert Kernel().tasks() == []
    assert Kernel(words={FIRST: FIRST}).tasks() == []
    assert Kernel(words={FIRST: 0}).tasks() == []


def test_a_list_that_ends_early_or_never() -> None:
    kernel = Kernel()
    first, _ = kernel.start((1, 1, "init", 1, 0, 0), (2, 1, "other", 1, 0, 0))
    (last,) = kernel.start((3, 3, "last", 1, 0, 0))
    kernel.words[last] = 0x1234
    assert [task.tid for task in kernel.tasks()] == [1, 2, 3]
    kernel.words[last] = first  # and round again without the head
    assert 3 < len(kernel.tasks()) < 10_000
