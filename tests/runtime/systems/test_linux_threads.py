"""Keys of self-> on Linux: one for each task that ever was, however often its memory is used, and no more than live."""

from kinst.runtime.providers.structures import Way
from kinst.runtime.systems.linux_threads import Known, LinuxThreads
from tests.runtime.unwinding.memories import Words

OFFSETS = {"stack_canary": 8, "start_time": 16, "stack": 24, "exit_state": 32, "on_rq": 40}
STACK = 0x1000


def way(member: str) -> Way | None:
    return ((OFFSETS[member], 8),) if member in OFFSETS else None


class Tasks:
    """Tasks in memory, at multiples of 0x100."""

    def __init__(self) -> None:
        self.words: dict[int, int] = {}
        self.forgotten: list[int] = []
        self.threads = LinuxThreads(Words(self.words), way, 0x400)
        self.threads.begin(self.forgotten.append)

    def start(self, task: int, number: int) -> None:
        values = {"stack_canary": number, "start_time": 7, "stack": STACK, "exit_state": 0, "on_rq": 1}
        self.words |= {task + OFFSETS[member]: value for member, value in values.items()}

    def end(self, task: int) -> None:
        self.words |= {task + OFFSETS["exit_state"]: 16, task + OFFSETS["on_rq"]: 0}


def test_a_task_has_its_key_and_the_next_in_its_memory_another() -> None:
    tasks = Tasks()
    tasks.start(0x100, 1)
    tasks.start(0x200, 1)
    first, other = tasks.threads.key(0x100, None), tasks.threads.key(0x200, None)
    assert first == tasks.threads.key(0x100, STACK + 0x10) != other
    tasks.start(0x100, 2)
    assert tasks.threads.key(0x100, None) not in (first, other, None)
    tasks.start(0x100, 1)
    assert tasks.threads.key(0x100, None) == first


def test_another_stack_is_not_the_tasks() -> None:
    tasks = Tasks()
    tasks.start(0x100, 1)
    key = tasks.threads.key(0x100, STACK + 0x400)  # an empty stack
    assert key is not None
    assert [tasks.threads.key(0x100, sp) for sp in (STACK, STACK + 0x401, 0x9000, None)] == [None, None, None, key]


def test_variables_of_dead_tasks_are_freed() -> None:
    tasks = Tasks()
    tasks.start(0x100, 5)
    lasting = tasks.threads.key(0x100, None)
    given = set()
    for number in range(10_000):
        task = 0x1000 * (number % 40 + 1)  # their memory is used again, sometimes after they ended, sometimes unseen
        tasks.start(task, 100 + number)
        given.add(tasks.threads.key(task, None))
        if number % 2:
            tasks.end(task)
    assert len(given) == 10_000
    assert len(set(tasks.forgotten)) == len(tasks.forgotten) > 9_800
    assert lasting not in tasks.forgotten
    assert tasks.threads.key(0x100, None) == lasting


def test_a_task_that_has_ended_but_runs_is_kept() -> None:
    tasks = Tasks()
    tasks.start(0x100, 1)
    key = tasks.threads.key(0x100, None)
    tasks.words[0x100 + OFFSETS["exit_state"]] = 32
    for number in range(300):
        tasks.start(0x1000, number)
        tasks.threads.key(0x1000, None)
    assert tasks.forgotten
    assert key not in tasks.forgotten


def test_without_types_the_address_must_do() -> None:
    threads = LinuxThreads(Words({}), lambda _member: None, None)
    threads.begin(lambda _key: None)
    assert threads.key(0x100, 5) == 0x100


def test_what_tells_a_task_by_itself() -> None:
    """Until the tasks that are dead are looked for, and it may be one of them."""
    tasks, changes = Tasks(), list[int]()
    tasks.threads.on_change(lambda: changes.append(len(tasks.forgotten)))
    tasks.start(0x100, 5)
    assert tasks.threads.known(0x100) is None  # nobody asked for its key
    tasks.threads.key(0x100, None)
    assert tasks.threads.known(0x100) == Known(STACK, STACK + 0x400, (0x100 + OFFSETS["stack_canary"], 5))
    assert changes == []

    for number in range(100):
        tasks.start(0x1000, number)
        tasks.threads.key(0x1000, None)
    assert changes[0] > 0
    tasks.start(0x100, 6)
    assert tasks.threads.known(0x100) is None


def test_where_others_are_not_seen_a_task_is_gone_when_its_memory_is_anothers() -> None:
    forgotten: list[int] = []
    words = {0x1000: 7, 0x2000: 8}
    threads = LinuxThreads(
        Words(words), lambda member: ((0, 8),) if member == "stack_canary" else None, None, sees_others=False
    )
    threads.begin(forgotten.append)
    first, second = threads.key(0x1000, None), threads.key(0x2000, None)
    assert (threads.key(0x1000, None), forgotten) == (first, [])
    words[0x1000] = 9
    assert threads.key(0x1000, None) not in (first, second)
    assert forgotten == [first]
