"""What CONTRIBUTING and the others say to type is there; `poe TASK --help` says what a task does, without doing it."""

import json
import os
import re
import shlex
import subprocess
import sys
from typing import Final

import pytest

from tests.docs.pages import ROOT
from tests.docs.tasks import TASKS, command_of

DOCUMENTS = ("CONTRIBUTING.md", "README.md", "ARCHITECTURE.md", "docs/releasing.md")
# Who says what it does in its first lines: these are not ours, and long to start or fetched anew.
OTHERS = ("ruff", "mypy", "lint-imports", "pytest", "mkdocs", "uv")
OURS: Final = "python -m "
# All of them in one process, which imports what they share once. One that starts instead is ended with it.
_HELP: Final = """
import contextlib, io, json, runpy, sys
found = {}
for name, (module, *words) in json.load(sys.stdin).items():
    sys.argv, said, status = [module, *words, "--help"], io.StringIO(), None
    try:
        with contextlib.redirect_stdout(said):
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        status = ended.code
    found[name] = [status, said.getvalue()]
print(json.dumps(found))
"""


def first_word(name: str) -> str:
    return (command_of(name) or "").partition(" ")[0]


def help_of(name: str) -> subprocess.CompletedProcess[str]:
    """What `poe NAME --help` prints. A job that starts instead has a short time."""
    command = [sys.executable, "-m", "poethepoet", name, "--help"]
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "100"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)


def says_how_to_use_it(name: str) -> bool:
    result = help_of(name)
    assert (result.returncode, "Traceback" in result.stderr) == (0, False), result.stdout + result.stderr
    return is_usage(result.stdout)


def is_usage(text: str) -> bool:
    return re.search(r"^ *usage:", text, re.IGNORECASE | re.MULTILINE) is not None


def test_help_of_our_jobs_says_what_they_do() -> None:
    commands = {name: command_of(name) or "" for name in TASKS if first_word(name) not in OTHERS}
    assert [command for command in commands.values() if not command.startswith(OURS)] == []
    asked = json.dumps({name: shlex.split(command.removeprefix(OURS)) for name, command in commands.items()})
    words = [sys.executable, "-c", _HELP]
    environment = os.environ | {"PYTHONPATH": ".typing:."}
    done = subprocess.run(words, input=asked, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.keys() == commands.keys()
    assert {name for name, (status, said) in found.items() if status or not is_usage(said)} == set()


def test_poe_hands_on_that_help_is_wanted() -> None:
    assert says_how_to_use_it("check-changed")  # behind words of its own


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in TASKS if name != "check-changed"])
def test_help_of_all_others_does_too(name: str) -> None:
    assert says_how_to_use_it(name)


def test_every_task_is_one_command_or_has_its_own_help() -> None:
    """poe gives --help to one command; a sequence or a script of the shell would run, whatever was asked."""
    more = {name for name in TASKS if command_of(name) is None}
    assert {
        name for name in more if not any("--help" in arg["options"] for arg in TASKS[name].get("args", []))
    } == set()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_name_tasks_that_there_are(name: str) -> None:
    named = set(re.findall(r"\bpoe ([a-z][a-z-]+)", (ROOT / name).read_text()))
    assert named
    assert named <= set(TASKS)
