"""samples/d: how each script is run, on which machine -> what it prints.

`python -m tests.samples.scripts` (with .typing and . in PYTHONPATH) writes the expected outputs anew, after a change of
the kernel: read the difference before you commit it, the tests can only say that the sums are right.
"""

import os
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.samples.machines import MACHINES, SAMPLES

FOLDER = SAMPLES / "d"
PROVIDER = SAMPLES / "providers"
EVERYWHERE: Mapping[str, Sequence[str]] = dict.fromkeys(MACHINES, ())
KMALLOC_SIZE = {  # where a register has the argument of kmalloc, and which
    "amd64": ("kmalloc", "0", "R_RDI"),
    "arm64": ("kmalloc", "0", "R_X0"),
    "riscv64": ("kmalloc", "0", "R_A0"),
}


@dataclass(frozen=True, slots=True)
class Script:
    """One script and the arguments that its expected output is of, by machine."""

    name: str
    arguments: Mapping[str, Sequence[str]]

    def golden(self, machine: str) -> Path:
        """Where its output stands: one file where the machines agree."""
        own = FOLDER / f"{self.name}.{machine}.out"
        return own if own.exists() else FOLDER / f"{self.name}.out"


SCRIPTS = {
    path.stem: Script(path.stem, KMALLOC_SIZE if path.stem == "instruction" else EVERYWHERE)
    for path in sorted(FOLDER.glob("*.d"))
}


@cache
def printed(name: str, machine: str, *arguments: str) -> str:
    """The output of a script: with its usual arguments, or these."""
    words = ["-s", str(FOLDER / f"{name}.d"), str(MACHINES[machine].image)]
    return invoked(*words, *(arguments or SCRIPTS[name].arguments[machine]))


@cache
def traced(machine: str, program: str) -> str:
    """The output of a program of our own, quiet, on a sample kernel."""
    return invoked("-q", str(MACHINES[machine].image), "-n", program)


def invoked(*words: str) -> str:
    """What kinst-run prints with these words, the same in every run."""
    with rpc_provider():
        result = CliRunner().invoke(run, [*words, "--clock", "icount", "--console", os.devnull], prog_name="kinst-run")
    assert result.exit_code == 0, f"{words}: {result.stderr}\n{result.exception!r}"
    return result.stdout


@contextmanager
def rpc_provider() -> Iterator[None]:
    """samples/providers as if it were installed."""
    project = tomllib.loads((PROVIDER / "pyproject.toml").read_text())["project"]
    with tempfile.TemporaryDirectory() as folder:
        metadata = Path(folder) / "kinst_rpc-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n")
        points = project["entry-points"]["kinst.providers"]
        lines = [f"{name} = {value}\n" for name, value in points.items()]
        (metadata / "entry_points.txt").write_text("[kinst.providers]\n" + "".join(lines))
        paths = [folder, str(PROVIDER)]
        sys.path[:0] = paths
        try:
            yield
        finally:
            for path in paths:
                sys.path.remove(path)


def write_goldens() -> None:
    """Every script's output: one file if the machines agree, else one each."""
    for old in FOLDER.glob("*.out"):
        old.unlink()
    for name in SCRIPTS:
        outputs = {machine: printed(name, machine) for machine in MACHINES}
        if len(set(outputs.values())) == 1:
            (FOLDER / f"{name}.out").write_text(outputs["amd64"])
            continue
        for machine, output in outputs.items():
            (FOLDER / f"{name}.{machine}.out").write_text(output)


if __name__ == "__main__":
    write_goldens()
