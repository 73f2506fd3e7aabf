"""What the README shows is what happens: its examples are run, its tables are compared with the code."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.images import real_image
from tests.samples.machines import missing
from tests.system.cases import CASES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
IMAGES = {"opensbi/fw_jump.elf": "opensbi-1.6"}
TOOL = re.compile(r"qemu-system-\w+|\w+-linux-gnu-\w+")
LAUNCH = "import sys; from kinst.{module}.cli import {function} as main; sys.exit(main(prog_name={name!r}))"
COMMANDS = {
    "kinst-rewrite": ("rewriter", "rewrite"),
    "kinst-list": ("rewriter", "list_probes"),
    "kinst-diff": ("rewriter", "diff"),
    "kinst-run": ("runtime", "run"),
}


def consoles() -> list[list[tuple[str, str]]]:
    """The ```console blocks: each a list of (command, output shown). Lines that begin with > go on with the command."""
    blocks = re.findall(r"^```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    steps = re.compile(r"^\$ (.*\n(?:> .*\n)*)((?:(?!\$ ).*\n)*)", re.MULTILINE)
    return [[(command.replace("\n> ", "\n"), shown) for command, shown in steps.findall(block)] for block in blocks]


def programs() -> list[tuple[str, str]]:
    """The ```python blocks, and the ```text that follows each: what it prints."""
    return re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def matches(shown: str, output: str) -> bool:
    """Whether `output` is what is shown, where a line of three dots stands for any lines."""
    pattern = "".join(".*" if line.strip() == "..." else re.escape(line) for line in shown.splitlines(keepends=True))
    return re.fullmatch(pattern, output, re.DOTALL) is not None


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A folder with everything the examples name."""
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    for place, name in IMAGES.items():
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).symlink_to(real_image(name))
    scripts = tmp_path / "bin"
    scripts.mkdir()
    for name, (module, function) in COMMANDS.items():
        launcher = scripts / name
        code = LAUNCH.format(module=module, function=function, name=name)
        launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -c {shlex.quote(code)} "$@"\n')
        launcher.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("steps", consoles(), ids=lambda steps: steps[0][0][:40])
def test_console_examples_print_what_is_shown(workplace: Path, steps: list[tuple[str, str]]) -> None:
    environment = os.environ | {
        "PATH": f"{workplace / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT / '.typing'}:{ROOT}",
    }
    tools = {tool for command, _ in steps for tool in TOOL.findall(command)}
    if why := missing(*sorted(tools)):
        pytest.skip(why)
    for command, shown in steps:
        result = subprocess.run(
            command,
            shell=True,
            cwd=workplace,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=300,
            check=False,
        )
        assert matches(shown, result.stdout), f"$ {command}\n{result.stdout[:4000]}"


@pytest.mark.parametrize(("program", "shown"), programs(), ids=lambda text: text.splitlines()[-1][:40])
def test_python_examples_print_what_is_shown(workplace: Path, program: str, shown: str) -> None:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / '.typing'}:{ROOT}"}
    words = [sys.executable, "-c", program]
    result = subprocess.run(
        words, cwd=workplace, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert (result.stdout, result.stderr) == (shown, "")


def test_image_table_lists_what_the_system_tests_boot() -> None:
    """The support matrix is the list of the cases that the tests run, no more and no less."""
    rows = re.findall(r"^\| `([a-z0-9.-]+)` \| `([a-z0-9-]+)` \|", README, re.MULTILINE)

    assert set(rows) == {(case.image, case.machine) for case in CASES}
