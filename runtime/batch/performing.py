"""A task -> its answer, in a process of its own. An error of the image is an answer, too."""

import os
import traceback
from dataclasses import replace
from pathlib import Path
from typing import assert_never

from kinst.runtime.batch.calling import call_all
from kinst.runtime.batch.proving import rewrite_and_prove
from kinst.runtime.batch.rows import Answer, Outcome, failure
from kinst.runtime.batch.running import boot_and_trace
from kinst.runtime.batch.tasks import Call, Places, Rewrite, Run, Task
from kinst.targets.errors import KinstError
from kinst.targets.image import architecture


def perform(task: Task, places: Places, seconds: float | None = None) -> Answer:
    """Perform a task.

    Args:
        task: what to do.
        places: where its files are.
        seconds: after which the task will be killed; a boot ends itself before that, to report what it found.
    """
    answer = _performed(task, places, seconds)
    if any("machine" not in row for row in answer.rows):
        machine = _machine(places[task.image.sha256])
        return replace(answer, rows=tuple({"machine": machine, **row} for row in answer.rows))
    return answer


def _performed(task: Task, places: Places, seconds: float | None) -> Answer:
    try:
        return _done(task, places, seconds)
    except KinstError as error:
        return failure(task, Outcome.REFUSED, _without_path(str(error), task, places))
    except MemoryError:
        return failure(task, Outcome.MEMORY, "the system has no more memory")
    except Exception as error:  # a defect of ours: the other images are still to be tried
        if os.environ.get("KINST_TRACEBACK"):
            traceback.print_exc()
        return failure(task, Outcome.FAILED, f"internal error: {type(error).__name__}: {error}")


def _done(task: Task, places: Places, seconds: float | None) -> Answer:
    match task.work:
        case Rewrite() as work:
            return rewrite_and_prove(task.image, work, places)
        case Run() as work:
            return boot_and_trace(task.image, work, places, seconds)
        case Call() as work:
            return call_all(task.image, work, places)
        case _:
            assert_never(task.work)


def _machine(path: Path) -> str | None:
    """The architecture of an image that could not be used; None if it is not known."""
    try:
        return architecture(path)
    except KinstError:
        return None


def _without_path(message: str, task: Task, places: Places) -> str:
    """A message without the path that the image has on this machine: answers must be equal on all machines."""
    path = str(places[task.image.sha256])
    return message.removeprefix(f"{path}: ").replace(path, task.image.name)
