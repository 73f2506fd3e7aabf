"""A worker process: whatever its task does, to itself or to the worker, there is an answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kinst.runtime.batch.rows import Answer
from kinst.runtime.batch.tasks import InputFile, Run, Task
from kinst.runtime.batch.worker import Limits, Request
from kinst.runtime.batch.worker_process import WorkerProcess

IMAGE = Path(__file__).parents[3] / "samples" / "kernel-riscv64.elf"
HARM = 'BEGIN { system("%s"); exit(0); }'
SLOW = 'BEGIN { system("sleep 60"); exit(0); }'


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    """What a worker that is killed leaves behind is not ours to look for in the system's folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("tasks")))
        found = WorkerProcess()
        yield found
        found.close()


def request(program: str, limits: Limits) -> Request:
    image = InputFile("kernel.elf", "0" * 64, 0)
    work = Run(program, program, options=(("destructive", None),))
    return Request(Task(image, work, "1"), {image.sha256: IMAGE}, limits)


def answer(worker: WorkerProcess, program: str, **limits: float) -> Answer:
    memory = limits.get("memory")
    found = worker.run_task(request(program, Limits(limits.get("seconds"), None if memory is None else int(memory))))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("program", "limits", "outcome", "reason"),
    [
        (HARM % "true", {}, "done", None),
        (HARM % "kill -SEGV $PPID", {}, "crashed", "killed by SIGSEGV"),
        (SLOW, {"seconds": 0.5}, "timeout", "took longer than 0.5 s"),
        (SLOW, {"memory": 16 << 20}, "memory", "took more than 16 MiB"),
        ("syntax error", {}, "refused", None),
        (HARM % "kill -9 $(ps -o ppid= -p $PPID)", {}, "crashed", "the worker process died, twice"),
    ],
)
def test_there_is_an_answer(
    worker: WorkerProcess, program: str, limits: dict[str, float], outcome: str, reason: str | None
) -> None:
    found = answer(worker, program, **limits)
    (row,) = found.rows
    assert row["outcome"] == outcome
    assert reason is None or row["reason"] == reason
    if outcome == "done":
        assert found.seconds > 0.01
        assert 20 < found.megabytes < 4000


def test_one_that_was_told_to_stop_gives_no_answer() -> None:
    stopped = WorkerProcess()
    stopped.stop()
    assert stopped.run_task(request(SLOW, Limits())) is None
