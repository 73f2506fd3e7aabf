"""Debian's Linux for amd64, whose first code runs in the identity map: entries of all functions fire and change
nothing."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from tests.images import at_hand, real_image

pytestmark = pytest.mark.skipif(not at_hand("linux-amd64"), reason="linux-amd64 was not downloaded")
UNTIL = "Memory: "
TIME = re.compile(r"^\[ *\d+\.\d+\] ")
# What the host's time stamp counter is compared with, which is Unicorn's rdtsc whatever the machine's clock is.
MEASURED = re.compile(r"tsc:")
EVERY_ENTRY = "fbt:::entry { @[probefunc] = count(); }"
EARLY = "fbt::startup_64:entry, fbt::__startup_64:entry, fbt::start_kernel:entry { stack(); }"


def ours(folder: Path, *words: str) -> tuple[list[str], str]:
    """Lines of the console without times, and the output."""
    console = folder / "console"
    options = ("--clock", "icount", "--until", UNTIL, "--timeout", "60", "--console", str(console))
    result = CliRunner().invoke(run, (*words, *options, str(real_image("linux-amd64"))), prog_name="kinst-run")
    assert result.exit_code == 0, result.stderr
    lines = (TIME.sub("", line) for line in console.read_text().splitlines())
    return [line for line in lines if not MEASURED.search(line)], result.stdout


@pytest.mark.long  # the gate has it at a random offset, in test_kaslr.py
def test_entries_of_all_functions_fire_from_the_first_instruction_on(tmp_path: Path) -> None:
    """Before the kernel has page tables of its own it runs in the identity map; symbols are right there, too."""
    plain, _ = ours(tmp_path)
    printed, output = ours(tmp_path, "-q", "--format", "json", "-n", EVERY_ENTRY, "-n", EARLY)
    assert printed == plain
    assert plain[-1].startswith(UNTIL)
    document = json.loads(output)["dtrace"]
    counts = {one["keys"][0]: one["value"] for one in document["aggregations"][0]["aggregation-data"]}
    assert counts["startup_64"] == counts["__startup_64"] == counts["start_kernel"] == 1
    assert len(counts) > 600
    early = {one["function"]: one["output"][0]["stack-frames"] for one in document["probes"]}
    names = [frame["symbol"].partition("`")[2].partition("+")[0] for frame in early["__startup_64"]]
    assert names[:2] == ["__startup_64", "startup_64"]
