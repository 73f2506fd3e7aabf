"""A run of tests tells which of them computed most, in which process it was."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.launchers import ENVIRONMENT
from tests.dearest import TOLD
from tests.gated import long_after_first

TESTS = rf"""
import os, subprocess, sys, pytest

COMPUTE = "import os\nwhile os.times().user < {{seconds}}: pass"

@pytest.mark.parametrize("number", range({TOLD}))
def test_little(number):
    pass

def test_itself():
    until = os.times().user + 0.2
    while os.times().user < until:
        pass

def test_a_process():
    subprocess.run([sys.executable, "-ISc", COMPUTE.format(seconds=0.7)], check=True)
"""


@pytest.mark.parametrize("workers", long_after_first(["0", "2"]))
def test_the_dearest_come_first(workers: str, tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text(
        "from tests.dearest import Dearest\ndef pytest_configure(config): config.pluginmanager.register(Dearest())\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-n", workers, "--rootdir", str(tmp_path)]
    own = {name: value for name, value in ENVIRONMENT.items() if not name.startswith("PYTEST_")}
    own["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # others' take a second to import
    done = subprocess.run(words, cwd=tmp_path, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^ +(\d+\.\d)  \S+::(\w+)", done.stdout, re.MULTILINE)
    assert len(rows) == TOLD
    assert [name for _, name in rows[:2]] == ["test_a_process", "test_itself"]
    assert float(rows[0][0]) >= 0.7 > float(rows[1][0]) >= 0.2
