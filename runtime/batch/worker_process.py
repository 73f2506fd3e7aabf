"""The client of a worker process, which is started when it is needed, and again when it has died."""

import os
import subprocess
from typing import Final

from kinst.rewriter.shell.own_process import own_command, own_environment
from kinst.runtime.batch.frames import receive, send
from kinst.runtime.batch.rows import Answer, Outcome, failure
from kinst.runtime.batch.schema import checked_answer
from kinst.runtime.batch.worker import Request

_TRIES: Final = 2  # of a task whose worker died: it may have been the worker's own fault
_TRACEBACK: Final = "KINST_TRACEBACK"
_PATIENCE: Final = 2.0  # seconds for a worker to end


class WorkerProcess:
    """A process of `kinst.runtime.batch.worker`; used by one thread."""

    def __init__(self) -> None:
        """Nothing is started yet."""
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def run_task(self, request: Request) -> Answer | None:
        """Perform a task. Whatever happens to the worker, there is an answer; None after `stop`."""
        for _ in range(_TRIES):
            answer = None if self._is_stopped else self._tried(request)
            if answer is not None or self._is_stopped:
                return answer
        return failure(request.task, Outcome.CRASHED, "the worker process died, twice")

    def _tried(self, request: Request) -> Answer | None:
        process = self._process = self._process or _started()
        assert process.stdin is not None and process.stdout is not None, "both are pipes"
        try:
            send(process.stdin.fileno(), request)
            said = receive(process.stdout.fileno())
            answer = None if said is None else checked_answer(said)
        except (OSError, ValueError):  # the worker is dead, `stop` has closed the pipe, or its answer is not valid
            answer = None
        if answer is None:
            self.close()
        return answer

    def stop(self) -> None:
        """From another thread: kill the running task and the process, for good."""
        self._is_stopped = True
        process = self._process
        if process is not None:
            _end(process)

    def close(self) -> None:
        """End the process. The next task gets a new one."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)
            if process.stdout is not None:
                process.stdout.close()


def _started() -> "subprocess.Popen[bytes]":
    """A new worker, in a process group of its own, so that Ctrl-C reaches only its parent."""
    return subprocess.Popen(
        own_command("kinst.runtime.batch.worker"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None if os.environ.get(_TRACEBACK) else subprocess.DEVNULL,
        env=own_environment() | {"OPENBLAS_NUM_THREADS": "1"},
        start_new_session=True,
    )


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Send no more requests: the worker ends its task, and itself."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
