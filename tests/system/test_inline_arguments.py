"""Arguments of inlined copies are those that an instrumented build shows: the sample kernel compiled once more with
some inline functions out of line, where fbt reads them in registers.

Where the compiler did not keep an argument the clause fails and says so: what copies show is a part of what the other
build shows, and all of it for functions whose arguments are there at every copy.
"""

import os
import re
import shutil
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.samples.machines import MACHINES, SAMPLES

# Function -> printf's format and what it shows of the arguments, which must not depend on where things lie.
SHOWN = {
    "v2_limits": ("%d %d", "args[0]->offset, args[0]->count"),
    "in_packet": ("%d %d %d", "args[0], args[1], args[2]"),
    "load": ("%d %d %d", "arg1, arg2, arg3"),
    "component_length": ("%s %s", "stringof(args[0]), stringof(args[1])"),
    "put16": ("%d", "args[1]"),
    "poison": ("%d", "args[1]"),
    "atomic_add": ("%d", "args[1]"),
    "next_random": ("%d", "*args[0]"),
    "fill_attr": ("%d", "args[0]->count"),
    "first_job": ("%d", "args[0]"),
    "callout_due": ("%d", "args[1]"),
}
COMPLETE = ("in_packet", "load", "component_length", "first_job")  # on every machine
each_machine = pytest.mark.parametrize("machine", sorted(MACHINES))


@cache
def copies(machine: str) -> tuple[dict[str, Counter[str]], str]:
    """What probes of copies show of each function, and the errors."""
    return shown(SAMPLES / f"kernel-{machine}.elf", "kinst")


def shown(image: Path, provider: str) -> tuple[dict[str, Counter[str]], str]:
    clauses = "".join(
        f'{provider}::{name}:entry {{ printf("%s {form}\\n", "{name}", {values}); }}\n'
        for name, (form, values) in SHOWN.items()
    )
    words = ["-q", str(image), "-n", clauses, "--clock", "icount", "--console", os.devnull]
    result = CliRunner().invoke(run, words, prog_name="kinst-run")
    assert result.exit_code == 0, result.stderr
    found = {name: Counter[str]() for name in SHOWN}
    for line in result.stdout.splitlines():
        name, _, values = line.partition(" ")
        if name in found:
            found[name][values] += 1
    return found, result.stderr


def instrumented(machine: str, folder: Path) -> Path:
    """The sample kernel with the functions out of line, and nothing known of them where they are called."""
    if shutil.which(MACHINES[machine].compiler) is None:
        assert not os.environ.get("KINST_REQUIRE_TOOLS"), f"no {MACHINES[machine].compiler}"
        pytest.skip(f"no {MACHINES[machine].compiler}")
    source = folder / "kernel"
    shutil.copytree(SAMPLES / "kernel", source)
    head = re.compile(rf"^always_inline (.*\b(?:{'|'.join(SHOWN)})\()", re.MULTILINE)
    replaced = 0
    for path in source.rglob("*.[ch]"):
        text, count = head.subn(r"static __attribute__((noipa, unused)) \1", path.read_text())
        path.write_text(text)
        replaced += count
    assert replaced == len(SHOWN)
    subprocess.run(["sh", str(source / "build"), "-o", str(folder), machine], check=True)
    return folder / f"kernel-{machine}.elf"


@each_machine
def test_copies_show_what_an_instrumented_build_shows(machine: str) -> None:
    found, errors = copies(machine)
    with TemporaryDirectory() as folder:
        expected, none = shown(instrumented(machine, Path(folder)), "fbt")
    assert not none
    for name in SHOWN:
        assert not found[name] - expected[name], name
        assert name not in COMPLETE or found[name] == expected[name], name
    missing = sum((expected[name] - found[name]).total() for name in SHOWN)
    assert len(re.findall("illegal operation in action #\\d: optimised out", errors)) >= missing / 2
    assert sum(found[name].total() for name in SHOWN) > 1000


@each_machine
def test_what_is_not_there_is_said_so(machine: str) -> None:
    _, errors = copies(machine)
    lines = [line for line in errors.splitlines() if "rpc_lookup" in line]
    assert lines and all(re.search(r": illegal operation in action #\d: optimised out$", line) for line in lines)
