"""pyproject.toml -> the tasks of poe: what `poe NAME` runs."""

import tomllib
from typing import Any, Final

from tests.docs.pages import ROOT

TASKS: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["poe"]["tasks"]


def command_of(name: str) -> str | None:
    """What a task runs; words that follow its name are given to that. None if it is more than one command."""
    task = TASKS[name]
    if isinstance(task, dict):
        task = task.get("cmd")
    return task if isinstance(task, str) else None
