"""Tasks -> answers, by an existing dask.distributed cluster. The only file that uses dask (the extra [batch]).

When a worker dies, others get its tasks; an answer that has arrived is not computed again. How a worker
does a task is in `cluster_worker`.

Files go over the wire by their content. Each is one value in the cluster, compressed, which a worker fetches once, from
any other that has it; tasks only name it. A file that was lost with the workers that had it is sent again, and so are
the tasks that needed it.
"""

import time
from collections import Counter
from importlib.metadata import version
from typing import Any, Final

from kinst.runtime.batch.cluster_worker import packed, run_task
from kinst.runtime.batch.pool import Results, Tasks
from kinst.runtime.batch.rows import Answer, Outcome, failure
from kinst.runtime.batch.schema import checked_answer
from kinst.runtime.batch.tasks import Places, Task
from kinst.runtime.batch.worker import Limits
from kinst.targets.errors import KinstError, UsageError

_TRIES: Final = 4  # of a task whose files were lost, or whose workers died
_PER_THREAD: Final = 4  # tasks that the scheduler has, for each thread of the cluster
_FEWEST: Final = 32
_INTERVAL: Final = 5.0  # seconds between two counts of the cluster's threads
_PATIENCE: Final = 30.0  # seconds to find the scheduler
_KEY: Final = "kinst-batch-"


def cluster_results(tasks: Tasks, places: Places, limits: Limits, address: str) -> Results:
    """Do tasks on the cluster whose scheduler is at `address`.

    Raises:
        UsageError: dask is not installed.
        KinstError: there is no cluster, or no certificates for TLS, or its workers have another version of
            kinst-rewrite.
    """
    try:
        import distributed
    except ImportError:
        raise UsageError("--dask needs dask.distributed: pip install 'kinst-rewrite[batch]'") from None
    _check_certificates(distributed, address)
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise KinstError(f"--dask {address}: no cluster: {error}") from None
    with client:
        _check_versions(client, address)
        yield from _Cluster(distributed, client, tasks, places, limits).results()


def _check_certificates(distributed: Any, address: str) -> None:
    """A client of tls:// that has none fails as it starts, and dask waits a minute for it to end."""
    if address.startswith("tls://") and distributed.Security().get_connection_args("client")["ssl_context"] is None:
        raise KinstError(
            f"--dask {address}: no certificates: name them in dask's configuration, as distributed.comm.tls.ca-file, "
            "client.cert and client.key (or DASK_DISTRIBUTED__COMM__TLS__CA_FILE, ...)"
        )


def _check_versions(client: Any, address: str) -> None:
    try:
        found = client.run(version, "kinst-rewrite", on_error="return")
    except Exception as error:  # what a worker raises that lacks us is up to its unpickling
        raise KinstError(f"--dask {address}: its workers have no kinst-rewrite: {error}") from None
    ours = version("kinst-rewrite")
    for worker, other in found.items():
        if other != ours:
            raise KinstError(f"--dask {address}: the worker {worker} has kinst-rewrite {other}, not {ours}")


class _Cluster:
    """Some tasks, on their way through a cluster."""

    def __init__(self, distributed: Any, client: Any, tasks: Tasks, places: Places, limits: Limits) -> None:
        self._distributed, self._client = distributed, client
        self._tasks, self._places, self._limits = tasks, places, limits
        self._files: dict[str, Any] = {}  # futures by SHA-256
        self._users = Counter(file.sha256 for task in tasks.values() for file in task.files())
        self._tries = Counter[str]()
        self._threads, self._counted = 0, 0.0  # of the cluster, and when they were counted

    def results(self) -> Results:
        """The answers, in the order in which they arrive."""
        waiting = list(self._tasks)[::-1]  # taken from the end: a task that was lost is sent again before any other
        running: dict[Any, str] = {}
        done = self._distributed.as_completed(loop=self._client.loop)
        while waiting or running:
            while waiting and len(running) < self._room():
                digest = waiting.pop()
                future = self._submitted(digest)
                running[future] = digest
                done.add(future)
            future = next(done)
            digest = running.pop(future)
            answer = self._answer(future, self._tasks[digest])
            if answer is None and self._tries[digest] < _TRIES:
                waiting.append(digest)
                continue
            self._forget_files(self._tasks[digest])
            yield digest, answer or failure(self._tasks[digest], Outcome.CRASHED, "the cluster lost it several times")

    def _room(self) -> int:
        """How many tasks the scheduler should have now: workers come and go."""
        if time.monotonic() - self._counted > _INTERVAL:
            self._threads, self._counted = sum(self._client.nthreads().values()), time.monotonic()
        return max(_FEWEST, _PER_THREAD * self._threads)

    def _submitted(self, digest: str) -> Any:
        task = self._tasks[digest]
        self._tries[digest] += 1
        files = {file.sha256: self._file(file.sha256) for file in task.files()}
        # To dask equal keys are one computation: without the number of the try, a task sent again could get the
        # outcome of its first try.
        key = f"{_KEY}{digest}-{self._tries[digest]}"
        return self._client.submit(run_task, task, self._limits, list(files), *files.values(), key=key, pure=False)

    def _file(self, sha256: str) -> Any:
        """A file as a value in the cluster."""
        future = self._files.get(sha256)
        if future is None or future.status != "finished":
            content = packed(self._places[sha256])
            future = self._client.scatter(content, hash=False)  # hash: dask would digest the content again for a key
            self._files[sha256] = future
        return future

    def _forget_files(self, task: Task) -> None:
        """Let the cluster drop files that no other task needs."""
        for file in task.files():
            self._users[file.sha256] -= 1
            if not self._users[file.sha256]:
                self._files.pop(file.sha256, None)

    def _answer(self, future: Any, task: Task) -> Answer | None:
        """The answer of a task; None: the task must be sent again."""
        if future.status == "finished":
            try:
                return checked_answer(future.result())
            except ValueError as wrong:
                return failure(task, Outcome.FAILED, f"on the cluster: a worker's answer is not valid: {wrong}")
        if future.status == "cancelled":
            return None
        error = future.exception()
        if isinstance(error, self._distributed.KilledWorker):
            return failure(task, Outcome.CRASHED, "the workers of the cluster that performed it died")
        return failure(task, Outcome.FAILED, f"on the cluster: {type(error).__name__}: {error}")
