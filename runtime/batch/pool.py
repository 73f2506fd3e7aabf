"""Tasks -> answers, by processes of this machine."""

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

from kinst.runtime.batch.rows import Answer
from kinst.runtime.batch.tasks import Places, Task
from kinst.runtime.batch.worker import Limits, Request
from kinst.runtime.batch.worker_process import WorkerProcess

Tasks = Mapping[str, Task]  # by digest
Results = Iterator[tuple[str, Answer]]  # in the order in which they come


def pool_results(tasks: Tasks, places: Places, limits: Limits, jobs: int) -> Results:
    """Perform tasks, `jobs` at a time. If the caller stops early, tasks that are running are killed."""
    waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    for digest in tasks:
        waiting.put(digest)
    done: queue.SimpleQueue[tuple[str, Answer]] = queue.SimpleQueue()
    workers = [WorkerProcess() for _ in range(min(jobs, len(tasks)))]
    threads = [
        threading.Thread(target=_work, args=(worker, waiting, done, tasks, places, limits)) for worker in workers
    ]
    for thread in threads:
        waiting.put(None)  # one for each thread, after all tasks: the thread that takes it ends
        thread.start()
    try:
        for _ in tasks:
            yield done.get()
    finally:
        _all_at_once([worker.stop for worker in workers])  # each may wait for seconds until its worker is dead
        for thread in threads:
            thread.join()


def _work(
    worker: WorkerProcess,
    waiting: "queue.SimpleQueue[str | None]",
    done: "queue.SimpleQueue[tuple[str, Answer]]",
    tasks: Tasks,
    places: Places,
    limits: Limits,
) -> None:
    try:
        while (digest := waiting.get()) is not None:
            task = tasks[digest]
            answer = worker.run_task(Request(task, {file.sha256: places[file.sha256] for file in task.files()}, limits))
            if answer is None:
                return
            done.put((digest, answer))
    finally:
        worker.close()


def _all_at_once(calls: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
