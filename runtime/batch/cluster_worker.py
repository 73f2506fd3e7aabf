"""A task and its files' content -> its answer, on a worker of a cluster."""

import atexit
import hashlib
import shutil
import tempfile
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from kinst.rewriter.shell.fresh_file import fresh_file
from kinst.runtime.batch.rows import Answer, Outcome, failure
from kinst.runtime.batch.tasks import Task
from kinst.runtime.batch.worker import Limits, Request
from kinst.runtime.batch.worker_process import WorkerProcess
from kinst.targets.compression import zstd_content, zstd_frame
from kinst.targets.errors import ImageError

_LARGEST: Final = 4 << 30  # bytes of a file
_own = threading.local()  # each thread of the worker has a process of its own


def packed(path: Path) -> bytes:
    """A file's content as it goes over the wire."""
    return zstd_frame(memoryview(path.read_bytes()))


def run_task(task: Task, limits: Limits, names: Sequence[str], *contents: bytes) -> Answer:
    """Do a task. `names`: the SHA-256 of the files that `contents` has, packed."""
    places = {name: _stored(name, content) for name, content in zip(names, contents, strict=True)}
    answer = _process().run_task(Request(task, places, limits))
    return answer or failure(task, Outcome.CRASHED, "the worker is ending")


def _process() -> WorkerProcess:
    process: WorkerProcess | None = getattr(_own, "process", None)
    if process is None:
        process = _own.process = WorkerProcess()
        atexit.register(process.stop)
    return process


@cache
def _folder() -> Path:
    """The folder in which this worker keeps files until it ends."""
    folder = Path(tempfile.mkdtemp(prefix="kinst-batch-files-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _stored(sha256: str, content: bytes) -> Path:
    path = _folder() / sha256
    # Two threads may write the same file: `fresh_file` puts it there when it is whole, so neither sees half of one.
    if not path.exists():
        data = zstd_content(memoryview(content), _LARGEST)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise ImageError(f"{sha256}: the file with this SHA-256 was changed while the batch ran")
        with fresh_file(path) as file:
            file.write(data)
    return path
